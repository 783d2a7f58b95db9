//! The slots of a session: numbers for modifying requests (see [`weft_model::Xid`]).

use parking_lot::{Condvar, Mutex};
use std::collections::BTreeSet;
use weft_model::Xid;

/// Slots that operations may keep at a time; the others are left to single requests, so that nobody who
/// keeps one waits for ever for another.
const MAX_KEPT: usize = Xid::MAX_SLOTS as usize / 2;

/// Hands out slots; a slot carries one request at a time.
#[derive(Debug, Default)]
pub struct SlotPool {
    state: Mutex<State>,
    returned: Condvar,
}

#[derive(Debug, Default)]
struct State {
    idle: Vec<(u16, u64)>,
    made: u16,
    kept: usize,
    /// Sequence before the first one of a slot.
    base: u64,
    /// Kept since before this process.
    inherited: BTreeSet<u16>,
}

impl State {
    /// A slot that was never used here, with the sequence before its first request.
    fn make(&mut self) -> Option<(u16, u64)> {
        while self.inherited.contains(&self.made) {
            self.made += 1;
        }
        (self.made < Xid::MAX_SLOTS).then(|| {
            self.made += 1;
            (self.made - 1, self.base)
        })
    }
}

/// A slot in use, with the number of its current request; goes back when dropped.
#[derive(Debug)]
pub struct Slot<'a> {
    pool: &'a SlotPool,
    slot: u16,
    sequence: u64,
}

impl SlotPool {
    /// Takes a slot; waits when all are in use (each of them ends by its own deadline).
    pub fn take(&self) -> Slot<'_> {
        let mut state = self.state.lock();
        loop {
            if let Some((slot, sequence)) = state.idle.pop().or_else(|| state.make()) {
                return Slot { pool: self, slot, sequence: sequence + 1 };
            }
            self.returned.wait(&mut state);
        }
    }

    /// Goes on in the session of an earlier process, which has used sequences up to `base` at most and
    /// whose numbers `kept` are given back by those who carry out its operations.
    pub fn inherit(&self, base: u64, kept: &[Xid]) {
        let mut state = self.state.lock();
        state.base = base;
        state.inherited = kept.iter().map(|xid| xid.slot()).collect();
        state.kept = state.inherited.len();
    }

    /// Gives a kept number's slot back.
    pub fn give_back(&self, xid: Xid) {
        let mut state = self.state.lock();
        let sequence = xid.sequence().max(state.base);
        state.kept -= 1;
        state.idle.push((xid.slot(), sequence));
        self.returned.notify_one();
    }
}

impl Slot<'_> {
    /// The number of the request.
    pub const fn xid(&self) -> Xid {
        Xid::new(self.slot, self.sequence)
    }

    /// Keeps the number until [`SlotPool::give_back`], if not too many are kept and `note` notes it.
    ///
    /// # Errors
    /// The slot, which is not kept.
    pub fn keep(self, note: impl FnOnce(Xid) -> bool) -> Result<Xid, Self> {
        let mut state = self.pool.state.lock();
        if state.kept >= MAX_KEPT {
            return Err(self);
        }
        state.kept += 1;
        drop(state);
        let xid = self.xid();
        if !note(xid) {
            self.pool.state.lock().kept -= 1;
            return Err(self);
        }
        std::mem::forget(self);
        Ok(xid)
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.pool.state.lock().idle.push((self.slot, self.sequence));
        self.pool.returned.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_counts_its_requests() {
        let pool = SlotPool::default();
        let first = pool.take();
        let second = pool.take();
        assert_eq!((first.xid(), second.xid()), (Xid::new(0, 1), Xid::new(1, 1)));
        drop(first);
        assert_eq!(pool.take().xid(), Xid::new(0, 2));
    }

    #[test]
    fn a_kept_slot_is_not_used_before_it_is_given_back() {
        let pool = SlotPool::default();
        let kept = pool.take().keep(|_| true).unwrap();
        assert_eq!(pool.take().xid(), Xid::new(1, 1));
        pool.give_back(kept);
        assert_eq!(pool.take().xid(), Xid::new(0, 2));
        assert!(pool.take().keep(|_| false).is_err());
    }

    #[test]
    fn a_successor_uses_newer_numbers_and_leaves_inherited_slots_alone() {
        let pool = SlotPool::default();
        pool.inherit(100, &[Xid::new(0, 7)]);
        assert_eq!(pool.take().xid(), Xid::new(1, 101));
        pool.give_back(Xid::new(0, 7));
        assert_eq!(pool.take().xid(), Xid::new(0, 101));
    }

    #[test]
    fn not_all_slots_can_be_kept() {
        let pool = SlotPool::default();
        let kept = (0..Xid::MAX_SLOTS).map_while(|_| pool.take().keep(|_| true).ok());
        assert_eq!(kept.count(), MAX_KEPT);
        assert!(pool.take().keep(|_| true).is_err());
    }
}
