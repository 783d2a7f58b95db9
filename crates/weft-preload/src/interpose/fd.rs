//! Descriptors: close, dup, fcntl, ioctl.

use super::{active, alias, answer, on_fd};
use crate::guard::{is_inside, set_errno};
use crate::ops::lock;
use crate::path::Errno;
use crate::process::Process;
use crate::{fds, real, streams};
use libc::{FD_CLOEXEC, O_CLOEXEC, c_int, c_uint, c_ulong};

/// close_range(2): only mark them.
const CLOSE_RANGE_CLOEXEC: c_int = 4;

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn close(fd: c_int) -> c_int {
    if fds::is_own(fd) {
        if is_inside() {
            return fds::close(fd);
        }
        // What the library needs is not the program's to close.
        set_errno(libc::EBADF);
        return -1;
    }
    match active().filter(|_| fds::is_weft(fd)) {
        Some(process) => answer(|| close_weft(process, fd)),
        None => real::close(fd),
    }
}

unsafe fn close_weft(process: &Process, fd: c_int) -> Result<c_int, Errno> {
    let description = process.take(fd);
    real::close(fd);
    description.ok_or(Errno(libc::EBADF))?.drop_number()?;
    Ok(0)
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    let Some(process) = active() else { return real::close_range(first, last, flags) };
    let marks = flags & CLOSE_RANGE_CLOEXEC != 0;
    if !marks {
        for fd in process.numbers(first, last) {
            close(fd);
        }
    }
    let mut from = first;
    let top = last.min(c_int::MAX as c_uint) as c_int;
    for own in fds::own_within(first.min(c_int::MAX as c_uint) as c_int, top) {
        let own = own as c_uint;
        if from < own && real::close_range(from, own - 1, flags) != 0 {
            return -1;
        }
        from = own + 1;
    }
    if from <= last { real::close_range(from, last, flags) } else { 0 }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn closefrom(first: c_int) {
    close_range(first.max(0) as c_uint, c_uint::MAX, 0);
}

/// One more number for an open file.
fn copy(fd: c_int, from: usize, cloexec: bool, real: impl FnOnce() -> c_int) -> c_int {
    match active().filter(|_| fds::is_weft(fd)) {
        Some(process) => answer(|| {
            let description = process.get(fd).ok_or(Errno(libc::EBADF))?;
            process.install(description, from, cloexec)
        }),
        None => real(),
    }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn dup(fd: c_int) -> c_int {
    copy(fd, 0, false, || real::dup(fd))
}

/// The number `to` becomes a copy of `from`, which `copy` has the kernel make.
unsafe fn replace(from: c_int, to: c_int, copy: impl FnOnce() -> c_int) -> c_int {
    let Some(process) = active() else { return copy() };
    if fds::is_own(to) || fds::is_own(from) {
        set_errno(libc::EBADF);
        return -1;
    }
    if !fds::is_weft(from) && !fds::is_weft(to) {
        return copy();
    }
    if fds::is_weft(from) && (0..3).contains(&to) {
        streams::follow(to);
    }
    answer(|| {
        let description = process.get(from);
        let copied = copy();
        if copied < 0 {
            return Err(Errno(crate::guard::errno()));
        }
        match description {
            Some(description) => process.put(copied, description),
            // Nobody is told: the kernel does not either.
            None => drop(process.take(copied).map(|old| old.drop_number())),
        }
        Ok(copied)
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn dup2(from: c_int, to: c_int) -> c_int {
    if from == to {
        return real::dup2(from, to);
    }
    replace(from, to, || real::dup2(from, to))
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn dup3(from: c_int, to: c_int, flags: c_int) -> c_int {
    if from == to || flags & !O_CLOEXEC != 0 {
        return real::dup3(from, to, flags);
    }
    replace(from, to, || real::dup3(from, to, flags))
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn fcntl64(fd: c_int, command: c_int, arg: usize) -> c_int {
    let real = || real::fcntl64(fd, command, arg);
    match command {
        libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => {
            copy(fd, arg, command == libc::F_DUPFD_CLOEXEC, real)
        }
        libc::F_GETFD | libc::F_SETFD => real(),
        libc::F_GETFL => on_fd(fd, |_, description| Ok(description.flags()), real),
        libc::F_SETFL => on_fd(
            fd,
            |process, description| description.set_flags(process, arg as c_int).map(|()| 0),
            real,
        ),
        command if lock::is_lock(command) => on_fd(
            fd,
            |process, description| {
                let wish = (arg as *mut libc::flock64).as_mut().ok_or(Errno(libc::EFAULT))?;
                lock::control(process, description, command, wish).map(|()| 0)
            },
            real,
        ),
        _ => on_fd(fd, |_, _| Err(Errno(libc::EINVAL)), real),
    }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn ioctl(fd: c_int, request: c_ulong, arg: usize) -> c_int {
    let real = || real::ioctl(fd, request, arg);
    match request {
        libc::FIOCLEX => fcntl64(fd, libc::F_SETFD, FD_CLOEXEC as usize),
        _ => on_fd(fd, |_, _| Err(Errno(libc::ENOTTY)), real),
    }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn isatty(fd: c_int) -> c_int {
    if fds::is_weft(fd) {
        set_errno(libc::ENOTTY);
        return 0;
    }
    real::isatty(fd)
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn flock(fd: c_int, operation: c_int) -> c_int {
    on_fd(
        fd,
        |process, description| lock::whole(process, description, operation).map(|()| 0),
        || real::flock(fd, operation),
    )
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn lockf64(fd: c_int, command: c_int, len: i64) -> c_int {
    if !fds::is_weft(fd) {
        return real::lockf64(fd, command, len);
    }
    let mut wish: libc::flock64 = std::mem::zeroed();
    (wish.l_whence, wish.l_len) = (libc::SEEK_CUR as i16, len);
    let (kind, then) = match command {
        libc::F_LOCK => (libc::F_WRLCK, libc::F_SETLKW),
        libc::F_TLOCK => (libc::F_WRLCK, libc::F_SETLK),
        libc::F_ULOCK => (libc::F_UNLCK, libc::F_SETLK),
        libc::F_TEST => (libc::F_WRLCK, libc::F_GETLK),
        _ => {
            set_errno(libc::EINVAL);
            return -1;
        }
    };
    wish.l_type = kind as i16;
    let out = fcntl64(fd, then, &raw mut wish as usize);
    if command == libc::F_TEST && out == 0 && wish.l_type != libc::F_UNLCK as i16 {
        set_errno(libc::EACCES);
        return -1;
    }
    out
}

alias! {
    fn __close(fd: c_int) -> c_int = close;
    fn __dup2(from: c_int, to: c_int) -> c_int = dup2;
    fn fcntl(fd: c_int, command: c_int, arg: usize) -> c_int = fcntl64;
    fn __fcntl(fd: c_int, command: c_int, arg: usize) -> c_int = fcntl64;
    fn lockf(fd: c_int, command: c_int, len: i64) -> c_int = lockf64;
}
