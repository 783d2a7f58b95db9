//! chmod(2), chown(2), utimensat(2) and their kin.

use super::{at, means_fd, on_fd, wanted};
use crate::ops::attr;
use crate::path::{Errno, Spot};
use crate::process::Process;
use crate::{fds, real};
use libc::{AT_FDCWD, AT_SYMLINK_NOFOLLOW, c_char, c_int, gid_t, mode_t, timespec, timeval, uid_t};
use weft_model::{FileType, SetAttr};

type Path = *const c_char;

fn set(process: &Process, spot: &Spot, change: &SetAttr) -> Result<c_int, Errno> {
    let fid = attr::of_spot(spot)?.fid;
    attr::set(process, spot.dir.mount, fid, change).map(|()| 0)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fchmodat(dir: c_int, path: Path, mode: mode_t, flags: c_int) -> c_int {
    let change = |process: &Process, spot: &Spot| match attr::of_spot(spot)?.kind {
        FileType::Symlink => Err(Errno(libc::EOPNOTSUPP)),
        _ => set(process, spot, &attr::mode(mode)),
    };
    at(dir, path, wanted(flags), change, |dir, path| real::fchmodat(dir, path, mode, flags))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn chmod(path: Path, mode: mode_t) -> c_int {
    fchmodat(AT_FDCWD, path, mode, 0)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fchmod(fd: c_int, mode: mode_t) -> c_int {
    on_fd(
        fd,
        |p, file| attr::set(p, file.mount, file.fid, &attr::mode(mode)).map(|()| 0),
        || real::fchmod(fd, mode),
    )
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fchownat(
    dir: c_int,
    path: Path,
    uid: uid_t,
    gid: gid_t,
    flags: c_int,
) -> c_int {
    if means_fd(path, flags) && fds::is_weft(dir) {
        return fchown(dir, uid, gid);
    }
    at(
        dir,
        path,
        wanted(flags),
        |process, spot| set(process, spot, &attr::owner(&attr::of_spot(spot)?, uid, gid)),
        |dir, path| real::fchownat(dir, path, uid, gid, flags),
    )
}

#[unsafe(no_mangle)]
unsafe extern "C" fn chown(path: Path, uid: uid_t, gid: gid_t) -> c_int {
    fchownat(AT_FDCWD, path, uid, gid, 0)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn lchown(path: Path, uid: uid_t, gid: gid_t) -> c_int {
    fchownat(AT_FDCWD, path, uid, gid, AT_SYMLINK_NOFOLLOW)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fchown(fd: c_int, uid: uid_t, gid: gid_t) -> c_int {
    on_fd(
        fd,
        |process, file| {
            let owner = attr::owner(&attr::of_file(process, file)?, uid, gid);
            attr::set(process, file.mount, file.fid, &owner).map(|()| 0)
        },
        || real::fchown(fd, uid, gid),
    )
}

unsafe fn pair(times: *const timespec) -> Option<[timespec; 2]> {
    (!times.is_null()).then(|| [*times, *times.add(1)])
}

#[unsafe(no_mangle)]
unsafe extern "C" fn utimensat(
    dir: c_int,
    path: Path,
    times: *const timespec,
    flags: c_int,
) -> c_int {
    if path.is_null() {
        return futimens(dir, times);
    }
    at(
        dir,
        path,
        wanted(flags),
        |process, spot| set(process, spot, &attr::times(pair(times))?),
        |dir, path| real::utimensat(dir, path, times, flags),
    )
}

#[unsafe(no_mangle)]
unsafe extern "C" fn futimens(fd: c_int, times: *const timespec) -> c_int {
    on_fd(
        fd,
        |process, file| {
            let times = attr::times(pair(times))?;
            attr::set(process, file.mount, file.fid, &times).map(|()| 0)
        },
        || real::futimens(fd, times),
    )
}

/// Microseconds as nanoseconds.
unsafe fn fine(times: *const timeval) -> Option<[timespec; 2]> {
    let one = |time: timeval| timespec { tv_sec: time.tv_sec, tv_nsec: time.tv_usec * 1000 };
    (!times.is_null()).then(|| [one(*times), one(*times.add(1))])
}

fn address(times: &Option<[timespec; 2]>) -> *const timespec {
    times.as_ref().map_or(std::ptr::null(), |times| times.as_ptr())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn futimesat(dir: c_int, path: Path, times: *const timeval) -> c_int {
    utimensat(dir, path, address(&fine(times)), 0)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn utimes(path: Path, times: *const timeval) -> c_int {
    utimensat(AT_FDCWD, path, address(&fine(times)), 0)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn lutimes(path: Path, times: *const timeval) -> c_int {
    utimensat(AT_FDCWD, path, address(&fine(times)), AT_SYMLINK_NOFOLLOW)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn futimes(fd: c_int, times: *const timeval) -> c_int {
    futimens(fd, address(&fine(times)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn utime(path: Path, times: *const libc::utimbuf) -> c_int {
    let whole = |secs| timespec { tv_sec: secs, tv_nsec: 0 };
    let times = times.as_ref().map(|times| [whole(times.actime), whole(times.modtime)]);
    utimensat(AT_FDCWD, path, address(&times), 0)
}
