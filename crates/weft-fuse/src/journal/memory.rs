//! Memory shared with whoever holds its descriptor: words that outlive this process.
#![allow(unsafe_code)] // mmap(2) and memfd_create(2) have no safe wrapper in std

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

/// A mapping of a descriptor, as words.
pub(super) struct Memory {
    words: NonNull<AtomicU64>,
    count: usize,
}

// SAFETY: what it points to are atomics, mapped until this is dropped.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

/// A new anonymous file of `bytes` zeros. They take memory only once they are written.
pub(super) fn create(bytes: usize) -> io::Result<OwnedFd> {
    // SAFETY: the name is a NUL-terminated string; the descriptor that is returned is ours.
    let fd = unsafe {
        let fd = libc::memfd_create(c"weft-mount".as_ptr(), libc::MFD_CLOEXEC);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        OwnedFd::from_raw_fd(fd)
    };
    // SAFETY: the descriptor is open.
    match unsafe { libc::ftruncate(fd.as_raw_fd(), bytes as libc::off_t) } {
        0 => Ok(fd),
        _ => Err(io::Error::last_os_error()),
    }
}

impl Memory {
    /// Maps `bytes` of a file that has as many.
    pub(super) fn map(fd: BorrowedFd<'_>, bytes: usize) -> io::Result<Memory> {
        let len = std::fs::File::from(fd.try_clone_to_owned()?).metadata()?.len();
        if len < bytes as u64 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the journal is too short"));
        }
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at a place that the kernel chooses; nobody shortens the file, which only
        // processes of this mount have open.
        let at = unsafe {
            libc::mmap(std::ptr::null_mut(), bytes, access, libc::MAP_SHARED, fd.as_raw_fd(), 0)
        };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let words = NonNull::new(at.cast()).ok_or_else(io::Error::last_os_error)?;
        Ok(Memory { words, count: bytes / size_of::<AtomicU64>() })
    }

    /// All words.
    pub(super) fn words(&self) -> &[AtomicU64] {
        // SAFETY: mapped for as long as `self` is there; pages are aligned, and any bits are a number.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr(), self.count) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: mapped with this length, and nobody has a reference any more.
        unsafe { libc::munmap(self.words.as_ptr().cast(), self.count * size_of::<AtomicU64>()) };
    }
}
