//! Serves a metadata target (MDT): inodes, directory entries, locks and sessions.
//!
//! **Purpose.** Everything about files but their data. A directory with all its entries lives on one
//! MDT, and so do the inodes of the files in it: create, lookup, stat, unlink are one request and one
//! transaction here.
//!
//! **Callers.** `weft-rpc` hands requests to [`Mds::serve`](weft_rpc::Service::serve); whoever runs the
//! role calls [`Mds::tick`] every few tens of milliseconds and [`Mds::sync`] every few.
//!
//! **Invariants.**
//! - What is answered is committed, and rests only on what is committed ([`commit`]).
//! - A modifying request happens exactly once however often it is sent ([`sessions`]).
//! - No lock is held over an fsync or a network wait.
//! - Permissions are checked here, whatever the client has checked already.
//! - Every inode of a file that somebody may have written beyond the known size carries that
//!   somebody's mark, durably, until the size is known.
//!
//! **Absent by design.** Data of files that are not small ([`inline`]); paths of more than one component; anything about other MDTs.
//!
//! **Start here.** `ops/create.rs`, then [`commit`], then [`truncate`] for the one operation with
//! several steps. Keys and values of the store: [`keys`], [`record`].

pub mod background;
pub mod cache;
pub mod check;
pub mod commit;
pub mod committed;
pub mod expiry;
pub mod grants;
pub mod inline;
pub mod keys;
pub mod lock_waits;
pub mod locks;
pub mod namespace;
pub mod objects;
pub mod opens;
pub mod ops;
#[allow(missing_docs)]
pub mod record;
mod room;
mod serve;
pub mod sessions;
pub mod truncate;
pub mod txn;
pub mod unfinished;
pub mod view;

use crate::cache::Cache;
use crate::check::ObjectChecks;
use crate::commit::{Committer, Durability};
use crate::committed::Committed;
use crate::grants::Grants;
use crate::objects::Objects;
use crate::ops::append::Reservations;
use crate::record::{Counters, Inode};
use crate::sessions::{Live, Sessions};
use crate::txn::{Group, Planner, Txn};
use crate::unfinished::{GarbageQueue, Lingering, Unfinished};
use parking_lot::Mutex;
use prost::Message as _;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weft_model::map::Space;
use weft_model::{ClientId, Env, Fid, FileType, Layout, Result, TargetId, placement};
use weft_rpc::pb;
use weft_rpc::router::Router;
use weft_store::{Batch, Kv};

/// Settings of an MDT.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// A client not heard of for this long has lost its session.
    pub lease: Duration,
    /// When changes are acknowledged.
    pub durability: Durability,
    /// Inodes, and as many entries, kept in memory; about 600 bytes each pair.
    pub cache_inodes: usize,
    /// Owner and group of the root directory, when it is made.
    pub root_owner: (u32, u32),
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            lease: Duration::from_secs(10),
            durability: Durability::Cache,
            cache_inodes: 400_000,
            root_owner: (0, 0),
        }
    }
}

/// What an MDT needs from outside.
pub struct Parts {
    /// Its store.
    pub kv: Arc<dyn Kv>,
    /// The way to the OSTs.
    pub router: Arc<Router>,
    /// Time and randomness.
    pub env: Arc<dyn Env>,
    /// Space of the file system under the store.
    pub space: Box<dyn Fn() -> Space + Send + Sync>,
    /// Whether the store may grow by so many bytes: `NoSpace` when only the reserve is left.
    pub admit: Box<dyn Fn(u64) -> Result<()> + Send + Sync>,
}

/// One metadata target being served.
pub struct Mds {
    target: TargetId,
    settings: Settings,
    env: Arc<dyn Env>,
    committer: Committer,
    objects: Objects,
    sessions: Sessions,
    locks: lock_waits::Locks,
    reservations: Reservations,
    truncating: truncate::Busy,
    unfinished: Mutex<Unfinished>,
    checks: ObjectChecks,
    space: Box<dyn Fn() -> Space + Send + Sync>,
    room: room::Room,
    /// Another value at every start.
    instance: u64,
    started: Duration,
    recovering: AtomicBool,
}

impl Mds {
    /// Opens a target whose FIDs come from `sequence`. A new one gets the root directory if it is
    /// MDT0000.
    ///
    /// # Errors
    /// Those of the store; `Corrupt` for records it cannot read.
    pub fn open(target: TargetId, sequence: u32, parts: Parts, settings: Settings) -> Result<Mds> {
        let Parts { kv, router, env, space, admit } = parts;
        let counters =
            load_counters(kv.as_ref(), target, sequence, env.now(), settings.root_owner)?;
        let sessions = load_sessions(kv.as_ref(), env.monotonic())?;
        let recovering = !sessions.is_empty();
        let unfinished = Unfinished::load(kv.as_ref())?;
        let calm = env.monotonic() + settings.lease;
        let checks = ObjectChecks::load(kv.as_ref(), &router.map(), calm)?;
        let planner = Planner {
            pending: Group::default(),
            committing: None,
            generation: 1,
            opens: opens::OpenTable::default(),
            counters,
            reserved_until: counters.next_object.saturating_sub(1),
            // Room to count on.
            rotation: env.random() >> 1,
            recovering: true,
            garbage: GarbageQueue::load(kv.as_ref())?,
            lingering: Lingering::default(),
        };
        let committed = Committed { kv, cache: Cache::new(settings.cache_inodes) };
        let grants = Grants::new(env.clone(), sessions.caching(), sessions.delegated_to());
        let mds = Mds {
            target,
            settings,
            committer: Committer::new(committed, grants, planner, settings.durability),
            objects: Objects::new(router),
            sessions,
            locks: lock_waits::Locks::default(),
            reservations: Reservations::default(),
            truncating: truncate::Busy::default(),
            unfinished: Mutex::new(unfinished),
            checks,
            space,
            room: room::Room::new(admit),
            instance: env.random() | 1,
            started: env.monotonic(),
            recovering: AtomicBool::new(true),
            env,
        };
        tracing::info!(%target, sessions = mds.sessions.len(), recovering, "metadata target open");
        mds.end_recovery_if_complete();
        Ok(mds)
    }

    /// The target.
    pub const fn target(&self) -> TargetId {
        self.target
    }

    /// One step of background work.
    pub fn tick(&self) {
        background::tick(self);
    }

    /// Whether objects wait to be destroyed, so that a tick is worth while before its time.
    pub fn has_garbage(&self) -> bool {
        self.committer.with_planner(|planner| planner.garbage.is_fresh())
    }

    /// Gives back to the disk what removed names took, where a request was refused for want of space
    /// and enough was removed since this was done last. Long.
    pub fn make_room(&self) {
        if self.room.is_worth_while(self.committer.with_planner(|p| p.counters.inodes)) {
            tracing::info!(target = %self.target, "the disk is full, making room of removed names");
            self.committer.committed.kv.make_room();
        }
    }

    /// Brings everything acknowledged to stable storage; cheap when there is nothing new.
    ///
    /// # Errors
    /// Those of the store; it is out of service then.
    pub fn sync(&self) -> Result<()> {
        self.committer.sync()
    }

    /// Lets long background work end early; what is left is done after the next start.
    pub fn stop(&self) {
        self.objects.stop();
    }

    /// Number of sessions, open files and held locks, for metrics.
    pub fn counts(&self) -> (usize, usize, usize) {
        let opens = self.committer.with_planner(|planner| planner.opens.len());
        (self.sessions.len(), opens, self.locks.table().len())
    }

    fn is_stopping(&self) -> bool {
        self.objects.is_stopping()
    }

    fn is_recovering(&self) -> bool {
        self.recovering.load(Ordering::Acquire)
    }

    /// Ends the recovery when all sessions are back or a lease has passed since the start.
    fn end_recovery_if_complete(&self) {
        if !self.is_recovering() {
            return;
        }
        let waited = self.env.monotonic().saturating_sub(self.started);
        if !self.sessions.all_present() && waited <= self.settings.lease {
            return;
        }
        self.committer.with_planner(|planner| planner.recovering = false);
        match background::sweep_orphans(self) {
            Ok(()) => self.recovering.store(false, Ordering::Release),
            Err(error) => tracing::warn!(%error, "recovery not ended, will be tried again"),
        }
    }

    /// An inode as it is committed, for a session that is granted what it is told, if that can be.
    fn read_granted(
        &self,
        fid: Fid,
        client: ClientId,
    ) -> Result<Option<(Arc<Inode>, pb::mds::Entry)>> {
        let (grants, committed) = (&self.committer.grants, &self.committer.committed);
        loop {
            let Some(inode) = committed.inode(fid)? else { return Ok(None) };
            if inode.written_by_others(client.0) {
                // What others write changes on the OSTs, without any request here: nothing is granted. What
                // they keep of it is known to them alone.
                if let Err(conflict) = grants.look(fid, &inode.writers, client) {
                    grants.resolve(conflict);
                    continue;
                }
                // Read again: they may have told it, and closed the file, since.
                match committed.inode(fid)? {
                    Some(inode) if inode.written_by_others(client.0) => {
                        let entry = namespace::entry(fid, &inode, client);
                        return Ok(Some((inode, entry)));
                    }
                    _ => continue,
                }
            }
            // Registered first, read afterwards: whoever changes it in between finds the grant. It is not
            // taken back where somebody has begun to write: another request of this session may have been
            // told of it.
            let grant_ms = grants.grant(fid, client);
            let Some(inode) = committed.inode(fid)? else { return Ok(None) };
            if !inode.written_by_others(client.0) {
                let entry = namespace::entry(fid, &inode, client);
                return Ok(Some((inode, pb::mds::Entry { grant_ms, ..entry })));
            }
        }
    }

    /// Chooses the targets of a new file: as asked for, else as its directory says, else by default.
    fn place(
        &self,
        txn: &mut Txn<'_>,
        asked: &Option<pb::LayoutSpec>,
        parent: &Inode,
    ) -> Result<pb::Layout> {
        let asked = asked.as_ref().filter(|spec| !spec.components.is_empty());
        let spec = asked.or(parent.spec.as_ref()).cloned().unwrap_or_default();
        txn.planner.rotation = txn.planner.rotation.wrapping_add(1);
        let map = self.objects.router().map();
        let layout: Layout = placement::place(&spec.try_into()?, &map, txn.planner.rotation)?;
        Ok((&layout).into())
    }
}

/// Object numbers left out at every start: more than can be given out between two syncs. A power cut
/// takes back what was given out since the last one, but objects of those files may be on OSTs, and
/// must not turn up in new files.
const SKIP: u64 = 1 << 20;

fn load_counters(
    kv: &dyn Kv,
    target: TargetId,
    sequence: u32,
    now: weft_model::Timespec,
    root_owner: (u32, u32),
) -> Result<Counters> {
    let key = keys::counters();
    if let Some(value) = kv.get(&key)? {
        let mut stored: Counters = record::decode(&key, &value)?;
        if stored.next_object > Fid::MAX_OBJECT && stored.sequence != sequence {
            (stored.sequence, stored.next_object) = (sequence, 1);
        } else {
            stored.next_object = (stored.next_object + SKIP).min(Fid::MAX_OBJECT + 1);
        }
        kv.write(Batch::new().put(&key, &stored.encode_to_vec()))?;
        kv.sync()?;
        return Ok(stored);
    }
    let has_root = target == TargetId::mdt(0);
    let fresh = Counters { sequence, next_object: 2, inodes: has_root as u64 };
    let mut batch = Batch::new();
    batch.put(&key, &fresh.encode_to_vec());
    if has_root {
        let mut root = Inode {
            mode: FileType::Directory.mode_bits() | 0o755,
            uid: root_owner.0,
            gid: root_owner.1,
            nlink: 2,
            parent: Fid::ROOT.0,
            ..Inode::default()
        };
        root.set_atime(now);
        root.touch_entries(now);
        (root.btime, root.btime_ns) = (now.secs, now.nanos);
        batch.put(&keys::inode(Fid::ROOT), &root.encode_to_vec());
    }
    kv.write(&batch)?;
    kv.sync()?;
    Ok(fresh)
}

/// Stored sessions with their last replies. Those of clients that lived in the server's process have
/// ended with it; they are kept as expired, so that the next tick ends them properly.
fn load_sessions(kv: &dyn Kv, now: Duration) -> Result<Sessions> {
    let sessions = Sessions::default();
    let mut found = Vec::new();
    let range = |kind: u8| ([kind], [kind + 1]);
    let (from, until) = range(keys::kind::SESSION);
    kv.scan(&from, &until, &mut |key, value| {
        found.push((key.to_vec(), value.to_vec()));
        ControlFlow::Continue(())
    })?;
    for (key, value) in found {
        let record: record::Session = record::decode(&key, &value)?;
        let client = ClientId(keys::number(&key).unwrap_or(0));
        if record.local {
            let mut batch = Batch::new();
            batch.delete(&key);
            kv.write(&batch)?;
            continue;
        }
        sessions.insert(client, Live::new(record, false, now))?;
    }
    let (from, until) = range(keys::kind::REPLY);
    kv.scan(&from, &until, &mut |key, value| {
        let slot = key.last_chunk::<2>().map(|bytes| u16::from_be_bytes(*bytes));
        let live = keys::number(key).and_then(|client| sessions.get(ClientId(client)));
        if let (Some(slot), Some(live), Ok(saved)) = (slot, live, record::decode(key, value)) {
            live.save(slot, saved);
        }
        ControlFlow::Continue(())
    })?;
    Ok(sessions)
}
