//! What a mount's process notes for its successor, in memory that another process keeps.
//!
//! The kernel sends requests that were not answered again, so all that a successor needs besides is: the
//! terms agreed on with the kernel, the client's identity, open files and locks (`records`), and what
//! operations under way have chosen (`places`), so that they are carried out once. Each word is written
//! in an order in which a process may die after any of them. Design: `docs/design/0009-mount-holder.md`.

mod memory;
mod places;
mod records;
#[cfg(test)]
mod tests;

pub use self::places::Ended;
pub use self::records::Shown;

use self::memory::Memory;
use self::places::Places;
use self::records::{Found, Records};
use crate::kernel::{Features, Terms};
use parking_lot::Mutex;
use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering::{Acquire, Release};
use weft_client::{Choice, Choices, Legacy, LockRange, OpenFlags, Reopened};
use weft_model::{ClientId, Fid};

/// Version of everything here: layout of the memory and what its words mean. A successor that does not
/// know it must not begin.
pub const VERSION: u64 = 0x7765_6674_0000_0001;

const HEAD: usize = 4096;
const BYTES: usize = HEAD + places::BYTES + records::BYTES;

/// Words of the head.
mod word {
    /// 0 in a new journal.
    pub(super) const VERSION: usize = 0;
    pub(super) const PROCESSES: usize = 1;
    pub(super) const CLIENT: usize = 2;
    pub(super) const ROOT: usize = 3;
    /// Records from this one on were never used.
    pub(super) const USED: usize = 4;
    pub(super) const FEATURES: usize = 5;
    pub(super) const SIZES: usize = 6;
    pub(super) const BACKGROUND: usize = 7;
    pub(super) const TIME_GRAN: usize = 8;
}

/// The journal of a mount, open in the process that serves it.
pub struct Journal {
    memory: Memory,
    places: Places,
    records: Mutex<Records>,
    /// What the kernel had open when this process began.
    shown: Vec<(Reopened, Shown)>,
    legacy: Legacy,
}

/// An open file that the kernel knows from an earlier process.
pub type Known = (Reopened, Shown);

/// Makes the memory of a new journal: whoever keeps the descriptor keeps the journal.
///
/// # Errors
/// Those of `memfd_create(2)`.
pub fn create() -> io::Result<OwnedFd> {
    memory::create(BYTES)
}

/// The version of what is in a journal; 0 if nothing is yet.
///
/// # Errors
/// Those of mapping it.
pub fn version(fd: BorrowedFd<'_>) -> io::Result<u64> {
    Ok(Memory::map(fd, HEAD)?.words()[word::VERSION].load(Acquire))
}

impl Journal {
    /// Opens a journal, new or with what an earlier process has left.
    ///
    /// # Errors
    /// `InvalidData` for one of another version, and those of mapping it.
    pub fn open(fd: BorrowedFd<'_>) -> io::Result<Journal> {
        let memory = Memory::map(fd, BYTES)?;
        let head = memory.words();
        match head[word::VERSION].load(Acquire) {
            0 => head[word::VERSION].store(VERSION, Release),
            VERSION => {}
            other => {
                let why = format!("the mount's state is of version {other:#x}, not {VERSION:#x}");
                return Err(io::Error::new(io::ErrorKind::InvalidData, why));
            }
        }
        let processes = head[word::PROCESSES].fetch_add(1, Release);
        let places = Places::read(&memory, HEAD / 8);
        let used = head[word::USED].load(Acquire) as usize;
        let (records, found) = Records::read(&memory, (HEAD + places::BYTES) / 8, used);
        let ids = (ClientId(head[word::CLIENT].load(Acquire)), Fid(head[word::ROOT].load(Acquire)));
        let (legacy, shown) = inherit(ids, processes, found, &places.left(&memory));
        Ok(Journal { memory, places, records: Mutex::new(records), shown, legacy })
    }

    /// What an earlier process has left.
    pub const fn legacy(&self) -> &Legacy {
        &self.legacy
    }

    /// Open files that the kernel knows from an earlier process.
    pub fn known(&self) -> &[Known] {
        &self.shown
    }

    /// Notes who the client is, and the terms that were agreed on with the kernel.
    pub fn note_mount(&self, client: ClientId, root: Fid, terms: &Terms) {
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let head = self.memory.words();
        head[word::CLIENT].store(client.0, Release);
        head[word::ROOT].store(root.0, Release);
        head[word::FEATURES].store(terms.features.bits(), Release);
        head[word::SIZES].store(pair(terms.max_write, terms.max_readahead), Release);
        let background = pair(terms.max_background.into(), terms.congestion_threshold.into());
        head[word::BACKGROUND].store(background, Release);
        head[word::TIME_GRAN].store(pair(terms.time_gran, terms.max_stack_depth), Release);
    }

    /// The terms that were agreed on with the kernel.
    pub fn terms(&self) -> Terms {
        let load = |at: usize| self.memory.words()[at].load(Acquire);
        let pair = |at: usize| (load(at) as u32, (load(at) >> 32) as u32);
        let (max_write, max_readahead) = pair(word::SIZES);
        let (max_background, congestion_threshold) = pair(word::BACKGROUND);
        let (time_gran, max_stack_depth) = pair(word::TIME_GRAN);
        Terms {
            features: Features::from_bits(load(word::FEATURES)),
            max_write,
            max_readahead,
            max_background: max_background as u16,
            congestion_threshold: congestion_threshold as u16,
            time_gran,
            max_stack_depth,
        }
    }

    /// This thread takes up a request of the kernel.
    pub fn begin(&self, unique: u64) {
        self.places.begin(&self.memory, unique);
    }

    /// The request that this thread took up was answered. What had been noted for it, if anything.
    pub fn end(&self) -> Option<Ended> {
        self.places.end(&self.memory)
    }

    /// Requests that have not come again since this process began never will. What was noted for them,
    /// without the handles that are known to be open.
    pub fn abandon(&self) -> Ended {
        let mut ended = self.places.abandon(&self.memory);
        let known: HashSet<u64> = self.shown.iter().map(|(open, _)| open.handle).collect();
        ended.handles.retain(|handle| !known.contains(handle));
        ended
    }

    /// The kernel is told the number of a handle.
    pub fn show(&self, handle: u64, shown: Shown) {
        self.records.lock().shown(&self.memory, handle, shown);
    }

    fn change(&self, change: impl FnOnce(&mut Records, &Memory) -> bool) {
        let mut records = self.records.lock();
        if !change(&mut records, &self.memory) {
            tracing::warn!("too much is open: not all of it would outlive the mount's process");
        }
        let used = records.used() as u64;
        self.memory.words()[word::USED].fetch_max(used, Release);
    }
}

/// What the client carries on with, and what the kernel knows. A handle that the kernel was not told of is
/// either of an operation under way, which will open it again, or of none, and is closed.
fn inherit(
    (client, root): (ClientId, Fid),
    processes: u64,
    found: Found,
    left: &Ended,
) -> (Legacy, Vec<Known>) {
    let (known, other): (Vec<Known>, Vec<Known>) =
        found.opens.into_iter().partition(|(_, shown)| *shown != Shown::No);
    let unknown = other.iter().map(|(open, _)| open.handle);
    let legacy = Legacy {
        client,
        root,
        opens: known.iter().map(|(open, _)| *open).collect(),
        locks: found.locks,
        lost: found.waits,
        unknown: unknown.filter(|handle| !left.handles.contains(handle)).collect(),
        numbers: left.numbers.clone(),
        processes,
    };
    (legacy, known)
}

impl Choices for Journal {
    fn made(&self, choice: Choice) -> Option<u64> {
        self.places.made(choice)
    }

    fn make(&self, choice: Choice, value: u64) -> bool {
        self.places.make(&self.memory, choice, value)
    }

    fn unmake(&self, choice: Choice, value: u64) {
        self.places.unmake(&self.memory, choice, value);
    }
}

impl weft_client::Journal for Journal {
    fn opened(&self, handle: u64, fid: Fid, flags: OpenFlags) {
        self.change(|records, memory| records.opened(memory, handle, fid, flags));
    }

    fn closed(&self, handle: u64) {
        self.change(|records, memory| {
            records.closed(memory, handle);
            true
        });
    }

    fn locked(&self, fid: Fid, held: &[LockRange]) {
        self.change(|records, memory| records.locked(memory, fid, held));
    }

    fn waits(&self, fid: Fid, waits: bool) {
        self.change(|records, memory| {
            records.waits(memory, fid, waits);
            true
        });
    }
}

impl std::fmt::Debug for Journal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Journal").field("legacy", &self.legacy).finish_non_exhaustive()
    }
}

/// A journal that nobody else keeps, for tests and tools.
///
/// # Errors
/// Those of [`create`] and [`Journal::open`].
pub fn alone() -> io::Result<(OwnedFd, Journal)> {
    let fd = create()?;
    let journal = Journal::open(fd.as_fd())?;
    Ok((fd, journal))
}
