//! chdir(2), getcwd(3), realpath(3), umask(2).

use super::{active, answer, at, on_fd};
use crate::guard::{guarded, set_errno};
use crate::ops::{attr, cwd};
use crate::path::{Dir, Errno, Place, Wanted, below};
use crate::process::Process;
use crate::{caller, real};
use libc::{AT_FDCWD, c_char, c_int, mode_t, size_t};
use std::ffi::CStr;

type Path = *const c_char;

/// The process is on this machine again.
fn left(process: Option<&Process>, out: c_int) -> c_int {
    if out == 0
        && let Some(process) = process
    {
        process.set_cwd(None);
    }
    out
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn chdir(path: Path) -> c_int {
    at(
        AT_FDCWD,
        path,
        Wanted::Target,
        |process, spot| {
            let attr = attr::of_spot(spot)?;
            let dir = Dir { mount: spot.dir.mount, fid: attr.fid, path: spot.path() };
            cwd::enter(process, dir, &attr).map(|()| 0)
        },
        |_, path| left(active(), real::chdir(path)),
    )
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn fchdir(fd: c_int) -> c_int {
    on_fd(
        fd,
        |process, file| {
            cwd::enter(process, file.dir()?, &attr::of_file(process, file)?).map(|()| 0)
        },
        || left(active(), real::fchdir(fd)),
    )
}

/// Puts a path where the caller wants it, or into memory that the caller frees.
unsafe fn hand_out(path: &[u8], buf: *mut c_char, room: size_t) -> Result<*mut c_char, Errno> {
    let out = match (buf.is_null(), room) {
        (true, 0) => libc::malloc(path.len() + 1).cast(),
        (_, room) if room <= path.len() => return Err(Errno(libc::ERANGE)),
        (true, room) => libc::malloc(room).cast(),
        (false, _) => buf,
    };
    if out.is_null() {
        return Err(Errno(libc::ENOMEM));
    }
    std::ptr::copy_nonoverlapping(path.as_ptr().cast(), out, path.len());
    *out.add(path.len()) = 0;
    Ok(out)
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn getcwd(buf: *mut c_char, room: size_t) -> *mut c_char {
    let Some(process) = active().filter(|process| process.is_cwd_inside()) else {
        return real::getcwd(buf, room);
    };
    if !buf.is_null() && room == 0 {
        set_errno(libc::EINVAL);
        return std::ptr::null_mut();
    }
    answer(|| {
        let dir = process.cwd().ok_or(Errno(libc::ENOENT))?;
        hand_out(&cwd::path(process, &dir)?, buf, room)
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn get_current_dir_name() -> *mut c_char {
    getcwd(std::ptr::null_mut(), 0)
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn __getcwd_chk(
    buf: *mut c_char,
    len: size_t,
    room: size_t,
) -> *mut c_char {
    if len > room {
        libc::abort();
    }
    getcwd(buf, len)
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn realpath(path: Path, out: *mut c_char) -> *mut c_char {
    let Some(process) = active().filter(|_| !path.is_null()) else {
        return real::realpath(path, out);
    };
    let name = CStr::from_ptr(path);
    if process.leaves_alone(AT_FDCWD, name) {
        let found = real::realpath(path, out);
        if !found.is_null() || crate::guard::errno() != libc::ENOENT {
            return found;
        }
    }
    let place = guarded(|| process.find(AT_FDCWD, name, Wanted::Target));
    match place {
        Err(_) => std::ptr::null_mut(),
        Ok(Place::Real(path)) => match std::ffi::CString::new(path) {
            Ok(path) => real::realpath(path.as_ptr(), out),
            Err(_) => std::ptr::null_mut(),
        },
        Ok(Place::Weft(spot)) => answer(|| {
            attr::of_spot(&spot)?;
            let prefix = &process.mounts[spot.dir.mount].entry.prefix;
            let path = below(&[prefix.as_slice(), &spot.dir.path].concat(), &spot.name);
            hand_out(&path, out, if out.is_null() { 0 } else { libc::PATH_MAX as size_t })
        }),
    }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn canonicalize_file_name(path: Path) -> *mut c_char {
    realpath(path, std::ptr::null_mut())
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn __realpath_chk(
    path: Path,
    out: *mut c_char,
    room: size_t,
) -> *mut c_char {
    if room < libc::PATH_MAX as size_t {
        libc::abort();
    }
    realpath(path, out)
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn umask(mask: mode_t) -> mode_t {
    caller::set_umask(mask);
    real::umask(mask)
}
