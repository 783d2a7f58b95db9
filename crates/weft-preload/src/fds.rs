//! Numbers of descriptors: which stand for Weft files, and which are the library's own.
//!
//! A Weft file has a real descriptor in the kernel that can do nothing: it keeps the number taken, and whatever
//! reaches the kernel past this library fails with `EBADF` instead of going astray. What the library itself has
//! open lies at high numbers, which the program cannot close.

use crate::real;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

/// Largest number, not included.
pub const MAX: usize = 1 << 16;
/// Own descriptors lie above this, or above three quarters of what is allowed, if that is less.
const HIGH: u64 = 768;

struct Numbers([AtomicU64; MAX / 64]);

static WEFT: Numbers = Numbers([const { AtomicU64::new(0) }; MAX / 64]);
static OWN: Numbers = Numbers([const { AtomicU64::new(0) }; MAX / 64]);
/// What descriptors of Weft files are copies of; -1 until there is one.
static BLANK: AtomicI32 = AtomicI32::new(-1);

impl Numbers {
    fn bit(&self, fd: RawFd) -> Option<(&AtomicU64, u64)> {
        let at = usize::try_from(fd).ok().filter(|&at| at < MAX)?;
        Some((&self.0[at / 64], 1 << (at % 64)))
    }

    fn has(&self, fd: RawFd) -> bool {
        self.bit(fd).is_some_and(|(word, bit)| word.load(Ordering::Relaxed) & bit != 0)
    }

    fn set(&self, fd: RawFd, there: bool) {
        let Some((word, bit)) = self.bit(fd) else { return };
        if there {
            word.fetch_or(bit, Ordering::Relaxed);
        } else {
            word.fetch_and(!bit, Ordering::Relaxed);
        }
    }

    fn all(&self) -> impl Iterator<Item = RawFd> + '_ {
        let words = self.0.iter().enumerate();
        words.flat_map(|(at, word)| {
            let word = word.load(Ordering::Relaxed);
            (0..64).filter(move |bit| word & (1 << bit) != 0).map(move |bit| (at * 64 + bit) as i32)
        })
    }
}

/// Whether a number stands for a Weft file.
pub fn is_weft(fd: RawFd) -> bool {
    WEFT.has(fd)
}

/// Notes whether it does.
pub fn set_weft(fd: RawFd, is: bool) {
    WEFT.set(fd, is);
}

/// Whether a number is the library's own.
pub fn is_own(fd: RawFd) -> bool {
    OWN.has(fd)
}

/// Own numbers from `first` to `last`, in order.
pub fn own_within(first: RawFd, last: RawFd) -> Vec<RawFd> {
    OWN.all().filter(|fd| (first..=last).contains(fd)).collect()
}

/// The library's own from now on.
pub fn protect(fd: RawFd) {
    OWN.set(fd, true);
}

/// Moves a descriptor of the library's out of the program's way.
pub fn adopt(fd: RawFd) -> RawFd {
    if fd < 0 {
        return fd;
    }
    // SAFETY: all bytes zero is a valid value.
    let mut limit: libc::rlimit = unsafe { std::mem::zeroed() };
    // SAFETY: it has room for what the kernel writes.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    let from = HIGH.min(limit.rlim_cur / 4 * 3) as usize;
    // SAFETY: the descriptor is the library's.
    let moved = unsafe { real::fcntl64(fd, libc::F_DUPFD_CLOEXEC, from) };
    if moved < 0 {
        protect(fd);
        return fd;
    }
    protect(moved);
    // SAFETY: as above; there is a copy.
    unsafe { real::close(fd) };
    moved
}

/// Closes what is the library's own.
pub fn close(fd: RawFd) -> i32 {
    OWN.set(fd, false);
    // SAFETY: it is the library's.
    unsafe { real::close(fd) }
}

/// A memory file of the library's own.
pub fn memory(name: &str) -> Option<RawFd> {
    let name = std::ffi::CString::new(name).ok()?;
    // SAFETY: the name ends with a zero.
    let fd = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) };
    (fd >= 0).then(|| adopt(fd))
}

/// Takes the lowest free number for a Weft file. Negative as the kernel says.
pub fn reserve(from: usize, cloexec: bool) -> RawFd {
    let mut blank = BLANK.load(Ordering::Relaxed);
    if blank < 0 {
        blank = adopt(open_blank());
        if blank < 0 {
            return blank;
        }
        if let Err(known) = BLANK.compare_exchange(-1, blank, Ordering::Relaxed, Ordering::Relaxed)
        {
            close(blank);
            blank = known;
        }
    }
    let command = if cloexec { libc::F_DUPFD_CLOEXEC } else { libc::F_DUPFD };
    // SAFETY: a copy of the library's own descriptor.
    let fd = unsafe { real::fcntl64(blank, command, from) };
    if fd as usize >= MAX && fd >= 0 {
        // SAFETY: just made.
        unsafe { real::close(fd) };
        crate::guard::set_errno(libc::EMFILE);
        return -1;
    }
    fd
}

/// Whether an own number is as good in a child as in its parent.
pub fn is_for_all(fd: RawFd) -> bool {
    BLANK.load(Ordering::Relaxed) == fd
}

/// A symbolic link, of all things: not even through `/proc/self/fd` can it be opened for reading or writing.
fn open_blank() -> RawFd {
    let flags = libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    // SAFETY: the path ends with a zero.
    unsafe { real::openat64(libc::AT_FDCWD, c"/proc/self".as_ptr(), flags, 0) }
}

/// Whether a number that was handed over is still what it was.
pub fn is_blank(fd: RawFd) -> bool {
    // SAFETY: asking changes nothing.
    let flags = unsafe { real::fcntl64(fd, libc::F_GETFL, 0) };
    flags >= 0 && flags & libc::O_PATH != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_and_go() {
        let numbers = Box::new(Numbers([const { AtomicU64::new(0) }; MAX / 64]));
        assert!(!numbers.has(3) && !numbers.has(-1));
        [3, 63, 64, 900].iter().for_each(|&fd| numbers.set(fd, true));
        numbers.set(MAX as i32, true);
        assert!(numbers.has(64) && !numbers.has(65) && !numbers.has(MAX as i32));
        numbers.set(63, false);
        assert_eq!(numbers.all().collect::<Vec<_>>(), [3, 64, 900]);
    }
}
