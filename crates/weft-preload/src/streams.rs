//! Streams of the C library (`FILE`) on Weft files.
//!
//! The C library's streams do not read and write through functions that can be replaced. So streams on Weft files are
//! made by `fopencookie`, with functions of ours, and so are standard input, output and error from the moment
//! that their number stands for a Weft file: then the variables `stdin`, `stdout` and `stderr` are exchanged.

use crate::guard::{errno, set_errno};
use libc::{FILE, c_char, c_int, c_void, off64_t, size_t, ssize_t};
use parking_lot::Mutex;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Functions of a stream, as the C library wants them.
#[repr(C)]
struct Functions {
    read: extern "C" fn(*mut c_void, *mut c_char, size_t) -> ssize_t,
    write: extern "C" fn(*mut c_void, *const c_char, size_t) -> ssize_t,
    seek: extern "C" fn(*mut c_void, *mut off64_t, c_int) -> c_int,
    close: extern "C" fn(*mut c_void) -> c_int,
}

unsafe extern "C" {
    fn fopencookie(cookie: *mut c_void, mode: *const c_char, functions: Functions) -> *mut FILE;
    // As this library has them, or in its tests the C library.
    fn read(fd: c_int, buf: *mut c_void, len: size_t) -> ssize_t;
    fn write(fd: c_int, buf: *const c_void, len: size_t) -> ssize_t;
    fn lseek64(fd: c_int, offset: off64_t, whence: c_int) -> off64_t;
    fn close(fd: c_int) -> c_int;
}

/// Streams of ours: address and number.
static OURS: Mutex<Vec<(usize, RawFd)>> = Mutex::new(Vec::new());
/// How many there are.
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn number(cookie: *mut c_void) -> RawFd {
    cookie as usize as RawFd
}

extern "C" fn read_some(cookie: *mut c_void, buf: *mut c_char, len: size_t) -> ssize_t {
    // SAFETY: the stream's own buffer.
    unsafe { read(number(cookie), buf.cast(), len) }
}

/// All of it, or the C library takes the stream to be broken.
extern "C" fn write_all(cookie: *mut c_void, buf: *const c_char, len: size_t) -> ssize_t {
    let mut done = 0;
    while done < len {
        // SAFETY: the stream's own buffer.
        let written = unsafe { write(number(cookie), buf.add(done).cast(), len - done) };
        match written {
            1.. => done += written as usize,
            _ if errno() == libc::EINTR => {}
            _ => break,
        }
    }
    done as ssize_t
}

extern "C" fn seek(cookie: *mut c_void, offset: *mut off64_t, whence: c_int) -> c_int {
    // SAFETY: the C library's own variable.
    let wish = unsafe { *offset };
    // SAFETY: seeking has no preconditions.
    let at = unsafe { lseek64(number(cookie), wish, whence) };
    if at < 0 {
        return -1;
    }
    // SAFETY: as above.
    unsafe { *offset = at };
    0
}

extern "C" fn close_number(cookie: *mut c_void) -> c_int {
    // SAFETY: the stream's own descriptor.
    unsafe { close(number(cookie)) }
}

/// A stream on a descriptor.
pub fn open(fd: RawFd, mode: *const c_char) -> *mut FILE {
    let functions = Functions { read: read_some, write: write_all, seek, close: close_number };
    // SAFETY: the mode is the caller's, and checked by the C library.
    let stream = unsafe { fopencookie(fd as usize as *mut c_void, mode, functions) };
    if !stream.is_null() {
        OURS.lock().push((stream as usize, fd));
        COUNT.fetch_add(1, Ordering::Relaxed);
    }
    stream
}

/// The descriptor of a stream of ours.
pub fn find(stream: *mut FILE) -> Option<RawFd> {
    if COUNT.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let ours = OURS.lock();
    ours.iter().find(|(address, _)| *address == stream as usize).map(|(_, fd)| *fd)
}

/// The stream is about to be closed.
pub fn forget(stream: *mut FILE) {
    let mut ours = OURS.lock();
    let before = ours.len();
    ours.retain(|(address, _)| *address != stream as usize);
    COUNT.fetch_sub(before - ours.len(), Ordering::Relaxed);
}

/// The variable of a standard stream.
fn variable(fd: RawFd) -> *mut *mut FILE {
    let name = match fd {
        0 => c"stdin",
        1 => c"stdout",
        _ => c"stderr",
    };
    // SAFETY: the name ends with a zero.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()).cast() }
}

/// The standard stream of a number, as it is now.
pub fn standard(fd: RawFd) -> *mut FILE {
    let variable = variable(fd);
    // SAFETY: the C library's variable, or null.
    if variable.is_null() { std::ptr::null_mut() } else { unsafe { *variable } }
}

/// A standard number stands for a Weft file, or is about to: its stream becomes one of ours, for good.
pub fn follow(fd: RawFd) {
    let variable = variable(fd);
    // SAFETY: the C library's variable, or null.
    if variable.is_null() || find(unsafe { *variable }).is_some() {
        return;
    }
    let before = errno();
    // SAFETY: as above; what waits in the old stream goes where it was meant to go.
    unsafe {
        if !(*variable).is_null() {
            libc::fflush(*variable);
        }
        let stream = open(fd, if fd == 0 { c"r".as_ptr() } else { c"w".as_ptr() });
        if !stream.is_null() {
            if fd == 2 {
                libc::setvbuf(stream, std::ptr::null_mut(), libc::_IONBF, 0);
            }
            *variable = stream;
        }
    }
    set_errno(before);
}

/// Writes what waits in streams of ours, before the clients leave.
pub fn flush() {
    let streams: Vec<usize> = OURS.lock().iter().map(|(address, _)| *address).collect();
    for stream in streams {
        // SAFETY: open, since whoever closes one forgets it first.
        unsafe { libc::fflush(stream as *mut FILE) };
    }
}

/// In a child, whose parent's other threads may have had the list.
pub fn in_child() {
    // SAFETY: the only thread of the child.
    if OURS.is_locked() {
        unsafe { OURS.force_unlock() };
    }
}

/// What open(2) is told for a mode of fopen(3). Nothing if it is none.
pub fn flags(mode: &[u8]) -> Option<i32> {
    let (first, rest) = mode.split_first()?;
    // What follows a comma concerns characters.
    let rest = rest.split(|&byte| byte == b',').next().unwrap_or_default();
    let both = rest.contains(&b'+');
    let access = |one| if both { libc::O_RDWR } else { one };
    let mut flags = match first {
        b'r' => access(libc::O_RDONLY),
        b'w' => access(libc::O_WRONLY) | libc::O_CREAT | libc::O_TRUNC,
        b'a' => access(libc::O_WRONLY) | libc::O_CREAT | libc::O_APPEND,
        _ => return None,
    };
    if rest.contains(&b'x') {
        flags |= libc::O_EXCL;
    }
    if rest.contains(&b'e') {
        flags |= libc::O_CLOEXEC;
    }
    Some(flags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_those_of_fopen() {
        assert_eq!(flags(b"r"), Some(libc::O_RDONLY));
        assert_eq!(flags(b"rb+"), Some(libc::O_RDWR));
        assert_eq!(
            flags(b"we"),
            Some(libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC | libc::O_CLOEXEC)
        );
        assert_eq!(flags(b"a,ccs=x+"), Some(libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND));
        assert_eq!((flags(b""), flags(b"z")), (None, None));
    }
}
