//! Open files, locks, and files with written data that waits: records of eight words, the first of which
//! says what it is, 0 if it is free. It is written last, and cleared first.

use super::memory::Memory;
use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use weft_client::{LockKind, LockRange, OpenFlags, Reopened};
use weft_model::Fid;

/// Open files and locks that can be noted.
const RECORDS: usize = 256 << 10;
const WORDS: usize = 8;
/// Bytes of all records.
pub(super) const BYTES: usize = RECORDS * WORDS * 8;

const OPEN: u64 = 1;
const LOCK: u64 = 2;
const WAITS: u64 = 3;

/// What is read when a process begins.
#[derive(Default)]
pub(super) struct Found {
    pub(super) opens: Vec<(Reopened, Shown)>,
    pub(super) locks: Vec<(Fid, LockRange)>,
    pub(super) waits: Vec<Fid>,
}

/// What the kernel knows of a handle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shown {
    /// Nothing.
    No,
    /// Its number.
    Yes,
    /// The same, and it reads the file through its page cache.
    Cached,
}

/// Where everything is.
pub(super) struct Records {
    /// First word.
    at: usize,
    free: Vec<usize>,
    /// Records from here on were never used.
    used: usize,
    opens: HashMap<u64, usize>,
    locks: HashMap<u64, Vec<usize>>,
    waits: HashMap<u64, usize>,
}

impl Records {
    /// Reads what is there, beginning with word `at`; records from `used` on were never used.
    pub(super) fn read(memory: &Memory, at: usize, used: usize) -> (Records, Found) {
        let empty = HashMap::new();
        let mut records = Records {
            at,
            free: Vec::new(),
            used: used.min(RECORDS),
            opens: empty,
            locks: HashMap::new(),
            waits: HashMap::new(),
        };
        let mut found = Found::default();
        for number in (0..records.used).rev() {
            let words: [u64; WORDS] =
                std::array::from_fn(|word| records.words(memory, number)[word].load(Acquire));
            match words[0] {
                OPEN => {
                    records.opens.insert(words[1], number);
                    found.opens.push(read_open(&words));
                }
                LOCK => {
                    records.locks.entry(words[1]).or_default().push(number);
                    found.locks.push((Fid(words[1]), read_lock(&words)));
                }
                WAITS => {
                    records.waits.insert(words[1], number);
                    found.waits.push(Fid(words[1]));
                }
                _ => records.free.push(number),
            }
        }
        (records, found)
    }

    fn words<'a>(&self, memory: &'a Memory, number: usize) -> &'a [AtomicU64] {
        &memory.words()[self.at + number * WORDS..][..WORDS]
    }

    /// Records from here on were never used.
    pub(super) const fn used(&self) -> usize {
        self.used
    }

    fn put(&mut self, memory: &Memory, record: [u64; WORDS]) -> Option<usize> {
        let number = match self.free.pop() {
            Some(number) => number,
            None if self.used < RECORDS => {
                self.used += 1;
                self.used - 1
            }
            None => return None,
        };
        let words = self.words(memory, number);
        words[1..].iter().zip(&record[1..]).for_each(|(word, &value)| word.store(value, Relaxed));
        words[0].store(record[0], Release);
        Some(number)
    }

    fn remove(&mut self, memory: &Memory, number: usize) {
        self.words(memory, number)[0].store(0, Release);
        self.free.push(number);
    }

    /// False: there is no room.
    pub(super) fn opened(
        &mut self,
        memory: &Memory,
        handle: u64,
        fid: Fid,
        flags: OpenFlags,
    ) -> bool {
        if self.opens.contains_key(&handle) {
            return true;
        }
        let record = [OPEN, handle, fid.0, flags.bits().into(), 0, 0, 0, 0];
        self.put(memory, record).map(|number| self.opens.insert(handle, number)).is_some()
    }

    pub(super) fn shown(&self, memory: &Memory, handle: u64, shown: Shown) {
        if let Some(&number) = self.opens.get(&handle) {
            self.words(memory, number)[4].store(shown as u64, Release);
        }
    }

    pub(super) fn closed(&mut self, memory: &Memory, handle: u64) {
        if let Some(number) = self.opens.remove(&handle) {
            self.remove(memory, number);
        }
    }

    /// The new ones are written before the old ones go: a process that dies in between has not answered, and
    /// its successor is asked for the change again. False: there is no room.
    pub(super) fn locked(&mut self, memory: &Memory, fid: Fid, held: &[LockRange]) -> bool {
        let new: Vec<_> = held.iter().map(|lock| self.put(memory, write_lock(fid, lock))).collect();
        let all = new.iter().all(Option::is_some);
        for old in self.locks.remove(&fid.0).unwrap_or_default() {
            self.remove(memory, old);
        }
        if !held.is_empty() {
            self.locks.insert(fid.0, new.into_iter().flatten().collect());
        }
        all
    }

    pub(super) fn waits(&mut self, memory: &Memory, fid: Fid, waits: bool) {
        match (self.waits.get(&fid.0).copied(), waits) {
            (None, true) => {
                let number = self.put(memory, [WAITS, fid.0, 0, 0, 0, 0, 0, 0]);
                number.map(|number| self.waits.insert(fid.0, number));
            }
            (Some(number), false) => {
                self.waits.remove(&fid.0);
                self.remove(memory, number);
            }
            _ => {}
        }
    }
}

fn read_open(words: &[u64; WORDS]) -> (Reopened, Shown) {
    let flags = OpenFlags::from_bits(words[3] as u32);
    let shown = match words[4] {
        0 => Shown::No,
        1 => Shown::Yes,
        _ => Shown::Cached,
    };
    (Reopened { handle: words[1], fid: Fid(words[2]), flags }, shown)
}

fn write_lock(fid: Fid, lock: &LockRange) -> [u64; WORDS] {
    let exclusive = u64::from(lock.kind == LockKind::Write);
    let family = u64::from(lock.flock);
    [LOCK, fid.0, lock.owner, lock.start, lock.end, lock.pid.into(), exclusive, family]
}

fn read_lock(words: &[u64; WORDS]) -> LockRange {
    LockRange {
        owner: words[2],
        start: words[3],
        end: words[4],
        pid: words[5] as u32,
        kind: if words[6] == 0 { LockKind::Read } else { LockKind::Write },
        flock: words[7] != 0,
    }
}
