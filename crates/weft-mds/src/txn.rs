//! What one request reads and wants changed, on top of what is planned but not yet committed.

use crate::committed::Committed;
use crate::grants::Changed;
use crate::opens::OpenTable;
use crate::record::{Dirent, Inode};
use crate::unfinished::{GarbageQueue, Lingering};
use crate::{keys, record};
use prost::Message as _;
use std::collections::HashMap;
use std::hash::Hash;
use std::ops::ControlFlow;
use std::sync::Arc;
use weft_model::{ErrorKind, Fid, FsError, Result, Timespec};
use weft_store::Batch;
use weft_store::kv::prefix_end;

/// Name of an entry: its directory and its bytes.
type EntryKey = (Fid, Box<[u8]>);

/// Changes of several requests that will be written as one batch. `None` means "removed".
#[derive(Default)]
pub struct Group {
    inodes: HashMap<Fid, Option<Arc<Inode>>>,
    dirents: HashMap<EntryKey, Option<Dirent>>,
    raw: HashMap<Vec<u8>, Option<Vec<u8>>>,
}

/// Changes of one request, in the order made.
#[derive(Default)]
struct Changes {
    inodes: Vec<(Fid, Option<Arc<Inode>>)>,
    dirents: Vec<(EntryKey, Option<Dirent>)>,
    raw: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    /// Inodes changed in a way that nobody has to be told of.
    unnoticed: Vec<Fid>,
    /// Inodes made less inodes removed.
    inodes_made: i64,
}

impl Group {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.inodes.is_empty() && self.dirents.is_empty() && self.raw.is_empty()
    }

    /// Number of records changed.
    pub fn len(&self) -> usize {
        self.inodes.len() + self.dirents.len() + self.raw.len()
    }

    /// The batch for the store. Each record is in it once, however many requests changed it.
    pub fn batch(&self) -> Batch {
        let mut batch = Batch::new();
        let mut value = Vec::with_capacity(256);
        for ((dir, name), dirent) in &self.dirents {
            put_record(&mut batch, &keys::dirent(*dir, name), dirent.as_ref(), &mut value);
        }
        for (fid, inode) in &self.inodes {
            put_record(&mut batch, &keys::inode(*fid), inode.as_deref(), &mut value);
        }
        for (key, bytes) in &self.raw {
            match bytes {
                None => batch.delete(key),
                Some(bytes) => batch.put(key, bytes),
            };
        }
        batch
    }

    /// Makes the changes visible to readers of committed state.
    pub fn publish(&self, committed: &Committed) {
        for (fid, inode) in &self.inodes {
            committed.cache.publish_inode(*fid, inode.clone());
        }
        for ((dir, name), dirent) in &self.dirents {
            committed.cache.publish_dirent(*dir, name, *dirent);
        }
    }
}

impl Group {
    /// Lets readers look into the store again: the group was not written.
    pub fn forget(&self, committed: &Committed) {
        for fid in self.inodes.keys() {
            committed.cache.publish_inode(*fid, None);
        }
        for (dir, name) in self.dirents.keys() {
            committed.cache.publish_dirent(*dir, name, None);
        }
    }
}

/// Adds a record to a batch, or its removal; `value` is scratch space.
fn put_record<M: prost::Message>(
    batch: &mut Batch,
    key: &[u8],
    record: Option<&M>,
    value: &mut Vec<u8>,
) {
    match record {
        None => batch.delete(key),
        Some(record) => {
            value.clear();
            record.encode_raw(value);
            batch.put(key, value)
        }
    };
}

/// The state that requests are planned on. Behind one lock; see [`crate::commit`].
pub struct Planner {
    /// Changes not yet being written.
    pub pending: Group,
    /// Changes being written now.
    pub committing: Option<Arc<Group>>,
    /// Number of `pending`.
    pub generation: u64,
    /// Open files.
    pub opens: OpenTable,
    /// FIDs and inodes given out.
    pub counters: record::Counters,
    /// Object numbers below this are reserved in the store.
    pub reserved_until: u64,
    /// Counts placements, to rotate over the OSTs.
    pub rotation: u64,
    /// Clients have not yet all said what they had open before a restart.
    pub recovering: bool,
    /// Files whose objects are to be destroyed.
    pub garbage: GarbageQueue,
    /// Files that were replaced and stay a little longer.
    pub lingering: Lingering,
}

/// One request being planned.
pub struct Txn<'a> {
    /// What everybody's plans share.
    pub planner: &'a mut Planner,
    committed: &'a Committed,
    changes: Changes,
    /// Something was read that is not committed yet, so the answer has to wait for it.
    pub saw_uncommitted: bool,
    /// Files that must not be delegated to others for this.
    pub looked_at: Vec<(Fid, Arc<Inode>)>,
    /// The time of the request.
    pub now: Timespec,
}

/// Object numbers reserved at a time.
const RESERVE: u64 = 4096;

fn find<K: PartialEq, V: Clone>(changes: &[(K, V)], key: &K) -> Option<V> {
    changes.iter().rev().find(|(k, _)| k == key).map(|(_, value)| value.clone())
}

fn set<K: PartialEq, V>(changes: &mut Vec<(K, V)>, key: K, value: V) {
    match changes.iter_mut().find(|(k, _)| *k == key) {
        Some(slot) => slot.1 = value,
        None => changes.push((key, value)),
    }
}

impl<'a> Txn<'a> {
    /// Begins planning a request.
    pub fn new(planner: &'a mut Planner, committed: &'a Committed, now: Timespec) -> Txn<'a> {
        Txn {
            planner,
            committed,
            changes: Changes::default(),
            saw_uncommitted: false,
            looked_at: Vec::new(),
            now,
        }
    }

    /// Looks in the groups that are on their way to the store.
    fn in_groups<K: Eq + Hash, V: Clone>(
        &mut self,
        key: &K,
        map: fn(&Group) -> &HashMap<K, V>,
    ) -> Option<V> {
        let pending = map(&self.planner.pending).get(key);
        let committing = || self.planner.committing.as_deref().and_then(|g| map(g).get(key));
        let found = pending.or_else(committing).cloned();
        self.saw_uncommitted |= found.is_some();
        found
    }

    /// An inode, if it exists.
    ///
    /// # Errors
    /// Those of the store.
    pub fn find_inode(&mut self, fid: Fid) -> Result<Option<Arc<Inode>>> {
        if let Some(changed) = find(&self.changes.inodes, &fid) {
            return Ok(changed);
        }
        match self.in_groups(&fid, |group| &group.inodes) {
            Some(inode) => Ok(inode),
            None => self.committed.inode(fid),
        }
    }

    /// An inode that must exist.
    ///
    /// # Errors
    /// `Stale`, or those of the store.
    pub fn inode(&mut self, fid: Fid) -> Result<Arc<Inode>> {
        self.find_inode(fid)?.ok_or_else(|| ErrorKind::Stale.into())
    }

    /// A directory that must exist.
    ///
    /// # Errors
    /// `NotFound` when it was removed, `NotDir`.
    pub fn dir(&mut self, fid: Fid) -> Result<Arc<Inode>> {
        let inode = self.find_inode(fid)?.ok_or_else(|| FsError::from(ErrorKind::NotFound))?;
        if !inode.is_dir() {
            return Err(ErrorKind::NotDir.into());
        }
        if inode.nlink == 0 {
            return Err(ErrorKind::NotFound.into());
        }
        Ok(inode)
    }

    /// An entry, if it exists.
    ///
    /// # Errors
    /// Those of the store.
    pub fn find_dirent(&mut self, dir: Fid, name: &[u8]) -> Result<Option<Dirent>> {
        let key = (dir, Box::from(name));
        if let Some(changed) = find(&self.changes.dirents, &key) {
            return Ok(changed);
        }
        match self.in_groups(&key, |group| &group.dirents) {
            Some(dirent) => Ok(dirent),
            None => self.committed.dirent(dir, name),
        }
    }

    /// An entry that must exist.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn dirent(&mut self, dir: Fid, name: &[u8]) -> Result<Dirent> {
        self.find_dirent(dir, name)?.ok_or_else(|| ErrorKind::NotFound.into())
    }

    /// Any other record.
    ///
    /// # Errors
    /// Those of the store.
    pub fn raw(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let key = &key.to_vec();
        if let Some(changed) = find(&self.changes.raw, key) {
            return Ok(changed);
        }
        match self.in_groups(key, |group| &group.raw) {
            Some(value) => Ok(value),
            None => self.committed.kv.get(key),
        }
    }

    /// Writes an inode.
    pub fn put_inode(&mut self, fid: Fid, inode: Inode) {
        self.changes.unnoticed.retain(|&unnoticed| unnoticed != fid);
        set(&mut self.changes.inodes, fid, Some(Arc::new(inode)));
    }

    /// Writes an inode of which nothing but the access time has changed: grants stay.
    pub fn put_accessed(&mut self, fid: Fid, inode: Inode) {
        if !self.changes.inodes.iter().any(|(changed, _)| *changed == fid) {
            self.changes.unnoticed.push(fid);
        }
        set(&mut self.changes.inodes, fid, Some(Arc::new(inode)));
    }

    /// Inodes whose grants have to be recalled.
    pub fn changed_inodes(&self) -> impl Iterator<Item = Changed<'_>> {
        let Changes { inodes, unnoticed, .. } = &self.changes;
        let changed = inodes.iter().filter(|(fid, _)| !unnoticed.contains(fid));
        changed.map(|(fid, inode)| Changed {
            fid: *fid,
            is_dir: inode.as_ref().is_some_and(|inode| inode.is_dir()),
            writers: inode.as_ref().map_or(&[], |inode| &inode.writers),
        })
    }

    /// Removes an inode.
    pub fn delete_inode(&mut self, fid: Fid) {
        set(&mut self.changes.inodes, fid, None);
        self.changes.inodes_made -= 1;
    }

    /// Writes an entry.
    pub fn put_dirent(&mut self, dir: Fid, name: &[u8], dirent: Dirent) {
        set(&mut self.changes.dirents, (dir, name.into()), Some(dirent));
    }

    /// Removes an entry.
    pub fn delete_dirent(&mut self, dir: Fid, name: &[u8]) {
        set(&mut self.changes.dirents, (dir, name.into()), None);
    }

    /// Writes or removes any other record.
    pub fn put_raw(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) {
        set(&mut self.changes.raw, key, value);
    }

    /// A FID that was never used before.
    ///
    /// # Errors
    /// `NoSpace` when the sequence is used up.
    pub fn new_fid(&mut self) -> Result<Fid> {
        let counters = &mut self.planner.counters;
        if counters.next_object > Fid::MAX_OBJECT {
            return Err(FsError::new(ErrorKind::NoSpace, "allocate FID")
                .because("the FID sequence is used up; restart the server to lease another"));
        }
        let fid = Fid::new(counters.sequence, counters.next_object);
        counters.next_object += 1;
        self.changes.inodes_made += 1;
        Ok(fid)
    }

    /// Removes every extended attribute of an inode, planned ones included.
    ///
    /// # Errors
    /// Those of the store.
    pub fn remove_xattrs(&mut self, fid: Fid) -> Result<()> {
        let prefix = keys::xattr(fid, b"");
        let mut found = Vec::new();
        self.committed.kv.scan(&prefix, &prefix_end(&prefix), &mut |key, _| {
            found.push(key.to_vec());
            ControlFlow::Continue(())
        })?;
        let groups = self.planner.committing.as_deref().into_iter().chain([&self.planner.pending]);
        for group in groups {
            found.extend(group.raw.keys().filter(|key| key.starts_with(&prefix)).cloned());
        }
        found.into_iter().for_each(|key| self.put_raw(key, None));
        Ok(())
    }

    /// Whether anything is to be changed.
    pub fn is_read_only(&self) -> bool {
        let changes = &self.changes;
        changes.inodes.is_empty() && changes.dirents.is_empty() && changes.raw.is_empty()
    }

    /// Adds the changes to the pending group, and shows them to readers before they are written. They
    /// must rest on committed state only.
    pub fn stage_visibly(self) {
        for (fid, inode) in &self.changes.inodes {
            self.committed.cache.publish_inode(*fid, inode.clone());
        }
        for ((dir, name), dirent) in &self.changes.dirents {
            self.committed.cache.publish_dirent(*dir, name, *dirent);
        }
        self.stage();
    }

    /// Adds the changes to the pending group.
    pub fn stage(self) {
        let Changes { inodes, dirents, raw, inodes_made, .. } = self.changes;
        let counters = &mut self.planner.counters;
        counters.inodes = counters.inodes.saturating_add_signed(inodes_made);
        let pending = &mut self.planner.pending;
        if counters.next_object > self.planner.reserved_until {
            self.planner.reserved_until = counters.next_object + RESERVE;
            let stored = record::Counters { next_object: self.planner.reserved_until, ..*counters };
            pending.raw.insert(keys::counters(), Some(stored.encode_to_vec()));
        }
        pending.inodes.extend(inodes);
        pending.dirents.extend(dirents);
        pending.raw.extend(raw);
    }
}
