//! Operations under way: what each has chosen, by the number of the kernel's request.
//!
//! A place is 16 words: the request's number, 0 if the place is free, then pairs of what was chosen and
//! how. A pair counts from when its first word is written, which is last.

use super::memory::Memory;
use parking_lot::Mutex;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use weft_client::Choice;
use weft_model::Xid;

/// Places: as many as operations can be under way, and as many again that an earlier process has left.
const PLACES: usize = 1024;
const WORDS: usize = 16;
const PAIRS: usize = (WORDS - 2) / 2;
/// Bytes of all places.
pub(super) const BYTES: usize = PLACES * WORDS * 8;
/// Set in the number of a request that was sent to an earlier process before (`FUSE_UNIQUE_RESEND`).
const RESENT: u64 = 1 << 63;

/// The operation that a thread carries out.
#[derive(Default)]
struct Current {
    /// 0 for none.
    unique: u64,
    place: Option<usize>,
    /// Choices of an earlier process, in their order, that were not asked for yet.
    earlier: Vec<(u64, u64)>,
}

thread_local! {
    static CURRENT: RefCell<Current> = RefCell::default();
}

/// All places.
pub(super) struct Places {
    /// First word.
    at: usize,
    free: Mutex<Vec<usize>>,
    /// Of operations that an earlier process has left, by their requests' numbers.
    left: Mutex<HashMap<u64, usize>>,
}

/// What operations had noted that have ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// Numbers of requests.
    pub numbers: Vec<Xid>,
    /// Handles.
    pub handles: Vec<u64>,
}

impl Ended {
    fn add(&mut self, (what, value): (u64, u64)) {
        match Choice(what) {
            choice if choice.is_number() => self.numbers.push(Xid(value)),
            Choice::HANDLE => self.handles.push(value),
            _ => {}
        }
    }
}

impl Places {
    /// Finds what an earlier process has left, beginning with word `at`.
    pub(super) fn read(memory: &Memory, at: usize) -> Places {
        let mut places = Places { at, free: Mutex::default(), left: Mutex::default() };
        let (mut free, mut left) = (Vec::new(), HashMap::new());
        for place in (0..PLACES).rev() {
            let words = places.words(memory, place);
            match words[0].load(Acquire) {
                0 => {
                    words.iter().for_each(|word| word.store(0, Relaxed));
                    free.push(place);
                }
                unique => {
                    left.insert(unique, place);
                }
            }
        }
        (places.free, places.left) = (Mutex::new(free), Mutex::new(left));
        places
    }

    fn words<'a>(&self, memory: &'a Memory, place: usize) -> &'a [AtomicU64] {
        let range: Range<usize> = self.at + place * WORDS..self.at + (place + 1) * WORDS;
        &memory.words()[range]
    }

    fn pairs(&self, memory: &Memory, place: usize) -> Vec<(u64, u64)> {
        let words = self.words(memory, place);
        let pair = |at: usize| (words[1 + 2 * at].load(Acquire), words[2 + 2 * at].load(Relaxed));
        (0..PAIRS).map(pair).filter(|&(what, _)| what != 0).collect()
    }

    /// What is noted for operations that an earlier process has left.
    pub(super) fn left(&self, memory: &Memory) -> Ended {
        let mut all = Ended::default();
        let left = self.left.lock();
        left.values().flat_map(|&place| self.pairs(memory, place)).for_each(|pair| all.add(pair));
        all
    }

    /// This thread takes up a request.
    pub(super) fn begin(&self, memory: &Memory, unique: u64) {
        CURRENT.with_borrow_mut(|current| {
            current.unique = unique & !RESENT;
            if unique & RESENT != 0 {
                current.place = self.left.lock().remove(&current.unique);
                let pairs = current.place.map(|place| self.pairs(memory, place));
                current.earlier = pairs.unwrap_or_default();
            }
        });
    }

    /// Its request was answered.
    pub(super) fn end(&self, memory: &Memory) -> Option<Ended> {
        let place = CURRENT.with_borrow_mut(|current| {
            current.unique = 0;
            current.earlier.clear();
            current.place.take()
        })?;
        Some(self.clear(memory, place))
    }

    fn clear(&self, memory: &Memory, place: usize) -> Ended {
        let mut ended = Ended::default();
        self.pairs(memory, place).into_iter().for_each(|pair| ended.add(pair));
        self.words(memory, place).iter().for_each(|word| word.store(0, Release));
        self.free.lock().push(place);
        ended
    }

    /// Operations that an earlier process has left and that have not come again never will.
    pub(super) fn abandon(&self, memory: &Memory) -> Ended {
        let mut all = Ended::default();
        for (_, place) in std::mem::take(&mut *self.left.lock()) {
            let Ended { numbers, handles } = self.clear(memory, place);
            all.numbers.extend(numbers);
            all.handles.extend(handles);
        }
        all
    }

    pub(super) fn made(&self, choice: Choice) -> Option<u64> {
        CURRENT.with_borrow_mut(|current| {
            let at = current.earlier.iter().position(|&(what, _)| what == choice.0)?;
            Some(current.earlier.remove(at).1)
        })
    }

    pub(super) fn make(&self, memory: &Memory, choice: Choice, value: u64) -> bool {
        CURRENT.with_borrow_mut(|current| {
            if current.unique == 0 {
                return false;
            }
            let Some(place) = current.place.or_else(|| self.free.lock().pop()) else {
                return false;
            };
            let words = self.words(memory, place);
            if current.place.replace(place).is_none() {
                words[0].store(current.unique, Release);
            }
            // In the order in which they are made: behind those that are noted already.
            let free =
                (0..PAIRS).rev().take_while(|at| words[1 + 2 * at].load(Relaxed) == 0).last();
            let Some(at) = free else { return false };
            words[2 + 2 * at].store(value, Release);
            words[1 + 2 * at].store(choice.0, Release);
            true
        })
    }

    pub(super) fn unmake(&self, memory: &Memory, choice: Choice, value: u64) {
        let Some(place) = CURRENT.with_borrow(|current| current.place) else { return };
        let words = self.words(memory, place);
        let is_it = |at: &usize| {
            words[1 + 2 * at].load(Relaxed) == choice.0 && words[2 + 2 * at].load(Relaxed) == value
        };
        if let Some(at) = (0..PAIRS).find(is_it) {
            words[1 + 2 * at].store(0, Release);
        }
    }
}
