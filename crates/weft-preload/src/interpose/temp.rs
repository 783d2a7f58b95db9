//! mkstemp(3) and its kin: the C library opens what it makes by functions that cannot be replaced.

use super::{active, alias, names, open};
use crate::guard::{errno, set_errno};
use crate::real;
use libc::{c_char, c_int};
use std::ffi::CStr;

/// Letters at the end of a template that are replaced.
const PLACES: usize = 6;
/// Names tried.
const TRIES: usize = 1000;
const LETTERS: &[u8; 62] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/// Tries names until `make` does not find one there already.
unsafe fn name(
    template: *mut c_char,
    suffix: c_int,
    make: impl Fn(*const c_char) -> c_int,
) -> c_int {
    let len = CStr::from_ptr(template).to_bytes().len();
    let end = len.checked_sub(suffix.max(0) as usize);
    let start = end.and_then(|end| end.checked_sub(PLACES));
    let places =
        start.map(|start| std::slice::from_raw_parts_mut(template.add(start).cast(), PLACES));
    let Some(places) = places.filter(|places: &&mut [u8]| **places == *b"XXXXXX") else {
        set_errno(libc::EINVAL);
        return -1;
    };
    let before = errno();
    for _ in 0..TRIES {
        let mut random = getrandom::u64().unwrap_or(1);
        for place in places.iter_mut() {
            *place = LETTERS[(random % LETTERS.len() as u64) as usize];
            random /= LETTERS.len() as u64;
        }
        let made = make(template);
        if made >= 0 {
            set_errno(before);
            return made;
        }
        if errno() != libc::EEXIST {
            break;
        }
    }
    places.copy_from_slice(b"XXXXXX");
    -1
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mkostemps64(template: *mut c_char, suffix: c_int, flags: c_int) -> c_int {
    if active().is_none() {
        return real::mkostemps64(template, suffix, flags);
    }
    let flags = flags & !libc::O_ACCMODE | libc::O_RDWR | libc::O_CREAT | libc::O_EXCL;
    name(template, suffix, |path| open::openat64(libc::AT_FDCWD, path, flags, 0o600))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mkostemp64(template: *mut c_char, flags: c_int) -> c_int {
    mkostemps64(template, 0, flags)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mkstemps64(template: *mut c_char, suffix: c_int) -> c_int {
    mkostemps64(template, suffix, 0)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mkstemp64(template: *mut c_char) -> c_int {
    mkostemps64(template, 0, 0)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mkdtemp(template: *mut c_char) -> *mut c_char {
    if active().is_none() {
        return real::mkdtemp(template);
    }
    match name(template, 0, |path| names::mkdir(path, 0o700)) {
        0 => template,
        _ => std::ptr::null_mut(),
    }
}

alias! {
    fn mkstemp(template: *mut c_char) -> c_int = mkstemp64;
    fn mkstemps(template: *mut c_char, suffix: c_int) -> c_int = mkstemps64;
    fn mkostemp(template: *mut c_char, flags: c_int) -> c_int = mkostemp64;
    fn mkostemps(t: *mut c_char, suffix: c_int, flags: c_int) -> c_int = mkostemps64;
}
