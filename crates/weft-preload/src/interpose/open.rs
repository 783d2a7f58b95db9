//! open(2) and its kin.

use super::{alias, at};
use crate::guard::set_errno;
use crate::ops::open::{Outcome, open as open_spot, wanted};
use crate::path::Wanted;
use crate::real;
use libc::{AT_FDCWD, O_CREAT, O_EXCL, O_TRUNC, O_WRONLY, c_char, c_int, mode_t};

/// Answer of an opening that has met a link: no number that open(2) answers with.
const IS_LINK: c_int = c_int::MIN;

type Path = *const c_char;

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn openat64(
    dir: c_int,
    path: Path,
    flags: c_int,
    mode: mode_t,
) -> c_int {
    let first = open_as(dir, path, flags, mode, wanted(flags));
    if first != IS_LINK {
        return first;
    }
    if flags & O_EXCL != 0 {
        set_errno(libc::EEXIST);
        return -1;
    }
    open_as(dir, path, flags, mode, Wanted::Target)
}

unsafe fn open_as(dir: c_int, path: Path, flags: c_int, mode: mode_t, wanted: Wanted) -> c_int {
    let opened = |process: &_, spot: &_| match open_spot(process, spot, flags, mode)? {
        Outcome::Open(fd) => Ok(fd),
        Outcome::IsLink => Ok(IS_LINK),
    };
    at(dir, path, wanted, opened, |dir, path| real::openat64(dir, path, flags, mode))
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn open64(path: Path, flags: c_int, mode: mode_t) -> c_int {
    openat64(AT_FDCWD, path, flags, mode)
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn creat64(path: Path, mode: mode_t) -> c_int {
    openat64(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode)
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn __open64_2(path: Path, flags: c_int) -> c_int {
    openat64(AT_FDCWD, path, flags, 0)
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn __openat64_2(dir: c_int, path: Path, flags: c_int) -> c_int {
    openat64(dir, path, flags, 0)
}

alias! {
    fn open(path: Path, flags: c_int, mode: mode_t) -> c_int = open64;
    fn __open(path: Path, flags: c_int, mode: mode_t) -> c_int = open64;
    fn __open64(path: Path, flags: c_int, mode: mode_t) -> c_int = open64;
    fn openat(dir: c_int, path: Path, flags: c_int, mode: mode_t) -> c_int = openat64;
    fn creat(path: Path, mode: mode_t) -> c_int = creat64;
    fn __open_2(path: Path, flags: c_int) -> c_int = __open64_2;
    fn __openat_2(dir: c_int, path: Path, flags: c_int) -> c_int = __openat64_2;
}
