//! What the kernel's handle numbers stand for.

use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Shards, so that threads seldom meet.
const SHARDS: usize = 16;

/// Things by number.
pub(super) struct Table<T> {
    shards: [RwLock<HashMap<u64, Arc<T>>>; SHARDS],
    next: AtomicU64,
}

impl<T> Default for Table<T> {
    fn default() -> Table<T> {
        Table { shards: std::array::from_fn(|_| RwLock::default()), next: AtomicU64::new(1) }
    }
}

impl<T> Table<T> {
    fn shard(&self, number: u64) -> &RwLock<HashMap<u64, Arc<T>>> {
        &self.shards[number as usize % SHARDS]
    }

    /// Adds a thing and answers its number, which is never used again.
    pub(super) fn add(&self, thing: T) -> u64 {
        let number = self.next.fetch_add(1, Relaxed);
        self.shard(number).write().insert(number, Arc::new(thing));
        number
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
    fn numbers_are_not_used_again() {
        let table = Table::default();
        let (one, two) = (table.add("one"), table.add("two"));
        assert_eq!(table.get(one).as_deref(), Some(&"one"));
        assert_eq!(table.remove(one).as_deref(), Some(&"one"));
        assert!(table.get(one).is_none() && table.remove(one).is_none());
        let three = table.add("three");
        assert!(three != one && three != two);
    }
}
