//! The functions that ours stand before: the next ones of the same name.

use libc::*;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Finds the next function of a name, once.
fn next(name: &'static CStrBytes, known: &AtomicPtr<c_void>) -> *mut c_void {
    let found = known.load(Ordering::Relaxed);
    if !found.is_null() {
        return found;
    }
    // SAFETY: the name ends with a zero.
    let found = unsafe { dlsym(RTLD_NEXT, name.as_ptr().cast()) };
    if found.is_null() {
        // A C library without it: whoever calls it cannot be helped.
        // SAFETY: abort has no preconditions.
        unsafe { abort() };
    }
    known.store(found, Ordering::Relaxed);
    found
}

type CStrBytes = [u8];

macro_rules! real {
    ($(fn $name:ident($($arg:ident: $kind:ty),* $(,)?) -> $out:ty;)*) => {
        $(
            /// The real one.
            ///
            /// # Safety
            /// As the C library's.
            pub unsafe fn $name($($arg: $kind),*) -> $out {
                static KNOWN: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
                let found = next(concat!(stringify!($name), "\0").as_bytes(), &KNOWN);
                // SAFETY: this is the function's type, as its manual page has it.
                let function: unsafe extern "C" fn($($kind),*) -> $out =
                    unsafe { std::mem::transmute(found) };
                // SAFETY: the caller's.
                unsafe { function($($arg),*) }
            }
        )*
    };
}

type Path = *const c_char;
type Args = *const *const c_char;

real! {
    fn openat64(dir: c_int, path: Path, flags: c_int, mode: mode_t) -> c_int;
    fn close(fd: c_int) -> c_int;
    fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int;
    fn dup(fd: c_int) -> c_int;
    fn dup3(from: c_int, to: c_int, flags: c_int) -> c_int;
    fn dup2(from: c_int, to: c_int) -> c_int;
    fn fcntl64(fd: c_int, command: c_int, arg: usize) -> c_int;
    fn ioctl(fd: c_int, request: c_ulong, arg: usize) -> c_int;
    fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int;
    fn pthread_create(
        thread: *mut pthread_t,
        attr: *const pthread_attr_t,
        start: extern "C" fn(*mut c_void) -> *mut c_void,
        arg: *mut c_void,
    ) -> c_int;
    fn read(fd: c_int, buf: *mut c_void, len: size_t) -> ssize_t;
    fn write(fd: c_int, buf: *const c_void, len: size_t) -> ssize_t;
    fn pread64(fd: c_int, buf: *mut c_void, len: size_t, at: off64_t) -> ssize_t;
    fn pwrite64(fd: c_int, buf: *const c_void, len: size_t, at: off64_t) -> ssize_t;
    fn readv(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t;
    fn writev(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t;
    fn preadv64(fd: c_int, parts: *const iovec, count: c_int, at: off64_t) -> ssize_t;
    fn pwritev64(fd: c_int, parts: *const iovec, count: c_int, at: off64_t) -> ssize_t;
    fn preadv64v2(fd: c_int, parts: *const iovec, n: c_int, at: off64_t, f: c_int) -> ssize_t;
    fn pwritev64v2(fd: c_int, parts: *const iovec, n: c_int, at: off64_t, f: c_int) -> ssize_t;
    fn lseek64(fd: c_int, offset: off64_t, whence: c_int) -> off64_t;
    fn ftruncate64(fd: c_int, len: off64_t) -> c_int;
    fn truncate64(path: Path, len: off64_t) -> c_int;
    fn fsync(fd: c_int) -> c_int;
    fn fdatasync(fd: c_int) -> c_int;
    fn syncfs(fd: c_int) -> c_int;
    fn fallocate64(fd: c_int, mode: c_int, at: off64_t, len: off64_t) -> c_int;
    fn posix_fallocate64(fd: c_int, at: off64_t, len: off64_t) -> c_int;
    fn posix_fadvise64(fd: c_int, at: off64_t, len: off64_t, advice: c_int) -> c_int;
    fn sync_file_range(fd: c_int, at: off64_t, len: off64_t, flags: c_uint) -> c_int;
    fn readahead(fd: c_int, at: off64_t, len: size_t) -> ssize_t;
    fn copy_file_range(
        from: c_int, at: *mut off64_t, to: c_int, to_at: *mut off64_t, len: size_t, flags: c_uint,
    ) -> ssize_t;
    fn sendfile64(to: c_int, from: c_int, at: *mut off64_t, len: size_t) -> ssize_t;
    fn splice(
        from: c_int, at: *mut off64_t, to: c_int, to_at: *mut off64_t, len: size_t, flags: c_uint,
    ) -> ssize_t;
    fn mmap64(at: *mut c_void, len: size_t, p: c_int, f: c_int, fd: c_int, o: off64_t) -> *mut c_void;
    fn flock(fd: c_int, operation: c_int) -> c_int;
    fn lockf64(fd: c_int, command: c_int, len: off64_t) -> c_int;
    fn isatty(fd: c_int) -> c_int;
    fn poll(fds: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int;
    fn ppoll(f: *mut pollfd, n: nfds_t, t: *const timespec, s: *const sigset_t) -> c_int;
    fn fstatat64(dir: c_int, path: Path, out: *mut stat64, flags: c_int) -> c_int;
    fn fstat64(fd: c_int, out: *mut stat64) -> c_int;
    fn statx(dir: c_int, path: Path, flags: c_int, mask: c_uint, out: *mut libc::statx) -> c_int;
    fn faccessat(dir: c_int, path: Path, mode: c_int, flags: c_int) -> c_int;
    fn statfs64(path: Path, out: *mut libc::statfs64) -> c_int;
    fn fstatfs64(fd: c_int, out: *mut libc::statfs64) -> c_int;
    fn statvfs64(path: Path, out: *mut libc::statvfs64) -> c_int;
    fn fstatvfs64(fd: c_int, out: *mut libc::statvfs64) -> c_int;
    fn fchmodat(dir: c_int, path: Path, mode: mode_t, flags: c_int) -> c_int;
    fn fchmod(fd: c_int, mode: mode_t) -> c_int;
    fn fchownat(dir: c_int, path: Path, uid: uid_t, gid: gid_t, flags: c_int) -> c_int;
    fn fchown(fd: c_int, uid: uid_t, gid: gid_t) -> c_int;
    fn utimensat(dir: c_int, path: Path, times: *const timespec, flags: c_int) -> c_int;
    fn futimens(fd: c_int, times: *const timespec) -> c_int;
    fn mkdirat(dir: c_int, path: Path, mode: mode_t) -> c_int;
    fn mknodat(dir: c_int, path: Path, mode: mode_t, device: dev_t) -> c_int;
    fn unlinkat(dir: c_int, path: Path, flags: c_int) -> c_int;
    fn renameat2(from: c_int, a: Path, to: c_int, b: Path, flags: c_uint) -> c_int;
    fn linkat(from: c_int, a: Path, to: c_int, b: Path, flags: c_int) -> c_int;
    fn symlinkat(target: Path, dir: c_int, path: Path) -> c_int;
    fn readlinkat(dir: c_int, path: Path, buf: *mut c_char, len: size_t) -> ssize_t;
    fn umask(mask: mode_t) -> mode_t;
    fn chdir(path: Path) -> c_int;
    fn fchdir(fd: c_int) -> c_int;
    fn getcwd(buf: *mut c_char, len: size_t) -> *mut c_char;
    fn realpath(path: Path, out: *mut c_char) -> *mut c_char;
    fn opendir(path: Path) -> *mut DIR;
    fn fdopendir(fd: c_int) -> *mut DIR;
    fn readdir64(dir: *mut DIR) -> *mut dirent64;
    fn readdir64_r(dir: *mut DIR, entry: *mut dirent64, out: *mut *mut dirent64) -> c_int;
    fn telldir(dir: *mut DIR) -> c_long;
    fn seekdir(dir: *mut DIR, at: c_long) -> ();
    fn rewinddir(dir: *mut DIR) -> ();
    fn closedir(dir: *mut DIR) -> c_int;
    fn dirfd(dir: *mut DIR) -> c_int;
    fn getdents64(fd: c_int, buf: *mut c_void, len: size_t) -> ssize_t;
    fn getxattr(path: Path, name: Path, value: *mut c_void, len: size_t) -> ssize_t;
    fn lgetxattr(path: Path, name: Path, value: *mut c_void, len: size_t) -> ssize_t;
    fn fgetxattr(fd: c_int, name: Path, value: *mut c_void, len: size_t) -> ssize_t;
    fn setxattr(path: Path, name: Path, value: *const c_void, len: size_t, flags: c_int) -> c_int;
    fn lsetxattr(path: Path, name: Path, value: *const c_void, len: size_t, flags: c_int) -> c_int;
    fn fsetxattr(fd: c_int, name: Path, value: *const c_void, len: size_t, flags: c_int) -> c_int;
    fn listxattr(path: Path, list: *mut c_char, len: size_t) -> ssize_t;
    fn llistxattr(path: Path, list: *mut c_char, len: size_t) -> ssize_t;
    fn flistxattr(fd: c_int, list: *mut c_char, len: size_t) -> ssize_t;
    fn removexattr(path: Path, name: Path) -> c_int;
    fn lremovexattr(path: Path, name: Path) -> c_int;
    fn fremovexattr(fd: c_int, name: Path) -> c_int;
    fn mkostemps64(template: *mut c_char, suffix: c_int, flags: c_int) -> c_int;
    fn mkdtemp(template: *mut c_char) -> *mut c_char;
    fn fopen64(path: Path, mode: Path) -> *mut FILE;
    fn freopen64(path: Path, mode: Path, stream: *mut FILE) -> *mut FILE;
    fn fdopen(fd: c_int, mode: Path) -> *mut FILE;
    fn fclose(stream: *mut FILE) -> c_int;
    fn fileno(stream: *mut FILE) -> c_int;
    fn system(command: Path) -> c_int;
    fn popen(command: Path, kind: Path) -> *mut FILE;
    fn execve(path: Path, args: Args, environment: Args) -> c_int;
    fn execvpe(path: Path, args: Args, environment: Args) -> c_int;
    fn fexecve(fd: c_int, args: Args, environment: Args) -> c_int;
    fn posix_spawn(
        pid: *mut pid_t, path: Path, actions: *const posix_spawn_file_actions_t,
        attributes: *const posix_spawnattr_t, args: Args, environment: Args,
    ) -> c_int;
    fn posix_spawnp(
        pid: *mut pid_t, path: Path, actions: *const posix_spawn_file_actions_t,
        attributes: *const posix_spawnattr_t, args: Args, environment: Args,
    ) -> c_int;
    fn _exit(status: c_int) -> !;
    fn quick_exit(status: c_int) -> !;
}

/// Those that prepare posix_spawn(3).
pub mod spawn {
    use super::*;

    type List = *mut posix_spawn_file_actions_t;

    real! {
        fn posix_spawn_file_actions_init(list: List) -> c_int;
        fn posix_spawn_file_actions_destroy(list: List) -> c_int;
        fn posix_spawn_file_actions_addopen(
            list: List, fd: c_int, path: Path, flags: c_int, mode: mode_t,
        ) -> c_int;
        fn posix_spawn_file_actions_addclose(list: List, fd: c_int) -> c_int;
        fn posix_spawn_file_actions_adddup2(list: List, from: c_int, to: c_int) -> c_int;
        fn posix_spawn_file_actions_addchdir_np(list: List, path: Path) -> c_int;
        fn posix_spawn_file_actions_addfchdir_np(list: List, fd: c_int) -> c_int;
        fn posix_spawn_file_actions_addclosefrom_np(list: List, from: c_int) -> c_int;
    }
}
