//! Locks and extended attributes through a real mount.
#![allow(unsafe_code)] // the tests call fcntl, flock and the xattr functions directly

mod common;

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use common::Mounted;
use weft_fuse::kernel::Config;
use weft_fuse::null::{NullFs, NullOptions};

fn mount() -> Option<Mounted> {
    Mounted::new(NullFs::new(NullOptions::default()), Config::default())
}

fn open(path: &Path) -> File {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).unwrap()
}

/// Sets a lock that belongs to the open file, so that one process can compete with itself.
fn ofd_lock(file: &File, command: i32, kind: i32, start: i64, len: i64) -> (i32, libc::flock) {
    // SAFETY: all zeros is a valid flock, and fcntl gets a pointer to one.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    (lock.l_type, lock.l_whence) = (kind as i16, libc::SEEK_SET as i16);
    (lock.l_start, lock.l_len) = (start, len);
    // SAFETY: as above.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), command, &mut lock) };
    (if result < 0 { errno() } else { 0 }, lock)
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap()
}

#[test]
fn range_locks_conflict_split_and_go_at_close() {
    let Some(mounted) = mount() else { return };
    let path = mounted.path().join("file");
    let (one, two) = (open(&path), open(&path));
    assert_eq!(ofd_lock(&one, libc::F_OFD_SETLK, libc::F_WRLCK, 0, 100).0, 0);
    assert_eq!(ofd_lock(&one, libc::F_OFD_SETLK, libc::F_UNLCK, 40, 20).0, 0);
    let (result, found) = ofd_lock(&two, libc::F_OFD_GETLK, libc::F_WRLCK, 50, 100);
    assert_eq!((result, i32::from(found.l_type)), (0, libc::F_WRLCK));
    assert_eq!((found.l_start, found.l_len), (60, 40));
    assert_eq!(ofd_lock(&two, libc::F_OFD_SETLK, libc::F_RDLCK, 0, 1).0, libc::EAGAIN);
    assert_eq!(ofd_lock(&two, libc::F_OFD_SETLK, libc::F_WRLCK, 40, 20).0, 0);
    drop(one);
    let free = || ofd_lock(&two, libc::F_OFD_SETLK, libc::F_RDLCK, 0, 1).0 == 0;
    assert!((0..100).any(|_| free() || (thread::sleep(Duration::from_millis(10)), false).1));
}

#[test]
fn a_waiter_gets_the_lock_when_it_is_free() {
    let Some(mounted) = mount() else { return };
    let path = mounted.path().join("file");
    let (one, two) = (open(&path), open(&path));
    one.lock().unwrap(); // flock
    assert!(two.try_lock().is_err());
    let released = Arc::new(AtomicBool::new(false));
    let seen = released.clone();
    let waiter = thread::spawn(move || {
        two.lock().unwrap();
        seen.load(SeqCst)
    });
    thread::sleep(Duration::from_millis(50));
    assert!(path.exists(), "a waiting lock must not hold up others");
    released.store(true, SeqCst);
    one.unlock().unwrap();
    assert!(waiter.join().unwrap(), "the lock was granted too early");
}

extern "C" fn ignore(_: i32) {}

#[test]
fn a_signal_ends_the_waiting() {
    let Some(mounted) = mount() else { return };
    // SAFETY: the action is a function that does nothing; no SA_RESTART, so calls are interrupted.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = ignore as extern "C" fn(i32) as usize;
        libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut());
    }
    let path = mounted.path().join("file");
    let (one, two) = (open(&path), open(&path));
    assert_eq!(ofd_lock(&one, libc::F_OFD_SETLK, libc::F_WRLCK, 0, 0).0, 0);
    let ready = Arc::new(Barrier::new(2));
    let started = ready.clone();
    let waiter = thread::spawn(move || {
        started.wait();
        ofd_lock(&two, libc::F_OFD_SETLKW, libc::F_WRLCK, 0, 0).0
    });
    ready.wait();
    // A signal may come before the waiter sleeps, so it is repeated.
    while !waiter.is_finished() {
        thread::sleep(Duration::from_millis(20));
        // SAFETY: the thread has not been joined, so its handle is valid.
        unsafe {
            libc::pthread_kill(
                std::os::unix::thread::JoinHandleExt::as_pthread_t(&waiter),
                libc::SIGUSR1,
            )
        };
    }
    assert_eq!(waiter.join().unwrap(), libc::EINTR);
    assert_eq!(ofd_lock(&one, libc::F_OFD_SETLK, libc::F_UNLCK, 0, 0).0, 0);
}

#[test]
fn extended_attributes() {
    let Some(mounted) = mount() else { return };
    let path = mounted.path().join("file");
    open(&path);
    let path = CString::new(path.as_os_str().as_bytes()).unwrap();
    let value = vec![7u8; 65536];
    let set = |name: &std::ffi::CStr, value: &[u8], flags| {
        // SAFETY: strings are NUL-terminated, the value has the length given.
        unsafe {
            let data = value.as_ptr().cast();
            libc::setxattr(path.as_ptr(), name.as_ptr(), data, value.len(), flags)
        }
    };
    let get = |name: &std::ffi::CStr, room: &mut [u8]| {
        // SAFETY: as above.
        unsafe {
            let data = room.as_mut_ptr().cast();
            libc::getxattr(path.as_ptr(), name.as_ptr(), data, room.len())
        }
    };
    assert_eq!(get(c"user.a", &mut []), -1);
    assert_eq!(errno(), libc::ENODATA);
    assert_eq!(set(c"user.a", &value, libc::XATTR_CREATE), 0);
    assert_eq!(set(c"user.a", b"x", libc::XATTR_CREATE), -1);
    assert_eq!(errno(), libc::EEXIST);
    assert_eq!(set(c"user.b", b"", 0), 0);
    assert_eq!(get(c"user.a", &mut []), 65536);
    let mut room = vec![0; 65536];
    assert_eq!(get(c"user.a", &mut room), 65536);
    assert_eq!(room, value);
    assert_eq!(get(c"user.a", &mut room[..10]), -1);
    assert_eq!(errno(), libc::ERANGE);
    // SAFETY: as above.
    let length = unsafe { libc::listxattr(path.as_ptr(), room.as_mut_ptr().cast(), room.len()) };
    assert_eq!(&room[..length as usize], b"user.a\0user.b\0");
    // SAFETY: as above.
    assert_eq!(unsafe { libc::removexattr(path.as_ptr(), c"user.a".as_ptr()) }, 0);
    assert_eq!(get(c"user.a", &mut []), -1);
}
