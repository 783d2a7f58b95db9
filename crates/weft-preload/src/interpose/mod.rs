//! The functions of the C library that ours stand before.
//!
//! Each asks whether it is concerned, which costs a look at a bit or a comparison of names, and if not, goes on to
//! the real one. Their callers promise what the manual pages ask of them, and no more is relied upon.

#![allow(unsafe_op_in_unsafe_fn)]

mod attr;
mod cwd;
mod dir;
mod exec;
mod fd;
mod io;
mod life;
mod misc;
mod names;
mod open;
mod spawn;
mod stat;
mod stdio;
mod temp;
mod xattr;

use crate::description::Description;
use crate::fds;
use crate::guard::{Inside, errno, guarded, is_inside, set_errno};
use crate::path::{Errno, Spot, Wanted};
use crate::process::{Process, process};
use crate::world::Route;
use libc::{c_char, c_int};
use std::ffi::CStr;

/// What a function answers when it has failed.
pub(crate) trait Failing {
    /// That.
    const FAILURE: Self;
    /// Whether it is.
    fn is_failure(&self) -> bool;
}

macro_rules! failing {
    ($($kind:ty),*) => { $(
        impl Failing for $kind {
            const FAILURE: $kind = -1;
            fn is_failure(&self) -> bool {
                *self == -1
            }
        }
    )* };
}
failing!(i32, i64, isize);

impl<T> Failing for *mut T {
    const FAILURE: *mut T = std::ptr::null_mut();
    fn is_failure(&self) -> bool {
        self.is_null()
    }
}

/// The process, if this call is the program's and there is anything configured.
pub(crate) fn active() -> Option<&'static Process> {
    if is_inside() { None } else { process() }
}

/// Does something inside; a failure is told as the C library does.
pub(crate) fn answer<T: Failing>(act: impl FnOnce() -> Result<T, Errno>) -> T {
    guarded(act).unwrap_or(T::FAILURE)
}

/// Does something with an open file: ours or the kernel's.
pub(crate) fn on_fd<T: Failing>(
    fd: c_int,
    weft: impl FnOnce(&Process, &Description) -> Result<T, Errno>,
    real: impl FnOnce() -> T,
) -> T {
    if !fds::is_weft(fd) {
        return real();
    }
    let Some(process) = active() else { return real() };
    answer(|| {
        let description = process.get(fd).ok_or(Errno(libc::EBADF))?;
        weft(process, &description)
    })
}

/// Does something with what a path names: ours or the kernel's.
pub(crate) fn at<T: Failing>(
    dir: c_int,
    path: *const c_char,
    wanted: Wanted,
    weft: impl FnOnce(&Process, &Spot) -> Result<T, Errno>,
    real: impl Fn(c_int, *const c_char) -> T,
) -> T {
    let Some(process) = active().filter(|_| !path.is_null()) else { return real(dir, path) };
    // SAFETY: a path of the program's, which ends with a zero.
    let name = unsafe { CStr::from_ptr(path) };
    match guarded(|| process.route(dir, name, wanted)) {
        Err(_) => T::FAILURE,
        Ok(Route::Weft(spot)) => answer(|| weft(process, &spot)),
        Ok(Route::Real(path)) => real(libc::AT_FDCWD, path.as_ptr()),
        Ok(Route::Through) => {
            let out = real(dir, path);
            let lost = out.is_failure() && matches!(errno(), libc::ENOENT | libc::ENOTDIR);
            match lost.then(|| reconsider(process, dir, name, wanted)).flatten() {
                Some(spot) => answer(|| weft(process, &spot)),
                None => out,
            }
        }
    }
}

/// The kernel has not found a path; links may lead inside.
fn reconsider(process: &Process, dir: c_int, path: &CStr, wanted: Wanted) -> Option<Spot> {
    let before = errno();
    let inside = Inside::enter();
    let spot = process.second_thought(dir, path, wanted);
    drop(inside);
    set_errno(before);
    spot
}

/// `AT_SYMLINK_NOFOLLOW` in words.
pub(crate) fn wanted(flags: c_int) -> Wanted {
    if flags & libc::AT_SYMLINK_NOFOLLOW != 0 { Wanted::Itself } else { Wanted::Target }
}

/// Whether a call means its descriptor, not a path: `AT_EMPTY_PATH`.
pub(crate) unsafe fn means_fd(path: *const c_char, flags: c_int) -> bool {
    flags & libc::AT_EMPTY_PATH != 0 && (path.is_null() || *path == 0)
}

/// Defines functions that do what another one does under another name.
macro_rules! alias {
    ($(fn $name:ident($($arg:ident: $kind:ty),* $(,)?) -> $out:ty = $of:path;)*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($arg: $kind),*) -> $out {
            $of($($arg),*)
        }
    )* };
}
pub(crate) use alias;
