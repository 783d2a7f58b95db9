//! stat(2), statx(2), access(2), statfs(2) and their kin.

use super::{active, alias, at, means_fd, on_fd, wanted};
use crate::ops::{attr, fill};
use crate::path::Wanted;
use crate::{fds, real};
use libc::{AT_FDCWD, AT_SYMLINK_NOFOLLOW, c_char, c_int, c_uint};

type Path = *const c_char;

#[unsafe(no_mangle)]
unsafe extern "C" fn fstatat64(
    dir: c_int,
    path: Path,
    out: *mut libc::stat64,
    flags: c_int,
) -> c_int {
    if means_fd(path, flags) && fds::is_weft(dir) {
        return fstat64(dir, out);
    }
    let tell = |_: &_, spot: &crate::path::Spot| {
        *out = fill::stat(spot.dir.mount, &attr::of_spot(spot)?);
        Ok(0)
    };
    at(dir, path, wanted(flags), tell, |dir, path| real::fstatat64(dir, path, out, flags))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fstat64(fd: c_int, out: *mut libc::stat64) -> c_int {
    on_fd(
        fd,
        |process, description| {
            *out = fill::stat(description.mount, &attr::of_file(process, description)?);
            Ok(0)
        },
        || real::fstat64(fd, out),
    )
}

#[unsafe(no_mangle)]
unsafe extern "C" fn stat64(path: Path, out: *mut libc::stat64) -> c_int {
    fstatat64(AT_FDCWD, path, out, 0)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn lstat64(path: Path, out: *mut libc::stat64) -> c_int {
    fstatat64(AT_FDCWD, path, out, AT_SYMLINK_NOFOLLOW)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __xstat64(_: c_int, path: Path, out: *mut libc::stat64) -> c_int {
    stat64(path, out)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __lxstat64(_: c_int, path: Path, out: *mut libc::stat64) -> c_int {
    lstat64(path, out)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __fxstat64(_: c_int, fd: c_int, out: *mut libc::stat64) -> c_int {
    fstat64(fd, out)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __fxstatat64(
    _: c_int,
    dir: c_int,
    path: Path,
    out: *mut libc::stat64,
    flags: c_int,
) -> c_int {
    fstatat64(dir, path, out, flags)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn statx(
    dir: c_int,
    path: Path,
    flags: c_int,
    mask: c_uint,
    out: *mut libc::statx,
) -> c_int {
    let real = |dir, path| real::statx(dir, path, flags, mask, out);
    if means_fd(path, flags) {
        return on_fd(
            dir,
            |process, description| {
                *out = fill::statx(description.mount, &attr::of_file(process, description)?);
                Ok(0)
            },
            || real(dir, path),
        );
    }
    let tell = |_: &_, spot: &crate::path::Spot| {
        *out = fill::statx(spot.dir.mount, &attr::of_spot(spot)?);
        Ok(0)
    };
    at(dir, path, wanted(flags), tell, real)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn faccessat(dir: c_int, path: Path, mode: c_int, flags: c_int) -> c_int {
    at(
        dir,
        path,
        wanted(flags),
        |process, spot| {
            attr::access(process, spot, mode, flags & libc::AT_EACCESS == 0).map(|()| 0)
        },
        |dir, path| real::faccessat(dir, path, mode, flags),
    )
}

#[unsafe(no_mangle)]
unsafe extern "C" fn access(path: Path, mode: c_int) -> c_int {
    faccessat(AT_FDCWD, path, mode, 0)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn euidaccess(path: Path, mode: c_int) -> c_int {
    faccessat(AT_FDCWD, path, mode, libc::AT_EACCESS)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn statfs64(path: Path, out: *mut libc::statfs64) -> c_int {
    at(
        AT_FDCWD,
        path,
        Wanted::Target,
        |process, spot| {
            attr::of_spot(spot)?;
            *out = fill::statfs(&attr::space(process, spot.dir.mount)?);
            Ok(0)
        },
        |_, path| real::statfs64(path, out),
    )
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fstatfs64(fd: c_int, out: *mut libc::statfs64) -> c_int {
    on_fd(
        fd,
        |process, description| {
            *out = fill::statfs(&attr::space(process, description.mount)?);
            Ok(0)
        },
        || real::fstatfs64(fd, out),
    )
}

#[unsafe(no_mangle)]
unsafe extern "C" fn statvfs64(path: Path, out: *mut libc::statvfs64) -> c_int {
    at(
        AT_FDCWD,
        path,
        Wanted::Target,
        |process, spot| {
            attr::of_spot(spot)?;
            *out = fill::statvfs(&attr::space(process, spot.dir.mount)?);
            Ok(0)
        },
        |_, path| real::statvfs64(path, out),
    )
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fstatvfs64(fd: c_int, out: *mut libc::statvfs64) -> c_int {
    on_fd(
        fd,
        |process, description| {
            *out = fill::statvfs(&attr::space(process, description.mount)?);
            Ok(0)
        },
        || real::fstatvfs64(fd, out),
    )
}

/// poll(2): files are always ready; the kernel is asked for the others.
unsafe fn poll_as(
    list: *mut libc::pollfd,
    count: libc::nfds_t,
    wait: impl FnOnce(bool) -> c_int,
) -> c_int {
    let all = match count {
        0 => &mut [][..],
        count => std::slice::from_raw_parts_mut(list, count as usize),
    };
    let is_ours = |one: &libc::pollfd| one.fd >= 0 && fds::is_weft(one.fd);
    if active().is_none() || !all.iter().any(is_ours) {
        return wait(false);
    }
    let ours: Vec<usize> = (0..all.len()).filter(|&at| is_ours(&all[at])).collect();
    // A negative number has the kernel pass over an entry.
    ours.iter().for_each(|&at| all[at].fd = !all[at].fd);
    let others = wait(true);
    for &at in &ours {
        all[at].fd = !all[at].fd;
        all[at].revents = all[at].events & (libc::POLLIN | libc::POLLOUT);
    }
    if others < 0 { others } else { others + ours.len() as c_int }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn poll(list: *mut libc::pollfd, n: libc::nfds_t, timeout: c_int) -> c_int {
    poll_as(list, n, |ready| real::poll(list, n, if ready { 0 } else { timeout }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ppoll(
    list: *mut libc::pollfd,
    n: libc::nfds_t,
    timeout: *const libc::timespec,
    mask: *const libc::sigset_t,
) -> c_int {
    let none = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    poll_as(list, n, |ready| {
        real::ppoll(list, n, if ready { &raw const none } else { timeout }, mask)
    })
}

alias! {
    fn stat(path: Path, out: *mut libc::stat64) -> c_int = stat64;
    fn lstat(path: Path, out: *mut libc::stat64) -> c_int = lstat64;
    fn fstat(fd: c_int, out: *mut libc::stat64) -> c_int = fstat64;
    fn fstatat(d: c_int, path: Path, out: *mut libc::stat64, flags: c_int) -> c_int = fstatat64;
    fn __xstat(v: c_int, path: Path, out: *mut libc::stat64) -> c_int = __xstat64;
    fn __lxstat(v: c_int, path: Path, out: *mut libc::stat64) -> c_int = __lxstat64;
    fn __fxstat(v: c_int, fd: c_int, out: *mut libc::stat64) -> c_int = __fxstat64;
    fn __fxstatat(
        v: c_int, d: c_int, path: Path, out: *mut libc::stat64, flags: c_int,
    ) -> c_int = __fxstatat64;
    fn eaccess(path: Path, mode: c_int) -> c_int = euidaccess;
    fn statfs(path: Path, out: *mut libc::statfs64) -> c_int = statfs64;
    fn fstatfs(fd: c_int, out: *mut libc::statfs64) -> c_int = fstatfs64;
    fn statvfs(path: Path, out: *mut libc::statvfs64) -> c_int = statvfs64;
    fn fstatvfs(fd: c_int, out: *mut libc::statvfs64) -> c_int = fstatvfs64;
    fn __poll(list: *mut libc::pollfd, n: libc::nfds_t, timeout: c_int) -> c_int = poll;
}
