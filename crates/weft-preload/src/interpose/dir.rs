//! Streams of directories (`DIR`) and getdents64(2).

use super::{active, alias, answer, on_fd, open};
use crate::guard::{guarded, set_errno};
use crate::ops::dir;
use crate::path::Errno;
use crate::{fds, real};
use libc::{DIR, c_char, c_int, c_long, c_void, dirent64, size_t, ssize_t};
use std::collections::VecDeque;
use weft_client::DirEntry;

/// Begins a stream of ours. One of the C library begins with a descriptor and a lock, of which the latter is
/// never as large as the upper half of this.
const MARK: u64 = 0x5745_4654_4449_5253;

/// A stream of ours.
#[repr(C)]
struct Stream {
    mark: u64,
    fd: c_int,
    entries: VecDeque<DirEntry>,
    /// Of the last entry handed out.
    position: u64,
    entry: dirent64,
}

unsafe fn ours<'a>(dir: *mut DIR) -> Option<&'a mut Stream> {
    // Every stream has at least as many bytes.
    if dir.is_null() || *dir.cast::<u64>() != MARK { None } else { dir.cast::<Stream>().as_mut() }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn opendir(path: *const c_char) -> *mut DIR {
    if active().is_none() {
        return real::opendir(path);
    }
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC | libc::O_NONBLOCK;
    let fd = open::openat64(libc::AT_FDCWD, path, flags, 0);
    if fd < 0 { std::ptr::null_mut() } else { fdopendir(fd) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fdopendir(fd: c_int) -> *mut DIR {
    let Some(process) = active().filter(|_| fds::is_weft(fd)) else { return real::fdopendir(fd) };
    answer(|| {
        process.get(fd).ok_or(Errno(libc::EBADF))?.dir()?;
        let entry = std::mem::zeroed();
        let stream = Stream { mark: MARK, fd, entries: VecDeque::new(), position: 0, entry };
        Ok(Box::into_raw(Box::new(stream)).cast())
    })
}

/// The next entry. Null at the end, without an error, or with one.
unsafe fn next(stream: &mut Stream) -> *mut dirent64 {
    let advanced = guarded(|| {
        let process = crate::process::process().ok_or(Errno(libc::EBADF))?;
        let description = process.get(stream.fd).ok_or(Errno(libc::EBADF))?;
        loop {
            if stream.entries.is_empty() {
                stream.entries = dir::entries(process, &description, stream.position)?;
            }
            let Some(entry) = stream.entries.pop_front() else { return Ok(false) };
            stream.position = entry.position;
            if let Some(record) = dir::dirent(&entry) {
                stream.entry = record;
                return Ok(true);
            }
        }
    });
    if advanced == Ok(true) { &raw mut stream.entry } else { std::ptr::null_mut() }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn readdir64(dir: *mut DIR) -> *mut dirent64 {
    match ours(dir) {
        Some(stream) => next(stream),
        None => real::readdir64(dir),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn readdir64_r(
    dir: *mut DIR,
    entry: *mut dirent64,
    out: *mut *mut dirent64,
) -> c_int {
    let Some(stream) = ours(dir) else { return real::readdir64_r(dir, entry, out) };
    set_errno(0);
    let found = next(stream);
    *out = std::ptr::null_mut();
    if found.is_null() {
        return crate::guard::errno();
    }
    std::ptr::copy_nonoverlapping(found.cast::<u8>(), entry.cast(), (*found).d_reclen.into());
    *out = entry;
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn telldir(dir: *mut DIR) -> c_long {
    ours(dir).map_or_else(|| real::telldir(dir), |stream| stream.position as c_long)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn seekdir(dir: *mut DIR, at: c_long) {
    match ours(dir) {
        Some(stream) => {
            stream.position = at as u64;
            stream.entries.clear();
        }
        None => real::seekdir(dir, at),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rewinddir(dir: *mut DIR) {
    match ours(dir) {
        Some(_) => seekdir(dir, 0),
        None => real::rewinddir(dir),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn closedir(dir: *mut DIR) -> c_int {
    let Some(stream) = ours(dir) else { return real::closedir(dir) };
    let fd = stream.fd;
    stream.mark = 0;
    drop(Box::from_raw(dir.cast::<Stream>()));
    super::fd::close(fd)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn dirfd(dir: *mut DIR) -> c_int {
    ours(dir).map_or_else(|| real::dirfd(dir), |stream| stream.fd)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn getdents64(fd: c_int, buf: *mut c_void, len: size_t) -> ssize_t {
    on_fd(
        fd,
        |process, file| {
            file.dir()?;
            let buf = std::slice::from_raw_parts_mut(buf.cast(), len);
            dir::fill(process, file, buf).map(|used| used as ssize_t)
        },
        || real::getdents64(fd, buf, len),
    )
}

type Select = Option<unsafe extern "C" fn(*const dirent64) -> c_int>;
type Compare = unsafe extern "C" fn(*const c_void, *const c_void) -> c_int;

/// The C library's own does not read through functions that can be replaced.
#[unsafe(no_mangle)]
unsafe extern "C" fn scandirat64(
    at: c_int,
    path: *const c_char,
    out: *mut *mut *mut dirent64,
    select: Select,
    compare: Option<Compare>,
) -> c_int {
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
    let fd = open::openat64(at, path, flags, 0);
    if fd < 0 {
        return -1;
    }
    let dir = fdopendir(fd);
    if dir.is_null() {
        super::fd::close(fd);
        return -1;
    }
    let mut found: Vec<*mut dirent64> = Vec::new();
    let before = crate::guard::errno();
    loop {
        set_errno(0);
        let entry = readdir64(dir);
        if entry.is_null() {
            break;
        }
        if select.is_none_or(|select| select(entry) != 0) {
            let len = (*entry).d_reclen as usize;
            let copy = libc::malloc(len);
            if copy.is_null() {
                break;
            }
            std::ptr::copy_nonoverlapping(entry.cast::<u8>(), copy.cast(), len);
            found.push(copy.cast());
        }
    }
    let failure = crate::guard::errno();
    closedir(dir);
    let list: *mut *mut dirent64 = libc::malloc(found.len().max(1) * size_of::<usize>()).cast();
    if failure != 0 || list.is_null() {
        found.iter().for_each(|&entry| libc::free(entry.cast()));
        libc::free(list.cast());
        set_errno(if failure != 0 { failure } else { libc::ENOMEM });
        return -1;
    }
    std::ptr::copy_nonoverlapping(found.as_ptr(), list, found.len());
    if let Some(compare) = compare {
        libc::qsort(list.cast(), found.len(), size_of::<usize>(), Some(compare));
    }
    set_errno(before);
    *out = list;
    found.len() as c_int
}

#[unsafe(no_mangle)]
unsafe extern "C" fn scandir64(
    path: *const c_char,
    out: *mut *mut *mut dirent64,
    select: Select,
    compare: Option<Compare>,
) -> c_int {
    scandirat64(libc::AT_FDCWD, path, out, select, compare)
}

alias! {
    fn readdir(dir: *mut DIR) -> *mut dirent64 = readdir64;
    fn readdir_r(d: *mut DIR, entry: *mut dirent64, out: *mut *mut dirent64) -> c_int = readdir64_r;
    fn scandir(
        path: *const c_char, out: *mut *mut *mut dirent64, s: Select, c: Option<Compare>,
    ) -> c_int = scandir64;
    fn scandirat(
        at: c_int, path: *const c_char, out: *mut *mut *mut dirent64, s: Select, c: Option<Compare>,
    ) -> c_int = scandirat64;
}
