//! Names and attributes under grants, so that what is known needs no request.
//!
//! **What others change** the client tells: a grant that was recalled counts for nothing
//! ([`Client::grant_left`]), and each use asks. **What this process changes** is recalled by nobody: while a change
//! is under way ([`Cache::change`]) what it touches is asked for, and answers that were asked for before its end
//! are not kept.
//!
//! Many names asked for one by one in a directory have it listed with attributes, in a few requests.

use crate::caller;
use crate::path::Node;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use weft_client::{Client, Ctx, Found, Grant, Keeping, Lookup, Recalled};
use weft_model::{Fid, FileType, Result};

/// Names and attributes kept at most, each.
const MAX_KEPT: usize = 1 << 16;
/// Changes remembered one by one.
const MAX_CHANGES: usize = 1 << 13;
/// Names found one by one within [`TERM`] from which on a directory is listed.
const FEW: u32 = 3;
/// A directory is listed if it has no more entries than this for each name asked for lately.
const PER_NAME: u64 = 32;
/// For how long names asked for count, and a listing that granted nothing.
const TERM: Duration = Duration::from_secs(1);

/// What a change touches.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Key {
    /// The attributes of an inode.
    Attr(Fid),
    /// A name in a directory.
    Name(Fid, Box<[u8]>),
    /// The attributes of it is not known what.
    Attrs,
    /// It is not known what.
    All,
}

/// The kept names and attributes of one file system.
pub struct Cache {
    client: Arc<Client>,
    kept: Mutex<Kept>,
}

/// What a name stands for, or that there is nothing.
type Stands = Option<(Fid, FileType)>;

/// The names of a directory.
type Names = HashMap<Box<[u8]>, (Stands, Grant)>;

#[derive(Default)]
struct Kept {
    names: HashMap<Fid, Names>,
    names_count: usize,
    attrs: HashMap<Fid, Found>,
    /// Targets of symbolic links, which never change.
    links: HashMap<Fid, Arc<[u8]>>,
    /// Names asked for lately, by directory: how many, since when.
    asked: HashMap<Fid, (u32, Instant)>,
    /// Of whom all this was asked.
    identity: u64,
    changes: Changes,
}

/// What this process changes.
#[derive(Default)]
struct Changes {
    ended: u64,
    /// Number of the last change of each.
    last: HashMap<Key, u64>,
    /// Changes up to this one may be missing in `last`.
    forgotten: u64,
    under_way: HashMap<Key, u32>,
}

impl Changes {
    fn is_under_way(&self, key: &Key) -> bool {
        let has = |key: &Key| self.under_way.contains_key(key);
        !self.under_way.is_empty()
            && (has(key) || has(&Key::All) || matches!(key, Key::Attr(_)) && has(&Key::Attrs))
    }

    /// Whether an answer asked for when `stamp` changes had ended is still true.
    fn is_unchanged(&self, key: &Key, stamp: u64) -> bool {
        let last = |key: &Key| self.last.get(key).copied().unwrap_or(0);
        let attrs = if matches!(key, Key::Attr(_)) { last(&Key::Attrs) } else { 0 };
        !self.is_under_way(key) && last(key).max(attrs).max(self.forgotten) <= stamp
    }

    fn begin(&mut self, key: &Key) {
        *self.under_way.entry(key.clone()).or_default() += 1;
    }

    fn end(&mut self, key: &Key) {
        if let Some(count) = self.under_way.get_mut(key) {
            *count -= 1;
            if *count == 0 {
                self.under_way.remove(key);
            }
        }
        self.ended += 1;
        if *key == Key::All || self.last.len() >= MAX_CHANGES {
            self.last.clear();
            self.forgotten = self.ended;
        } else {
            self.last.insert(key.clone(), self.ended);
        }
    }
}

impl Kept {
    fn drop_key(&mut self, key: &Key) {
        match key {
            Key::Attr(fid) => drop(self.attrs.remove(fid)),
            Key::Name(dir, name) => {
                if self.names.get_mut(dir).and_then(|names| names.remove(name)).is_some() {
                    self.names_count -= 1;
                }
            }
            Key::Attrs => self.attrs.clear(),
            Key::All => {
                self.attrs.clear();
                self.names.clear();
                self.names_count = 0;
            }
        }
    }

    fn put_name(&mut self, dir: Fid, name: &[u8], stands_for: Stands, grant: Grant) {
        if grant == Grant::NONE {
            return;
        }
        if self.names_count >= MAX_KEPT {
            self.names.clear();
            self.names_count = 0;
        }
        let names = self.names.entry(dir).or_default();
        if names.insert(name.into(), (stands_for, grant)).is_none() {
            self.names_count += 1;
        }
    }

    fn put_attr(&mut self, found: &Found) {
        if found.grant == Grant::NONE {
            return;
        }
        if self.attrs.len() >= MAX_KEPT {
            self.attrs.clear();
        }
        self.attrs.insert(found.fid, *found);
    }

    /// Takes what an answer told that was asked for at `stamp`.
    fn learn(&mut self, dir: Fid, name: &[u8], found: &Found, stamp: u64) {
        if self.changes.is_unchanged(&Key::Name(dir, name.into()), stamp) {
            self.put_name(dir, name, Some((found.fid, found.kind)), found.name_grant);
        }
        self.learn_attr(found, stamp);
    }

    fn learn_attr(&mut self, found: &Found, stamp: u64) {
        if self.changes.is_unchanged(&Key::Attr(found.fid), stamp) {
            self.put_attr(found);
        }
    }
}

impl Cache {
    /// Nothing kept.
    pub fn new(client: Arc<Client>) -> Cache {
        Cache { client, kept: Mutex::default() }
    }

    /// What a name stands for; `.` and `..` are names.
    ///
    /// # Errors
    /// Those of the MDT.
    pub fn look(&self, dir: Fid, name: &[u8]) -> Result<Option<Node>> {
        if let Some(known) = self.known(dir, name) {
            return Ok(known.map(|(fid, kind)| Node { fid, kind, attr: None }));
        }
        self.list_if_worth(dir);
        let stamp = self.stamp();
        let answer = self.client.lookup_or_absent(&caller::ctx(), dir, name)?;
        let mut kept = self.kept.lock();
        match answer {
            Lookup::Found(found) => {
                let (count, _) = kept.asked.entry(dir).or_insert((0, Instant::now()));
                *count = count.saturating_add(1);
                kept.learn(dir, name, &found, stamp);
                // The answer may be from before a write of ours that was reported before it came.
                let is_sure = kept.changes.is_unchanged(&Key::Attr(found.fid), stamp);
                drop(kept);
                let attr = is_sure.then_some(found.attr);
                Ok(Some(Node { fid: found.fid, kind: found.kind, attr }))
            }
            Lookup::Absent(grant) => {
                if kept.changes.is_unchanged(&Key::Name(dir, name.into()), stamp) {
                    kept.put_name(dir, name, None, grant);
                }
                Ok(None)
            }
        }
    }

    /// The inode that a name is known to stand for. The outer option: whether anything is known.
    fn known(&self, dir: Fid, name: &[u8]) -> Option<Option<(Fid, FileType)>> {
        let (stands_for, grant) = {
            let mut kept = self.kept.lock();
            let identity = caller::identity();
            if kept.identity != identity {
                // Others may not be allowed to see it.
                kept.drop_key(&Key::All);
                kept.identity = identity;
            }
            let known = *kept.names.get(&dir)?.get(name)?;
            let changes = &kept.changes;
            if !changes.under_way.is_empty() && changes.is_under_way(&Key::Name(dir, name.into())) {
                return None;
            }
            known
        };
        (!self.client.grant_left(&grant).is_zero()).then_some(stands_for)
    }

    /// Attributes of an inode, with a grant if there is one.
    ///
    /// # Errors
    /// Those of the MDT.
    pub fn attr(&self, fid: Fid) -> Result<Found> {
        let (known, stamp) = {
            let kept = self.kept.lock();
            let known = kept.attrs.get(&fid).copied();
            (known.filter(|_| !kept.changes.is_under_way(&Key::Attr(fid))), kept.changes.ended)
        };
        if let Some(found) = known
            && !self.client.grant_left(&found.grant).is_zero()
        {
            return Ok(found);
        }
        let found = self.client.getattr(&caller::ctx(), fid)?;
        self.kept.lock().learn_attr(&found, stamp);
        Ok(found)
    }

    /// The same with a grant that counts and no change of ours under way: the data is what the attributes say.
    pub fn granted(&self, fid: Fid) -> Option<Found> {
        let found = self.attr(fid).ok()?;
        let changing = self.kept.lock().changes.is_under_way(&Key::Attr(fid));
        (!changing && !self.client.grant_left(&found.grant).is_zero()).then_some(found)
    }

    /// The target of a symbolic link.
    ///
    /// # Errors
    /// Those of the MDT.
    pub fn link(&self, fid: Fid) -> Result<Vec<u8>> {
        if let Some(target) = self.kept.lock().links.get(&fid) {
            return Ok(target.to_vec());
        }
        let target = self.client.readlink(&caller::ctx(), fid)?;
        let mut kept = self.kept.lock();
        if kept.links.len() >= MAX_KEPT {
            kept.links.clear();
        }
        kept.links.insert(fid, target.as_slice().into());
        Ok(target)
    }

    /// What the name that is to be removed is known to stand for, or that nothing is known.
    pub fn key_of(&self, dir: Fid, name: &[u8]) -> Key {
        self.known(dir, name).flatten().map_or(Key::Attrs, |(fid, _)| Key::Attr(fid))
    }

    /// Before a request that changes something. It ends when what is returned is dropped.
    pub fn change(self: &Arc<Cache>, keys: Vec<Key>) -> Change {
        let mut kept = self.kept.lock();
        keys.iter().for_each(|key| kept.changes.begin(key));
        let stamp = kept.changes.ended;
        Change { cache: self.clone(), keys, stamp, made: None }
    }

    fn stamp(&self) -> u64 {
        self.kept.lock().changes.ended
    }

    /// Lists the directory if many names were asked for in it. Whoever is here asks for another one
    /// afterwards, which proves that the caller may search the directory.
    fn list_if_worth(&self, dir: Fid) {
        {
            let mut kept = self.kept.lock();
            if kept.asked.len() >= MAX_CHANGES {
                kept.asked.clear();
            }
            let Some(&(count, since)) = kept.asked.get(&dir) else { return };
            if since > Instant::now() {
                return;
            }
            if since.elapsed() > TERM {
                kept.asked.remove(&dir);
                return;
            }
            if count < FEW {
                return;
            }
            let entries = kept.attrs.get(&dir).map_or(0, |found| found.size);
            if entries > u64::from(count) * PER_NAME || entries > MAX_KEPT as u64 / 2 {
                return;
            }
            kept.asked.insert(dir, (0, Instant::now()));
        }
        // What cannot be listed is asked for one by one.
        if !matches!(self.list(dir), Ok(true)) {
            let long = Instant::now() + 4 * TERM;
            self.kept.lock().asked.insert(dir, (0, long));
        }
    }

    /// Whether anything was granted.
    fn list(&self, dir: Fid) -> Result<bool> {
        let ctx = caller::ctx();
        let stamp = self.stamp();
        let open = self.client.opendir(&ctx, dir)?;
        let listed = self.list_open(&ctx, dir, &open, stamp);
        listed.and_then(|granted| self.client.closedir(&ctx, &open).map(|()| granted))
    }

    fn list_open(
        &self,
        ctx: &Ctx<'_>,
        dir: Fid,
        open: &weft_client::DirHandle,
        stamp: u64,
    ) -> Result<bool> {
        let (mut granted, mut left) = (false, MAX_KEPT / 2);
        self.client.readdir(ctx, open, 0, true, &mut |entry| {
            if let Some(found) = &entry.attr {
                granted |= found.name_grant != Grant::NONE;
                self.kept.lock().learn(dir, &entry.name, found, stamp);
            }
            left -= 1;
            left > 0
        })?;
        Ok(granted)
    }
}

impl Keeping for Cache {
    /// Each use asks whether the grant counts, so there is only room to be made.
    fn drop_granted(&self, recalled: &[Recalled]) {
        let mut kept = self.kept.lock();
        for one in recalled {
            kept.drop_key(&Key::Attr(one.fid));
            if let Some(names) = kept.names.remove(&one.fid) {
                kept.names_count -= names.len();
            }
        }
    }
}

/// A change under way.
pub struct Change {
    cache: Arc<Cache>,
    keys: Vec<Key>,
    stamp: u64,
    made: Option<(Fid, Box<[u8]>, Found)>,
}

impl Change {
    /// The change has made a name, and this is what it stands for.
    pub fn made(&mut self, dir: Fid, name: &[u8], found: &Found) {
        self.made = Some((dir, name.into(), *found));
    }
}

impl Drop for Change {
    fn drop(&mut self) {
        let mut kept = self.cache.kept.lock();
        // What others have changed meanwhile is not what the answer says.
        let alone = |kept: &Kept, key: &Key| {
            let last = kept.changes.last.get(key).copied().unwrap_or(0);
            kept.changes.under_way.get(key) == Some(&1)
                && last.max(kept.changes.forgotten) <= self.stamp
        };
        let made = self.made.take().filter(|(dir, name, _)| {
            alone(&kept, &Key::Name(*dir, name.clone()))
                && !kept.changes.under_way.contains_key(&Key::All)
        });
        for key in &self.keys {
            kept.drop_key(key);
            kept.changes.end(key);
        }
        if let Some((dir, name, found)) = made {
            kept.put_name(dir, &name, Some((found.fid, found.kind)), found.name_grant);
            if !kept.changes.is_under_way(&Key::Attr(found.fid)) {
                kept.put_attr(&found);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> Key {
        Key::Name(Fid(1), name.as_bytes().into())
    }

    #[test]
    fn answers_from_before_the_end_of_a_change_do_not_count() {
        let mut changes = Changes::default();
        let before = changes.ended;
        assert!(changes.is_unchanged(&name("a"), before));
        changes.begin(&name("a"));
        changes.begin(&name("a"));
        assert!(!changes.is_unchanged(&name("a"), changes.ended));
        assert!(changes.is_unchanged(&name("b"), before));
        changes.end(&name("a"));
        let between = changes.ended;
        assert!(changes.is_under_way(&name("a")));
        changes.end(&name("a"));
        assert!(!changes.is_unchanged(&name("a"), between));
        assert!(changes.is_unchanged(&name("a"), changes.ended));
    }

    #[test]
    fn what_changes_it_is_not_known_what_changes_all_of_its_kind() {
        let mut changes = Changes::default();
        let attr = Key::Attr(Fid(7));
        changes.begin(&Key::Attrs);
        assert!(changes.is_under_way(&attr) && !changes.is_under_way(&name("a")));
        changes.end(&Key::Attrs);
        assert!(!changes.is_unchanged(&attr, 0) && changes.is_unchanged(&name("a"), 0));
        let before = changes.ended;
        changes.begin(&Key::All);
        assert!(changes.is_under_way(&attr) && changes.is_under_way(&name("a")));
        changes.end(&Key::All);
        assert!(!changes.is_unchanged(&name("a"), before));
        assert!(changes.is_unchanged(&attr, changes.ended));
    }

    #[test]
    fn forgotten_changes_still_count() {
        let mut changes = Changes::default();
        for number in 0..=MAX_CHANGES as u64 {
            changes.begin(&Key::Attr(Fid(number)));
            changes.end(&Key::Attr(Fid(number)));
        }
        assert!(changes.last.len() <= MAX_CHANGES);
        assert!(!changes.is_unchanged(&Key::Attr(Fid(0)), 0));
    }
}
