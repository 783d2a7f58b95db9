//! What the kernel's handle numbers stand for.

use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::Arc;

/// Shards, so that threads seldom meet.
const SHARDS: usize = 16;

/// Things by number: that of the client's handle, which is never used again.
pub(super) struct Table<T> {
    shards: [RwLock<HashMap<u64, Arc<T>>>; SHARDS],
}

impl<T> Default for Table<T> {
    fn default() -> Table<T> {
        Table { shards: std::array::from_fn(|_| RwLock::default()) }
    }
}

impl<T> Table<T> {
    fn shard(&self, number: u64) -> &RwLock<HashMap<u64, Arc<T>>> {
        &self.shards[number as usize % SHARDS]
    }

    /// Adds a thing.
    pub(super) fn add(&self, number: u64, thing: T) {
        self.shard(number).write().insert(number, Arc::new(thing));
    }

    /// The thing with this number.
    pub(super) fn get(&self, number: u64) -> Option<Arc<T>> {
        self.shard(number).read().get(&number).cloned()
    }

    /// Takes the thing with this number out.
    pub(super) fn remove(&self, number: u64) -> Option<Arc<T>> {
        self.shard(number).write().remove(&number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_are_found_until_they_are_removed() {
        let table = Table::default();
        table.add(1, "one");
        table.add(17, "seventeen");
        assert_eq!(table.get(17).as_deref(), Some(&"seventeen"));
        assert_eq!(table.remove(1).as_deref(), Some(&"one"));
        assert!(table.get(1).is_none() && table.remove(1).is_none());
    }
}
