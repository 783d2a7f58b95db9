//! Interruption: from the kernel's `INTERRUPT` message to the request it means.
//!
//! Each worker publishes the request it works on in its own [`Slot`], which costs one uncontended
//! store per request. Interrupts are rare, so the lookup may scan. Deferred requests have left
//! their worker and are kept in a map instead.
//!
//! An interrupt may overtake its request. The kernel repeats one to a request that came through
//! `/dev/fuse` if asked to, but not one to a request that came through a ring, so those are kept.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::abi::InHeader;
use super::request::Request;

/// An interrupt that has not met its request after this long has come too late.
const EARLY: Duration = Duration::from_secs(5);

/// What one worker is doing. Request numbers start at 2, so 0 means nothing.
#[derive(Default)]
#[repr(align(64))] // one cache line each: workers must not slow each other down
pub(crate) struct Slot {
    current: AtomicU64,
    interrupted: AtomicU64,
    caller: AtomicU32,
}

impl Slot {
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

/// A request that has been under way for some time.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Lasting {
    pub unique: u64,
    /// Thread id of the caller, 0 if it is not visible.
    pub caller: u32,
    pub is_deferred: bool,
}

/// All requests that can be interrupted.
pub(crate) struct Interrupts {
    slots: Box<[Slot]>,
    deferred: Mutex<HashMap<u64, Wake>>,
    /// Requests come through rings.
    keeps_early: bool,
    early: Mutex<HashMap<u64, Instant>>,
    early_count: AtomicUsize,
    /// Whether a caller that was sent a signal is going to end.
    is_ending: fn(u32) -> bool,
}

impl Interrupts {
    /// With one slot per worker there may ever be at once. `rings` says whether requests come
    /// through rings. `is_ending` tells whether a thread that was sent some signal is going to end.
    pub(crate) fn new(workers: usize, rings: bool, is_ending: fn(u32) -> bool) -> Arc<Interrupts> {
        Arc::new(Interrupts {
            slots: (0..workers).map(|_| Slot::default()).collect(),
            deferred: Mutex::default(),
            keeps_early: rings,
            early: Mutex::default(),
            early_count: AtomicUsize::new(0),
            is_ending,
        })
    }

    /// A worker takes up a request, and gets its slot.
    pub(crate) fn begin(&self, worker: usize, header: &InHeader) -> &Slot {
        let slot = &self.slots[worker];
        slot.caller.store(header.pid, Relaxed);
        if !self.keeps_early {
            slot.current.store(header.unique, Relaxed);
            return slot;
        }
        // In this order, as `interrupt` has the reverse: one of the two sees the other.
        slot.current.store(header.unique, SeqCst);
        if self.early_count.load(SeqCst) > 0
            && self.was_early(header.unique)
            && (self.is_ending)(header.pid)
        {
            slot.interrupted.store(header.unique, Relaxed);
        }
        slot
    }

    /// A worker has nothing to do.
    pub(crate) fn end(&self, worker: usize) {
        self.slots[worker].current.store(0, Relaxed);
    }

    /// The caller of a request was sent a signal: interrupts a deferred one, and another if its caller is
    /// going to end. False if it is not known (yet, or any more), upon which the kernel
    /// is to be told `EAGAIN` and will ask again as long as the request is unanswered.
    pub(crate) fn interrupt(&self, unique: u64) -> bool {
        let mut deferred = self.deferred.lock();
        if let Some(wake) = deferred.get_mut(&unique) {
            let callback = match std::mem::replace(wake, Wake::Interrupted) {
                Wake::Waiting(callback) => callback,
                Wake::Interrupted => None,
            };
            // The callback may answer the request, which locks again.
            drop(deferred);
            callback.into_iter().for_each(|callback| callback());
            return true;
        }
        if self.keeps_early {
            self.note_early(unique);
        }
        let slot = self.slots.iter().find(|slot| slot.current.load(SeqCst) == unique);
        // Still locked, lest the request becomes deferred unaware of it.
        if let Some(slot) = slot.filter(|slot| (self.is_ending)(slot.caller.load(Relaxed))) {
            slot.interrupted.store(unique, Relaxed);
        }
        if slot.is_some() && self.keeps_early {
            self.was_early(unique);
        }
        slot.is_some() || self.keeps_early
    }

    /// Requests under way at this and at the last call, for which no interrupt has come. `before` is
    /// what this needs to remember, empty at first.
    pub(crate) fn lasting(&self, before: &mut Vec<u64>) -> Vec<Lasting> {
        before.resize(self.slots.len(), 0);
        let mut found = Vec::new();
        for (slot, before) in self.slots.iter().zip(before) {
            let unique = slot.current.load(Relaxed);
            if unique != 0 && unique == *before && !slot.interrupted(unique) {
                let is_deferred = match self.deferred.lock().get(&unique) {
                    Some(Wake::Interrupted) => continue,
                    wake => wake.is_some(),
                };
                let caller = slot.caller.load(Relaxed);
                found.push(Lasting { unique, caller, is_deferred });
            }
            *before = unique;
        }
        found
    }

    fn note_early(&self, unique: u64) {
        let mut early = self.early.lock();
        early.retain(|_, since| since.elapsed() < EARLY);
        early.insert(unique, Instant::now());
        self.early_count.store(early.len(), SeqCst);
    }

    /// Whether an interrupt of this request was kept, which it no longer is.
    fn was_early(&self, unique: u64) -> bool {
        let mut early = self.early.lock();
        early.retain(|_, since| since.elapsed() < EARLY);
        let found = early.remove(&unique).is_some();
        self.early_count.store(early.len(), SeqCst);
        found
    }

    /// A request becomes deferred; must come before its worker leaves it.
    pub(crate) fn defer(&self, request: &Request<'_>) {
        let mut deferred = self.deferred.lock();
        let wake = if request.interrupted() { Wake::Interrupted } else { Wake::Waiting(None) };
        deferred.insert(request.unique, wake);
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

    fn header(unique: u64) -> InHeader {
        InHeader { unique, ..InHeader::default() }
    }

    #[test]
    fn reaches_the_worker_and_only_its_present_request() {
        let interrupts = Interrupts::new(2, false, |_| true);
        assert!(!interrupts.interrupt(10));
        let slot = interrupts.begin(1, &header(10));
        assert!(!slot.interrupted(10));
        assert!(interrupts.interrupt(10));
        assert!(slot.interrupted(10));
        interrupts.begin(1, &header(12));
        assert!(!slot.interrupted(12));
        assert!(!interrupts.interrupt(10));
    }

    #[test]
    fn a_signal_that_ends_nobody_interrupts_deferred_requests_only() {
        let interrupts = Interrupts::new(2, false, |caller| caller == 1);
        let header = |unique, pid| InHeader { unique, pid, ..InHeader::default() };
        let (spared, ended) = (header(4, 2), header(6, 1));
        assert!(!interrupts.begin(0, &spared).interrupted(4) && interrupts.interrupt(4));
        assert!(!interrupts.slots[0].interrupted(4));
        assert!(!interrupts.begin(1, &ended).interrupted(6) && interrupts.interrupt(6));
        assert!(interrupts.slots[1].interrupted(6));
        interrupts.defer(&Request::new(&spared, &[], Some(&interrupts.slots[0])));
        assert!(interrupts.interrupt(4) && interrupts.deferred_interrupted(4));
    }

    #[test]
    fn requests_that_last_are_found() {
        let interrupts = Interrupts::new(3, true, |_| true);
        let begin = |worker, unique| {
            interrupts.begin(worker, &InHeader { unique, pid: 7, ..InHeader::default() });
        };
        let mut before = Vec::new();
        begin(0, 2);
        begin(1, 4);
        assert_eq!(interrupts.lasting(&mut before), []);
        begin(0, 6);
        let lasting = Lasting { unique: 4, caller: 7, is_deferred: false };
        assert_eq!(interrupts.lasting(&mut before), [lasting]);
        interrupts.interrupt(4);
        interrupts.end(0);
        assert_eq!(interrupts.lasting(&mut before), []);
    }

    #[test]
    fn an_interrupt_that_overtakes_its_request_is_kept_for_it() {
        let interrupts = Interrupts::new(1, true, |_| true);
        assert!(interrupts.interrupt(10));
        assert!(!interrupts.begin(0, &header(12)).interrupted(12));
        assert!(interrupts.begin(0, &header(10)).interrupted(10));
        assert!(interrupts.early.lock().is_empty());
        assert!(interrupts.interrupt(10));
        assert!(interrupts.early.lock().is_empty());
    }

    #[test]
    fn calls_back_a_deferred_request_whenever_it_is_interrupted() {
        for stage in 0..3 {
            let interrupts = Interrupts::new(1, false, |_| true);
            let called = Arc::new(AtomicBool::new(false));
            let mark = called.clone();
            let header = header(4);
            let request = Request::new(&header, &[], Some(interrupts.begin(0, &header)));
            let at = |now| assert!(now != stage || interrupts.interrupt(4));
            at(0);
            interrupts.defer(&request);
            at(1);
            interrupts.on_interrupt(4, Box::new(move || mark.store(true, Relaxed)));
            at(2);
            assert!(called.load(Relaxed) && interrupts.deferred_interrupted(4));
            interrupts.end(0);
            interrupts.answered(4);
            assert!(!interrupts.interrupt(4));
        }
    }
}
