//! mkdir(2), unlink(2), rename(2), link(2), symlink(2), readlink(2) and their kin.

use super::{active, answer, at, means_fd, wanted};
use crate::guard::{errno, set_errno};
use crate::ops::names;
use crate::path::{Errno, Place, Spot, Wanted};
use crate::process::Process;
use crate::real;
use libc::{AT_FDCWD, AT_REMOVEDIR, c_char, c_int, c_uint, dev_t, mode_t, size_t, ssize_t};
use std::ffi::{CStr, CString};

type Path = *const c_char;

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mkdirat(dir: c_int, path: Path, mode: mode_t) -> c_int {
    at(
        dir,
        path,
        Wanted::Name,
        |process, spot| names::mkdir(process, spot, mode).map(|()| 0),
        |dir, path| real::mkdirat(dir, path, mode),
    )
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mkdir(path: Path, mode: mode_t) -> c_int {
    mkdirat(AT_FDCWD, path, mode)
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mknodat(
    dir: c_int,
    path: Path,
    mode: mode_t,
    device: dev_t,
) -> c_int {
    at(
        dir,
        path,
        Wanted::Name,
        |process, spot| names::mknod(process, spot, mode, device).map(|()| 0),
        |dir, path| real::mknodat(dir, path, mode, device),
    )
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mknod(path: Path, mode: mode_t, device: dev_t) -> c_int {
    mknodat(AT_FDCWD, path, mode, device)
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mkfifo(path: Path, mode: mode_t) -> c_int {
    mknodat(AT_FDCWD, path, mode & !libc::S_IFMT | libc::S_IFIFO, 0)
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mkfifoat(dir: c_int, path: Path, mode: mode_t) -> c_int {
    mknodat(dir, path, mode & !libc::S_IFMT | libc::S_IFIFO, 0)
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn unlinkat(dir: c_int, path: Path, flags: c_int) -> c_int {
    at(
        dir,
        path,
        Wanted::Name,
        |process, spot| names::remove(process, spot, flags & AT_REMOVEDIR != 0).map(|()| 0),
        |dir, path| real::unlinkat(dir, path, flags),
    )
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn unlink(path: Path) -> c_int {
    unlinkat(AT_FDCWD, path, 0)
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn rmdir(path: Path) -> c_int {
    unlinkat(AT_FDCWD, path, AT_REMOVEDIR)
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn remove(path: Path) -> c_int {
    let before = errno();
    if unlink(path) == 0 {
        return 0;
    }
    if !matches!(errno(), libc::EISDIR | libc::EPERM) {
        return -1;
    }
    set_errno(before);
    rmdir(path)
}

/// Two paths: both ours, both the kernel's, or `EXDEV`.
unsafe fn both(
    (from, a): (c_int, Path),
    (to, b): (c_int, Path),
    source: Wanted,
    weft: impl FnOnce(&Process, &Spot, &Spot) -> Result<(), Errno>,
    real: impl Fn(c_int, Path, c_int, Path) -> c_int,
) -> c_int {
    let Some(process) = active().filter(|_| !a.is_null() && !b.is_null()) else {
        return real(from, a, to, b);
    };
    let (first, second) = (CStr::from_ptr(a), CStr::from_ptr(b));
    if process.leaves_alone(from, first) && process.leaves_alone(to, second) {
        let out = real(from, a, to, b);
        // Links may have led one inside, where the kernel finds nothing.
        if out == 0 || errno() != libc::ENOENT {
            return out;
        }
    }
    let places = crate::guard::guarded(|| {
        let first = process.find(from, first, source)?;
        Ok((first, process.find(to, second, Wanted::Name)?))
    });
    match places {
        Err(_) => -1,
        Ok((Place::Real(a), Place::Real(b))) => {
            let (Ok(a), Ok(b)) = (CString::new(a), CString::new(b)) else { return -1 };
            real(AT_FDCWD, a.as_ptr(), AT_FDCWD, b.as_ptr())
        }
        Ok((Place::Weft(a), Place::Weft(b))) => answer(|| weft(process, &a, &b).map(|()| 0)),
        Ok(_) => {
            set_errno(libc::EXDEV);
            -1
        }
    }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn renameat2(
    from: c_int,
    a: Path,
    to: c_int,
    b: Path,
    flags: c_uint,
) -> c_int {
    both(
        (from, a),
        (to, b),
        Wanted::Name,
        |process, a, b| names::rename(process, a, b, flags),
        |from, a, to, b| real::renameat2(from, a, to, b, flags),
    )
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn renameat(from: c_int, a: Path, to: c_int, b: Path) -> c_int {
    renameat2(from, a, to, b, 0)
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn rename(a: Path, b: Path) -> c_int {
    renameat2(AT_FDCWD, a, AT_FDCWD, b, 0)
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn linkat(
    from: c_int,
    a: Path,
    to: c_int,
    b: Path,
    flags: c_int,
) -> c_int {
    if means_fd(a, flags) && crate::fds::is_weft(from) {
        return link_fd(from, to, b);
    }
    let follows = flags & libc::AT_SYMLINK_FOLLOW != 0;
    both(
        (from, a),
        (to, b),
        if follows { Wanted::Target } else { Wanted::Itself },
        names::link,
        |from, a, to, b| real::linkat(from, a, to, b, flags),
    )
}

/// Gives an open file a name, as those that were made without one get it.
unsafe fn link_fd(fd: c_int, to: c_int, b: Path) -> c_int {
    let Some(process) = active().filter(|_| !b.is_null()) else { return -1 };
    answer(|| {
        let file = process.get(fd).ok_or(Errno(libc::EBADF))?;
        let Place::Weft(spot) = process.find(to, CStr::from_ptr(b), Wanted::Name)? else {
            return Err(Errno(libc::EXDEV));
        };
        let dir = crate::path::Dir { mount: file.mount, ..spot.dir.clone() };
        let found = Some(crate::ops::attr::of_file(process, &file)?);
        let from = Spot { dir, name: Vec::new(), found, slash: false };
        names::link(process, &from, &spot).map(|()| 0)
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn link(a: Path, b: Path) -> c_int {
    linkat(AT_FDCWD, a, AT_FDCWD, b, 0)
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn symlinkat(target: Path, dir: c_int, path: Path) -> c_int {
    at(
        dir,
        path,
        Wanted::Name,
        |process, spot| {
            names::symlink(process, spot, CStr::from_ptr(target).to_bytes()).map(|()| 0)
        },
        |dir, path| real::symlinkat(target, dir, path),
    )
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn symlink(target: Path, path: Path) -> c_int {
    symlinkat(target, AT_FDCWD, path)
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn readlinkat(
    dir: c_int,
    path: Path,
    buf: *mut c_char,
    len: size_t,
) -> ssize_t {
    at(
        dir,
        path,
        wanted(libc::AT_SYMLINK_NOFOLLOW),
        |process, spot| {
            let target = names::read_link(process, spot)?;
            let len = target.len().min(len);
            std::ptr::copy_nonoverlapping(target.as_ptr().cast(), buf, len);
            Ok(len as ssize_t)
        },
        |dir, path| real::readlinkat(dir, path, buf, len),
    )
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn readlink(path: Path, buf: *mut c_char, len: size_t) -> ssize_t {
    readlinkat(AT_FDCWD, path, buf, len)
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn __readlink_chk(
    path: Path,
    buf: *mut c_char,
    len: size_t,
    room: size_t,
) -> ssize_t {
    if len > room {
        libc::abort();
    }
    readlink(path, buf, len)
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn __readlinkat_chk(
    dir: c_int,
    path: Path,
    buf: *mut c_char,
    len: size_t,
    room: size_t,
) -> ssize_t {
    if len > room {
        libc::abort();
    }
    readlinkat(dir, path, buf, len)
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn __xmknod(
    _: c_int,
    path: Path,
    mode: mode_t,
    device: *const dev_t,
) -> c_int {
    mknod(path, mode, *device)
}
