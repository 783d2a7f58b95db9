//! A bounded cache of committed inodes and entries in front of the store.
//!
//! Each shard keeps two generations. What is used is in the young one; when that is full it becomes
//! the old one, and what nobody has asked for since the last turn is forgotten. No lists, no clocks.

use crate::record::{Dirent, Inode};
use parking_lot::RwLock;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use weft_model::Fid;

const SHARDS: usize = 64;

/// Committed state in memory.
pub struct Cache {
    inodes: Generations<Fid, Arc<Inode>>,
    dirents: Generations<(Fid, Box<[u8]>), Dirent>,
}

/// Proof of when a value was looked for; it may be cached only if nothing has changed since.
#[derive(Clone, Copy)]
pub struct Ticket(u64);

impl Cache {
    /// A cache of about `inodes` inodes and as many entries.
    pub fn new(inodes: usize) -> Cache {
        Cache { inodes: Generations::new(inodes), dirents: Generations::new(inodes) }
    }

    /// A cached inode, or a ticket for caching what the store says.
    pub fn inode(&self, fid: Fid) -> Result<Arc<Inode>, Ticket> {
        self.inodes.get(fid.0 ^ (fid.0 >> 6), &fid)
    }

    /// Caches what the store said, unless a newer version was published meanwhile.
    pub fn offer_inode(&self, fid: Fid, inode: Arc<Inode>, ticket: Ticket) {
        self.inodes.offer(fid.0 ^ (fid.0 >> 6), fid, inode, ticket);
    }

    /// A cached entry, or a ticket.
    pub fn dirent(&self, dir: Fid, name: &[u8]) -> Result<Dirent, Ticket> {
        self.dirents.get(weft_model::name::position(name) ^ dir.0, &(dir, name.into()))
    }

    /// Caches what the store said.
    pub fn offer_dirent(&self, dir: Fid, name: &[u8], dirent: Dirent, ticket: Ticket) {
        let hash = weft_model::name::position(name) ^ dir.0;
        self.dirents.offer(hash, (dir, name.into()), dirent, ticket);
    }

    /// Takes over a committed inode; `None` when it is gone.
    pub fn publish_inode(&self, fid: Fid, inode: Option<Arc<Inode>>) {
        self.inodes.publish(fid.0 ^ (fid.0 >> 6), fid, inode);
    }

    /// Takes over a committed entry; `None` when it is gone.
    pub fn publish_dirent(&self, dir: Fid, name: &[u8], dirent: Option<Dirent>) {
        let hash = weft_model::name::position(name) ^ dir.0;
        self.dirents.publish(hash, (dir, name.into()), dirent);
    }
}

struct Generations<K, V> {
    shards: Vec<RwLock<Shard<K, V>>>,
    young_limit: usize,
}

struct Shard<K, V> {
    young: HashMap<K, V>,
    old: HashMap<K, V>,
    /// Counts publications.
    version: u64,
}

impl<K: Eq + Hash, V: Clone> Generations<K, V> {
    fn new(limit: usize) -> Self {
        let empty =
            || RwLock::new(Shard { young: HashMap::new(), old: HashMap::new(), version: 0 });
        Generations {
            shards: (0..SHARDS).map(|_| empty()).collect(),
            young_limit: (limit / SHARDS / 2).max(16),
        }
    }

    fn shard(&self, hash: u64) -> &RwLock<Shard<K, V>> {
        &self.shards[hash as usize % SHARDS]
    }

    fn get(&self, hash: u64, key: &K) -> Result<V, Ticket> {
        let shard = self.shard(hash).read();
        if let Some(value) = shard.young.get(key) {
            return Ok(value.clone());
        }
        let ticket = Ticket(shard.version);
        if !shard.old.contains_key(key) {
            return Err(ticket);
        }
        drop(shard);
        let mut shard = self.shard(hash).write();
        match shard.old.remove_entry(key) {
            Some((key, value)) => {
                shard.insert(key, value.clone(), self.young_limit);
                Ok(value)
            }
            // Another reader was faster, or it is gone.
            None => shard.young.get(key).cloned().ok_or(Ticket(shard.version)),
        }
    }

    fn offer(&self, hash: u64, key: K, value: V, ticket: Ticket) {
        let mut shard = self.shard(hash).write();
        if shard.version == ticket.0 {
            shard.insert(key, value, self.young_limit);
        }
    }

    fn publish(&self, hash: u64, key: K, value: Option<V>) {
        let mut shard = self.shard(hash).write();
        shard.version += 1;
        shard.old.remove(&key);
        match value {
            Some(value) => shard.insert(key, value, self.young_limit),
            None => {
                shard.young.remove(&key);
            }
        }
    }
}

impl<K: Eq + Hash, V> Shard<K, V> {
    fn insert(&mut self, key: K, value: V, young_limit: usize) {
        if self.young.len() >= young_limit {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_what_is_used_and_stays_bounded() {
        let cache = Generations::<u64, u64>::new(64 * 2 * 16);
        for key in 0..1000u64 {
            let ticket = cache.get(0, &key).unwrap_err();
            cache.offer(0, key, key, ticket);
            assert_eq!(cache.get(0, &7.min(key)).ok(), Some(7.min(key)));
        }
        let shard = cache.shards[0].read();
        assert!(shard.young.len() + shard.old.len() <= 32);
    }

    #[test]
    fn a_late_reader_cannot_bring_back_the_past() {
        let cache = Generations::<u64, u64>::new(1000);
        let ticket = cache.get(0, &1).unwrap_err();
        cache.publish(0, 1, Some(2));
        cache.offer(0, 1, 1, ticket);
        assert_eq!(cache.get(0, &1).ok(), Some(2));
        cache.publish(0, 1, None);
        assert!(cache.get(0, &1).is_err());
    }
}
