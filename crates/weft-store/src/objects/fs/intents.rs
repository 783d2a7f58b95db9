//! Writes in progress, in a file mapped into memory: what `kill -9` leaves of it tells the next
//! start which blocks may have data of one write and the checksum of another.
//!
//! The mapping is shared, so a store to it is in the page cache at once, at the price of a store.
//! A slot is claimed, filled, and only then marked active, in this order; the process dies between
//! instructions, so an active slot is complete. After a power cut the file may say anything; what
//! it says is then done in addition to what the marks say, which does no harm.
#![allow(unsafe_code)] // A shared mapping has no safe interface in std.

use crate::files;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use weft_model::{Fid, ObjectId, Result};

/// Slots: no more threads than this change objects of one target at a time without waiting.
const SLOTS: usize = 1024;
const BYTES: usize = SLOTS * size_of::<Slot>();

const FREE: u32 = 0;
const CLAIMED: u32 = 1;
const ACTIVE: u32 = 2;

/// One slot, a cache line. A fresh file of zeros has free slots.
#[repr(C, align(64))]
struct Slot {
    state: AtomicU32,
    index: AtomicU32,
    fid: AtomicU64,
    offset: AtomicU64,
    len: AtomicU64,
}

/// The range of an object whose checksums may be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Intent {
    /// The object.
    pub id: ObjectId,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
}

/// The mapped file.
pub struct Intents {
    slots: *mut Slot,
    /// Where the next search starts, so that threads do not meet.
    hint: AtomicUsize,
}

// SAFETY: the mapping lives as long as the value, and is only accessed through atomics.
unsafe impl Send for Intents {}
// SAFETY: as above.
unsafe impl Sync for Intents {}

/// An intent that is on record until dropped.
pub struct Claim<'a>(&'a Slot);

impl Intents {
    /// Makes the file, with all its space, so that a full disk cannot fail a store to it.
    pub fn format(path: &Path) -> Result<()> {
        let write = || -> std::io::Result<()> {
            std::fs::write(path, vec![0; BYTES])?;
            File::open(path)?.sync_all()
        };
        write().map_err(|error| files::fail("format intents", path, &error))
    }

    /// Maps the file, made anew when it is missing or of the wrong size.
    pub fn open(path: &Path) -> Result<Intents> {
        if !std::fs::metadata(path).is_ok_and(|meta| meta.len() == BYTES as u64) {
            Intents::format(path)?;
        }
        let io = |error: std::io::Error| files::fail("map intents", path, &error);
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(io)?;
        // SAFETY: a new shared mapping of a file that has the length and that only the holder of
        // the target's lock opens; the descriptor may be closed afterwards.
        let address = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let fd = file.as_raw_fd();
            libc::mmap(std::ptr::null_mut(), BYTES, access, libc::MAP_SHARED, fd, 0)
        };
        if address == libc::MAP_FAILED {
            return Err(io(std::io::Error::last_os_error()));
        }
        Ok(Intents { slots: address.cast(), hint: AtomicUsize::new(0) })
    }

    fn slots(&self) -> &[Slot] {
        // SAFETY: the mapping has SLOTS slots, is page-aligned, and any bytes are valid atomics.
        unsafe { std::slice::from_raw_parts(self.slots, SLOTS) }
    }

    /// Puts on record that the range is about to change.
    pub fn claim(&self, intent: Intent) -> Claim<'_> {
        let slots = self.slots();
        let mut at = self.hint.fetch_add(1, Ordering::Relaxed);
        let slot = loop {
            let slot = &slots[at % SLOTS];
            let claim =
                slot.state.compare_exchange(FREE, CLAIMED, Ordering::Acquire, Ordering::Relaxed);
            if claim.is_ok() {
                break slot;
            }
            at = at.wrapping_add(1);
            if at.is_multiple_of(SLOTS) {
                std::thread::yield_now();
            }
        };
        slot.fid.store(intent.id.fid.0, Ordering::Relaxed);
        slot.index.store(intent.id.index, Ordering::Relaxed);
        slot.offset.store(intent.offset, Ordering::Relaxed);
        slot.len.store(intent.len, Ordering::Relaxed);
        slot.state.store(ACTIVE, Ordering::Release);
        Claim(slot)
    }

    /// The intents that the last process left.
    pub fn left_over(&self) -> Vec<Intent> {
        let active = |slot: &&Slot| slot.state.load(Ordering::Acquire) == ACTIVE;
        let read = |slot: &Slot| Intent {
            id: ObjectId {
                fid: Fid(slot.fid.load(Ordering::Relaxed)),
                index: slot.index.load(Ordering::Relaxed),
            },
            offset: slot.offset.load(Ordering::Relaxed),
            len: slot.len.load(Ordering::Relaxed),
        };
        self.slots().iter().filter(active).map(read).collect()
    }

    /// Frees all slots, once what they say is dealt with.
    pub fn clear(&self) {
        self.slots().iter().for_each(|slot| slot.state.store(FREE, Ordering::Release));
    }
}

impl Drop for Intents {
    fn drop(&mut self) {
        // SAFETY: the mapping of `open`, unmapped once; no claim outlives the borrow of self.
        unsafe { libc::munmap(self.slots.cast(), BYTES) };
    }
}

impl Claim<'_> {
    /// Leaves the intent for the next start: its range could not be put right now.
    pub fn leave(self) {
        std::mem::forget(self);
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.0.state.store(FREE, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_active_is_found_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("intents");
        let intent = |n| Intent { id: ObjectId { fid: Fid(n), index: 1 }, offset: n * 10, len: 5 };
        let intents = Intents::open(&path).unwrap();
        let done = intents.claim(intent(1));
        intents.claim(intent(2)).leave();
        drop(done);
        drop(intents);
        let intents = Intents::open(&path).unwrap();
        assert_eq!(intents.left_over(), vec![intent(2)]);
        intents.clear();
        assert!(intents.left_over().is_empty());
    }
}
