//! Offsets of open files, in memory that a child shares with its parent.
//!
//! Each process puts the offsets of what it opens into slabs of its own. At fork a slab is *shared* from then on:
//! parent and child go on using its slots for the files they both have open, and put new files into new
//! slabs, so that neither takes a slot that the other still uses.

use crate::fds;
use parking_lot::Mutex;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Slots of a slab.
const SLOTS: usize = 1024;
/// Between two tries to get hold of a slot.
const PAUSE: Duration = Duration::from_micros(50);
/// A slot that is held for longer is taken: its holder is stuck, or dead and its number used again.
const HELD_TOO_LONG: Duration = Duration::from_secs(60);

#[repr(C, align(64))]
#[derive(Default)]
struct Cell {
    offset: AtomicU64,
    /// The process that is using the offset.
    holder: AtomicU32,
}

/// Memory with offsets.
pub struct Slab {
    memory: RawFd,
    cells: *const Cell,
    shared: AtomicBool,
    used: Mutex<Vec<bool>>,
}

// SAFETY: the cells are atomic, and mapped until the slab is dropped.
unsafe impl Send for Slab {}
// SAFETY: as above.
unsafe impl Sync for Slab {}

impl Slab {
    /// A new one; nothing if the system has no memory or descriptors left.
    pub fn new() -> Option<Arc<Slab>> {
        let memory = fds::memory("weft-offsets")?;
        // SAFETY: the descriptor is ours.
        let sized = unsafe { libc::ftruncate(memory, size_of::<[Cell; SLOTS]>() as i64) };
        let slab = Slab::map(memory, false);
        if sized != 0 || slab.is_none() {
            fds::close(memory);
            return None;
        }
        slab
    }

    /// One that was handed over.
    pub fn inherited(memory: RawFd) -> Option<Arc<Slab>> {
        fds::protect(memory);
        Slab::map(memory, true)
    }

    fn map(memory: RawFd, shared: bool) -> Option<Arc<Slab>> {
        let (access, len) = (libc::PROT_READ | libc::PROT_WRITE, size_of::<[Cell; SLOTS]>());
        let at = std::ptr::null_mut();
        // SAFETY: a new mapping, of a memory file that is as long.
        let cells = unsafe { libc::mmap(at, len, access, libc::MAP_SHARED, memory, 0) };
        (cells != libc::MAP_FAILED).then(|| {
            let used = Mutex::new(vec![shared; SLOTS]);
            Arc::new(Slab { memory, cells: cells.cast(), shared: shared.into(), used })
        })
    }

    /// From now on other processes use it, too.
    pub fn share(&self) {
        self.shared.store(true, Ordering::Relaxed);
    }

    /// A free slot with offset 0, unless the slab is full or shared.
    pub fn take(self: &Arc<Slab>) -> Option<Slot> {
        let mut used = self.used.lock();
        if self.shared.load(Ordering::Relaxed) {
            return None;
        }
        let at = used.iter().position(|used| !used)?;
        used[at] = true;
        let slot = Slot { slab: self.clone(), at: at as u32 };
        slot.cell().offset.store(0, Ordering::Relaxed);
        Some(slot)
    }

    /// A slot that somebody has taken.
    pub fn slot(self: &Arc<Slab>, at: u32) -> Option<Slot> {
        ((at as usize) < SLOTS).then(|| Slot { slab: self.clone(), at })
    }
}

impl Drop for Slab {
    fn drop(&mut self) {
        // SAFETY: mapped by us, and nobody has a slot any more.
        unsafe { libc::munmap(self.cells as *mut libc::c_void, size_of::<[Cell; SLOTS]>()) };
        fds::close(self.memory);
    }
}

/// The place of one open file's offset.
pub struct Slot {
    slab: Arc<Slab>,
    at: u32,
}

impl Slot {
    fn cell(&self) -> &Cell {
        // SAFETY: within the mapping, which lives as long as the slab.
        unsafe { &*self.slab.cells.add(self.at as usize) }
    }

    /// The slab's memory file, and the place in it.
    pub fn place(&self) -> (RawFd, u32) {
        (self.slab.memory, self.at)
    }

    /// The same slot, for a copy of the open file in a child.
    pub fn again(&self) -> Slot {
        Slot { slab: self.slab.clone(), at: self.at }
    }

    /// Does something with the offset while no other process does. The caller keeps its own threads out.
    pub fn with<T>(&self, act: impl FnOnce(&mut u64) -> T) -> T {
        let shared = self.slab.shared.load(Ordering::Relaxed);
        if shared {
            self.hold();
        }
        let cell = self.cell();
        let mut offset = cell.offset.load(Ordering::Relaxed);
        let outcome = act(&mut offset);
        cell.offset.store(offset, Ordering::Relaxed);
        if shared {
            cell.holder.store(0, Ordering::Release);
        }
        outcome
    }

    fn hold(&self) {
        let (own, holder, since) = (std::process::id(), &self.cell().holder, Instant::now());
        loop {
            let taken = holder.compare_exchange(0, own, Ordering::Acquire, Ordering::Relaxed);
            let Err(other) = taken else { return };
            // SAFETY: signal 0 only asks whether the process is there.
            let dead =
                unsafe { libc::kill(other as i32, 0) } != 0 && crate::guard::errno() == libc::ESRCH;
            if dead || other == own || since.elapsed() > HELD_TOO_LONG {
                // Whoever is first has it; the others look again.
                let _ = holder.compare_exchange(other, 0, Ordering::Relaxed, Ordering::Relaxed);
                continue;
            }
            std::thread::sleep(PAUSE);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // Not even locked when shared: in a child, a thread that there is no more may have it.
        if !self.slab.shared.load(Ordering::Relaxed) {
            self.slab.used.lock()[self.at as usize] = false;
        }
    }
}
