//! Interruption: from the kernel's `INTERRUPT` message to the request it means.
//!
//! Each worker publishes the request it works on in its own [`Slot`], which costs one uncontended
//! store per request. Interrupts are rare, so the lookup may scan. Deferred requests have left
//! their worker and are kept in a map instead.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;

/// What one worker is doing. Request numbers start at 2, so 0 means nothing.
#[derive(Default)]
#[repr(align(64))] // one cache line each: workers must not slow each other down
pub(crate) struct Slot {
    current: AtomicU64,
    interrupted: AtomicU64,
}

impl Slot {
    /// The worker takes up request `unique`, or none (0).
    pub(crate) fn set(&self, unique: u64) {
        self.current.store(unique, Relaxed);
    }

    /// Whether the request was interrupted. The number, not a flag, is kept, so that a late
    /// interrupt cannot hit the slot's next request.
    pub(crate) fn interrupted(&self, unique: u64) -> bool {
        self.interrupted.load(Relaxed) == unique
    }
}

type Callback = Box<dyn FnOnce() + Send>;

/// State of one deferred request.
enum Wake {
    Waiting(Option<Callback>),
    Interrupted,
}

/// All requests that can be interrupted.
pub(crate) struct Interrupts {
    slots: Box<[Slot]>,
    deferred: Mutex<HashMap<u64, Wake>>,
}

impl Interrupts {
    /// With one slot per worker there may ever be at once.
    pub(crate) fn new(workers: usize) -> Arc<Interrupts> {
        let slots = (0..workers).map(|_| Slot::default()).collect();
        Arc::new(Interrupts { slots, deferred: Mutex::default() })
    }

    /// The slot of a worker.
    pub(crate) fn slot(&self, worker: usize) -> &Slot {
        &self.slots[worker]
    }

    /// Interrupts a request; false if it is not known (yet, or any more), upon which the kernel
    /// is to be told `EAGAIN` and will ask again as long as the request is unanswered.
    pub(crate) fn interrupt(&self, unique: u64) -> bool {
        let deferred = self.deferred.lock().get_mut(&unique).map(|wake| {
            match std::mem::replace(wake, Wake::Interrupted) {
                Wake::Waiting(callback) => callback,
                Wake::Interrupted => None,
            }
        });
        if let Some(callback) = deferred {
            // The lock is released: the callback may answer the request, which locks again.
            callback.into_iter().for_each(|callback| callback());
            return true;
        }
        let slot = self.slots.iter().find(|slot| slot.current.load(Relaxed) == unique);
        slot.inspect(|slot| slot.interrupted.store(unique, Relaxed)).is_some()
    }

    /// A request becomes deferrable; must come before its worker leaves it.
    pub(crate) fn defer(&self, unique: u64) {
        self.deferred.lock().insert(unique, Wake::Waiting(None));
    }

    /// A deferred request is answered.
    pub(crate) fn answered(&self, unique: u64) {
        self.deferred.lock().remove(&unique);
    }

    /// Whether a deferred request was interrupted.
    pub(crate) fn deferred_interrupted(&self, unique: u64) -> bool {
        matches!(self.deferred.lock().get(&unique), Some(Wake::Interrupted))
    }

    /// Has `callback` called at the interruption of a deferred request, at once if it has been.
    pub(crate) fn on_interrupt(&self, unique: u64, callback: Callback) {
        let now = match self.deferred.lock().get_mut(&unique) {
            Some(Wake::Waiting(slot)) => {
                *slot = Some(callback);
                None
            }
            Some(Wake::Interrupted) => Some(callback),
            None => None,
        };
        now.into_iter().for_each(|callback| callback());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn reaches_the_worker_and_only_its_present_request() {
        let interrupts = Interrupts::new(2);
        assert!(!interrupts.interrupt(10));
        interrupts.slot(1).set(10);
        assert!(!interrupts.slot(1).interrupted(10));
        assert!(interrupts.interrupt(10));
        assert!(interrupts.slot(1).interrupted(10));
        interrupts.slot(1).set(12);
        assert!(!interrupts.slot(1).interrupted(12));
        assert!(!interrupts.interrupt(10));
    }

    #[test]
    fn calls_back_a_deferred_request_whichever_comes_first() {
        for interrupt_first in [false, true] {
            let interrupts = Interrupts::new(1);
            let called = Arc::new(AtomicBool::new(false));
            let mark = called.clone();
            interrupts.defer(4);
            if interrupt_first {
                assert!(interrupts.interrupt(4));
            }
            interrupts.on_interrupt(4, Box::new(move || mark.store(true, Relaxed)));
            if !interrupt_first {
                assert!(interrupts.interrupt(4));
            }
            assert!(called.load(Relaxed) && interrupts.deferred_interrupted(4));
            interrupts.answered(4);
            assert!(!interrupts.interrupt(4));
        }
    }
}
