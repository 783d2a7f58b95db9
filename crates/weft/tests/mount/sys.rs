//! System calls that std has no words for, in the manner of std.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{Error, Result};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The error number an operation ended with; 0 for success.
pub fn errno<T>(result: Result<T>) -> i32 {
    result.err().map_or(0, |error| error.raw_os_error().unwrap())
}

pub fn c_path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap()
}

fn check(result: impl TryInto<i64>) -> Result<u64> {
    let result = result.try_into().unwrap_or(-1);
    u64::try_from(result).map_err(|_| Error::last_os_error())
}

pub fn rename(from: &Path, to: &Path, flags: u32) -> Result<u64> {
    let (from, to) = (c_path(from), c_path(to));
    let here = libc::AT_FDCWD;
    // SAFETY: both are NUL-terminated strings that outlive the call.
    check(unsafe { libc::renameat2(here, from.as_ptr(), here, to.as_ptr(), flags) })
}

pub fn mknod(path: &Path, mode: u32, device: u64) -> Result<u64> {
    let path = c_path(path);
    // SAFETY: a NUL-terminated string that outlives the call.
    check(unsafe { libc::mknod(path.as_ptr(), mode, device) })
}

/// Gives an open file a name.
pub fn link_open(file: &File, to: &Path) -> Result<u64> {
    let from = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap();
    let (to, here) = (c_path(to), libc::AT_FDCWD);
    let follow = libc::AT_SYMLINK_FOLLOW;
    // SAFETY: both are NUL-terminated strings that outlive the call.
    check(unsafe { libc::linkat(here, from.as_ptr(), here, to.as_ptr(), follow) })
}

pub fn seek(file: &File, offset: i64, whence: i32) -> Result<u64> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::lseek(file.as_raw_fd(), offset, whence) })
}

pub fn fallocate(file: &File, mode: i32, offset: i64, len: i64) -> Result<u64> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::fallocate(file.as_raw_fd(), mode, offset, len) })
}

pub fn copy_range(from: &File, to: &File, len: usize) -> Result<u64> {
    let null = std::ptr::null_mut;
    // SAFETY: null pointers mean the files' own positions.
    check(unsafe {
        libc::copy_file_range(from.as_raw_fd(), null(), to.as_raw_fd(), null(), len, 0)
    })
}

pub fn sync_all(file: &File) -> Result<u64> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::syncfs(file.as_raw_fd()) })
}

/// Sets the flags of an open file that can be set.
pub fn set_flags(file: &File, flags: i32) -> Result<u64> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, flags) })
}

/// Sets access and modification time, seconds and nanoseconds each.
pub fn set_times(path: &Path, times: [(i64, i64); 2]) -> Result<u64> {
    let path = c_path(path);
    let times = times.map(|(tv_sec, tv_nsec)| libc::timespec { tv_sec, tv_nsec });
    // SAFETY: a string and an array of two that outlive the call.
    check(unsafe { libc::utimensat(libc::AT_FDCWD, path.as_ptr(), times.as_ptr(), 0) })
}

pub fn statvfs(path: &Path) -> Result<libc::statvfs> {
    let path = c_path(path);
    // SAFETY: all zeros is a valid statvfs, which the call fills.
    unsafe {
        let mut out: libc::statvfs = std::mem::zeroed();
        check(libc::statvfs(path.as_ptr(), &mut out)).map(|_| out)
    }
}

pub fn set_xattr(path: &Path, name: &CStr, value: &[u8], flags: i32) -> Result<u64> {
    let (path, start) = (c_path(path), value.as_ptr().cast());
    // SAFETY: strings and a buffer of the stated length that outlive the call.
    check(unsafe { libc::lsetxattr(path.as_ptr(), name.as_ptr(), start, value.len(), flags) })
}

/// Reads an attribute into a buffer of `room` bytes; 0 asks for the length.
pub fn get_xattr_into(path: &Path, name: &CStr, room: usize) -> Result<(u64, Vec<u8>)> {
    let (path, mut value) = (c_path(path), vec![0u8; room]);
    let start = value.as_mut_ptr().cast();
    // SAFETY: strings and a buffer of the stated length that outlive the call.
    let length = check(unsafe { libc::lgetxattr(path.as_ptr(), name.as_ptr(), start, room) })?;
    value.truncate(length as usize);
    Ok((length, value))
}

pub fn get_xattr(path: &Path, name: &CStr) -> Result<Vec<u8>> {
    get_xattr_into(path, name, 65_536).map(|(_, value)| value)
}

pub fn remove_xattr(path: &Path, name: &CStr) -> Result<u64> {
    let path = c_path(path);
    // SAFETY: strings that outlive the call.
    check(unsafe { libc::lremovexattr(path.as_ptr(), name.as_ptr()) })
}

pub fn list_xattrs(path: &Path) -> Result<Vec<String>> {
    let (path, mut names) = (c_path(path), vec![0u8; 65_536]);
    // SAFETY: a string and a buffer of the stated length that outlive the call.
    let length =
        check(unsafe { libc::llistxattr(path.as_ptr(), names.as_mut_ptr().cast(), names.len()) })?;
    let names = names[..length as usize].split(|&byte| byte == 0);
    let names = names.filter(|name| !name.is_empty());
    Ok(names.map(|name| String::from_utf8(name.to_vec()).unwrap()).collect())
}

/// A lock of fcntl(2) from `start` for `len` bytes; what the call leaves in it.
pub fn fcntl_lock(
    file: &File,
    command: i32,
    kind: i32,
    start: i64,
    len: i64,
) -> Result<libc::flock> {
    // SAFETY: all zeros is a valid flock, and fcntl gets a pointer to one.
    unsafe {
        let mut lock: libc::flock = std::mem::zeroed();
        (lock.l_type, lock.l_whence) = (kind as i16, libc::SEEK_SET as i16);
        (lock.l_start, lock.l_len) = (start, len);
        check(libc::fcntl(file.as_raw_fd(), command, &mut lock)).map(|_| lock)
    }
}

/// A shared memory map of the start of a file.
pub struct Map {
    start: *mut u8,
    len: usize,
}

impl Map {
    pub fn new(file: &File, len: usize) -> Map {
        let (how, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        let null = std::ptr::null_mut();
        // SAFETY: a new map at a place of the kernel's choice.
        let start = unsafe { libc::mmap(null, len, how, shared, file.as_raw_fd(), 0) };
        assert_ne!(start, libc::MAP_FAILED, "{}", Error::last_os_error());
        Map { start: start.cast(), len }
    }

    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: mapped for as long as `self` lives, and borrowed from it.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.len) }
    }

    pub fn sync(&self) {
        // SAFETY: the range is mapped.
        let result = unsafe { libc::msync(self.start.cast(), self.len, libc::MS_SYNC) };
        assert_eq!(result, 0, "{}", Error::last_os_error());
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: mapped by us, and used by nobody any more.
        unsafe { libc::munmap(self.start.cast(), self.len) };
    }
}

/// An open directory of the C library.
pub struct Dir(*mut libc::DIR);

impl Dir {
    pub fn open(path: &Path) -> Dir {
        let path = c_path(path);
        // SAFETY: a NUL-terminated string that outlives the call.
        let dir = unsafe { libc::opendir(path.as_ptr()) };
        assert!(!dir.is_null(), "{}", Error::last_os_error());
        Dir(dir)
    }

    /// Where the next entry is.
    pub fn tell(&self) -> i64 {
        // SAFETY: open until dropped.
        unsafe { libc::telldir(self.0) }
    }

    pub fn seek(&self, place: i64) {
        // SAFETY: open until dropped.
        unsafe { libc::seekdir(self.0, place) };
    }
}

impl Iterator for Dir {
    type Item = (String, u64, u8);

    /// Name, inode number and type.
    fn next(&mut self) -> Option<Self::Item> {
        // SAFETY: open until dropped; an entry is valid until the next call.
        unsafe {
            let entry = libc::readdir64(self.0).as_ref()?;
            let name = CStr::from_ptr(entry.d_name.as_ptr()).to_str().unwrap().to_string();
            Some((name, entry.d_ino, entry.d_type))
        }
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        // SAFETY: open, and not used any more.
        unsafe { libc::closedir(self.0) };
    }
}
