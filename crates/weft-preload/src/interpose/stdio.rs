//! fopen(3), freopen(3), fdopen(3), fclose(3), fileno(3).

use super::{active, alias, fd, open};
use crate::guard::set_errno;
use crate::{fds, real, streams};
use libc::{FILE, c_char, c_int};
use std::ffi::CStr;

type Text = *const c_char;

/// Permission bits of files that fopen(3) makes, before the mask.
const MODE: libc::mode_t = 0o666;

unsafe fn flags(mode: Text) -> Option<c_int> {
    let flags = streams::flags(CStr::from_ptr(mode).to_bytes());
    if flags.is_none() {
        set_errno(libc::EINVAL);
    }
    flags
}

/// Of a Weft file only; what the kernel opens gets a stream of the C library's.
unsafe fn on(fd: c_int, mode: Text) -> *mut FILE {
    let stream = match fds::is_weft(fd) {
        true => streams::open(fd, mode),
        false => real::fdopen(fd, mode),
    };
    if stream.is_null() {
        fd::close(fd);
    }
    stream
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fopen64(path: Text, mode: Text) -> *mut FILE {
    if active().is_none() || path.is_null() {
        return real::fopen64(path, mode);
    }
    let Some(flags) = flags(mode) else { return std::ptr::null_mut() };
    let fd = open::openat64(libc::AT_FDCWD, path, flags, MODE);
    if fd < 0 { std::ptr::null_mut() } else { on(fd, mode) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fdopen(fd: c_int, mode: Text) -> *mut FILE {
    if active().is_none() || !fds::is_weft(fd) {
        return real::fdopen(fd, mode);
    }
    streams::open(fd, mode)
}

/// A stream stays on its number, which becomes another file's.
#[unsafe(no_mangle)]
unsafe extern "C" fn freopen64(path: Text, mode: Text, stream: *mut FILE) -> *mut FILE {
    let number = streams::find(stream);
    if active().is_none() || path.is_null() {
        if number.is_some() {
            set_errno(libc::EBADF);
            return std::ptr::null_mut();
        }
        return real::freopen64(path, mode, stream);
    }
    let Some(flags) = flags(mode) else { return std::ptr::null_mut() };
    let opened = open::openat64(libc::AT_FDCWD, path, flags, MODE);
    if opened < 0 {
        return std::ptr::null_mut();
    }
    let (number, standard) = match number {
        Some(number) => (number, false),
        None => (real::fileno(stream), true),
    };
    if standard && !fds::is_weft(opened) {
        fd::close(opened);
        // Nothing of it is ours. It has been cut already if that was wanted.
        return real::freopen64(path, mode, stream);
    }
    if standard && !(0..3).contains(&number) {
        // Streams of the C library cannot come to stand for Weft files; the standard ones are exchanged.
        fd::close(opened);
        set_errno(libc::EOPNOTSUPP);
        return std::ptr::null_mut();
    }
    libc::fflush(stream);
    let moved = fd::dup3(opened, number, flags & libc::O_CLOEXEC);
    fd::close(opened);
    if moved < 0 {
        return std::ptr::null_mut();
    }
    if standard {
        return streams::standard(number);
    }
    libc::clearerr(stream);
    stream
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fclose(stream: *mut FILE) -> c_int {
    if streams::find(stream).is_some() {
        streams::forget(stream);
    }
    real::fclose(stream)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fileno(stream: *mut FILE) -> c_int {
    match streams::find(stream) {
        Some(fd) => fd,
        None => real::fileno(stream),
    }
}

alias! {
    fn fopen(path: Text, mode: Text) -> *mut FILE = fopen64;
    fn freopen(path: Text, mode: Text, stream: *mut FILE) -> *mut FILE = freopen64;
    fn fileno_unlocked(stream: *mut FILE) -> c_int = fileno;
}
