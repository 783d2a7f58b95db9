//! The slots of a session: numbers for modifying requests (see [`weft_model::Xid`]).

use parking_lot::{Condvar, Mutex};
use weft_model::Xid;

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
            if let Some((slot, sequence)) = state.idle.pop() {
                return Slot { pool: self, slot, sequence: sequence + 1 };
            }
            if state.made < Xid::MAX_SLOTS {
                state.made += 1;
                return Slot { pool: self, slot: state.made - 1, sequence: 1 };
            }
            self.returned.wait(&mut state);
        }
    }
}

impl Slot<'_> {
    /// The number of the request.
    pub const fn xid(&self) -> Xid {
        Xid::new(self.slot, self.sequence)
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
}
