//! Extended attributes.

use super::{at, on_fd};
use crate::ops::{attr, xattr};
use crate::path::{Errno, Spot, Wanted};
use crate::process::Process;
use crate::real;
use libc::{AT_FDCWD, c_char, c_int, c_void, size_t, ssize_t};
use std::ffi::CStr;

type Path = *const c_char;

/// Copies an answer, or tells its length if there is no room at all.
unsafe fn copy(value: &[u8], to: *mut c_void, room: size_t) -> Result<ssize_t, Errno> {
    if room > 0 {
        if value.len() > room {
            return Err(Errno(libc::ERANGE));
        }
        std::ptr::copy_nonoverlapping(value.as_ptr(), to.cast(), value.len());
    }
    Ok(value.len() as ssize_t)
}

unsafe fn bytes<'a>(value: *const c_void, len: size_t) -> &'a [u8] {
    if len == 0 { &[] } else { std::slice::from_raw_parts(value.cast(), len) }
}

/// Defines the three forms of a function: through links, of a link, of an open file.
macro_rules! forms {
    ($($through:ident $of_link:ident $of_file:ident ($($arg:ident: $kind:ty),*) -> $out:ty = $act:expr;)*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $through(path: Path, $($arg: $kind),*) -> $out {
            let act = |process: &Process, spot: &Spot| {
                $act(process, (spot.dir.mount, attr::of_spot(spot)?.fid), $($arg),*)
            };
            at(AT_FDCWD, path, Wanted::Target, act, |_, path| real::$through(path, $($arg),*))
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $of_link(path: Path, $($arg: $kind),*) -> $out {
            let act = |process: &Process, spot: &Spot| {
                $act(process, (spot.dir.mount, attr::of_spot(spot)?.fid), $($arg),*)
            };
            at(AT_FDCWD, path, Wanted::Itself, act, |_, path| real::$of_link(path, $($arg),*))
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $of_file(fd: c_int, $($arg: $kind),*) -> $out {
            on_fd(
                fd,
                |process, file| $act(process, (file.mount, file.fid), $($arg),*),
                || real::$of_file(fd, $($arg),*),
            )
        }
    )* };
}

type Which = (usize, weft_model::Fid);

unsafe fn get(
    process: &Process,
    (mount, fid): Which,
    name: Path,
    value: *mut c_void,
    room: size_t,
) -> Result<ssize_t, Errno> {
    copy(&xattr::get(process, mount, fid, CStr::from_ptr(name).to_bytes())?, value, room)
}

unsafe fn set(
    process: &Process,
    which: Which,
    name: Path,
    value: *const c_void,
    len: size_t,
    flags: c_int,
) -> Result<c_int, Errno> {
    let name = CStr::from_ptr(name).to_bytes();
    xattr::set(process, which, name, bytes(value, len), flags).map(|()| 0)
}

unsafe fn list(
    process: &Process,
    (mount, fid): Which,
    names: *mut c_char,
    room: size_t,
) -> Result<ssize_t, Errno> {
    copy(&xattr::list(process, mount, fid)?, names.cast(), room)
}

unsafe fn remove(process: &Process, (mount, fid): Which, name: Path) -> Result<c_int, Errno> {
    xattr::remove(process, mount, fid, CStr::from_ptr(name).to_bytes()).map(|()| 0)
}

forms! {
    getxattr lgetxattr fgetxattr(name: Path, value: *mut c_void, room: size_t) -> ssize_t = get;
    setxattr lsetxattr fsetxattr(name: Path, value: *const c_void, len: size_t, flags: c_int) -> c_int = set;
    listxattr llistxattr flistxattr(names: *mut c_char, room: size_t) -> ssize_t = list;
    removexattr lremovexattr fremovexattr(name: Path) -> c_int = remove;
}
