//! The FUSE kernel protocol, version 7.45: operation codes, flag bits and wire structures.
//!
//! Names and numbers are those of the kernel's `include/uapi/linux/fuse.h`, without the `FUSE_`
//! prefix where the module path already says it. Nothing here has behaviour.

mod wire;

pub use wire::*;

/// Protocol major version; a kernel with another one cannot be served.
pub const KERNEL_VERSION: u32 = 7;
/// Newest protocol minor version this binding knows.
pub const KERNEL_MINOR_VERSION: u32 = 45;
/// Oldest minor version accepted: 7.31 (Linux 5.4) has all structures in their present size.
pub const OLDEST_MINOR_VERSION: u32 = 31;
/// Node number of the root directory of every mount.
pub const ROOT_ID: u64 = 1;
/// The kernel refuses reads of the device into buffers smaller than this many bytes.
pub const MIN_READ_BUFFER: usize = 8192;

/// Operation codes (`enum fuse_opcode`).
#[allow(missing_docs)] // the names are the documentation: see fuse.h
pub mod op {
    pub const LOOKUP: u32 = 1;
    pub const FORGET: u32 = 2;
    pub const GETATTR: u32 = 3;
    pub const SETATTR: u32 = 4;
    pub const READLINK: u32 = 5;
    pub const SYMLINK: u32 = 6;
    pub const MKNOD: u32 = 8;
    pub const MKDIR: u32 = 9;
    pub const UNLINK: u32 = 10;
    pub const RMDIR: u32 = 11;
    pub const RENAME: u32 = 12;
    pub const LINK: u32 = 13;
    pub const OPEN: u32 = 14;
    pub const READ: u32 = 15;
    pub const WRITE: u32 = 16;
    pub const STATFS: u32 = 17;
    pub const RELEASE: u32 = 18;
    pub const FSYNC: u32 = 20;
    pub const SETXATTR: u32 = 21;
    pub const GETXATTR: u32 = 22;
    pub const LISTXATTR: u32 = 23;
    pub const REMOVEXATTR: u32 = 24;
    pub const FLUSH: u32 = 25;
    pub const INIT: u32 = 26;
    pub const OPENDIR: u32 = 27;
    pub const READDIR: u32 = 28;
    pub const RELEASEDIR: u32 = 29;
    pub const FSYNCDIR: u32 = 30;
    pub const GETLK: u32 = 31;
    pub const SETLK: u32 = 32;
    pub const SETLKW: u32 = 33;
    pub const ACCESS: u32 = 34;
    pub const CREATE: u32 = 35;
    pub const INTERRUPT: u32 = 36;
    pub const DESTROY: u32 = 38;
    pub const IOCTL: u32 = 39;
    pub const POLL: u32 = 40;
    pub const NOTIFY_REPLY: u32 = 41;
    pub const BATCH_FORGET: u32 = 42;
    pub const FALLOCATE: u32 = 43;
    pub const READDIRPLUS: u32 = 44;
    pub const RENAME2: u32 = 45;
    pub const LSEEK: u32 = 46;
    pub const COPY_FILE_RANGE: u32 = 47;
    pub const SYNCFS: u32 = 50;
    pub const TMPFILE: u32 = 51;
    pub const STATX: u32 = 52;
    pub const COPY_FILE_RANGE_64: u32 = 53;
}

/// Notification codes (`enum fuse_notify_code`), sent by the daemon unasked.
#[allow(missing_docs)] // the names are the documentation: see fuse.h
pub mod notify {
    pub const POLL: i32 = 1;
    pub const INVAL_INODE: i32 = 2;
    pub const INVAL_ENTRY: i32 = 3;
    pub const STORE: i32 = 4;
    pub const DELETE: i32 = 6;
    pub const RESEND: i32 = 7;
    pub const INC_EPOCH: i32 = 8;
    /// Flag of [`INVAL_ENTRY`]: let the entry's timeout expire instead of dropping the entry.
    pub const EXPIRE_ONLY: u32 = 1 << 0;
}

/// Commands of the io_uring transport (`enum fuse_uring_cmd`).
#[allow(missing_docs)] // the names are the documentation: see fuse.h
pub mod uring {
    pub const REGISTER: u32 = 1;
    pub const COMMIT_AND_FETCH: u32 = 2;
}

/// Bits of [`SetattrIn::valid`].
#[allow(missing_docs)] // the names are the documentation: see fuse.h
pub mod fattr {
    pub const MODE: u32 = 1 << 0;
    pub const UID: u32 = 1 << 1;
    pub const GID: u32 = 1 << 2;
    pub const SIZE: u32 = 1 << 3;
    pub const ATIME: u32 = 1 << 4;
    pub const MTIME: u32 = 1 << 5;
    pub const FH: u32 = 1 << 6;
    pub const ATIME_NOW: u32 = 1 << 7;
    pub const MTIME_NOW: u32 = 1 << 8;
    pub const LOCKOWNER: u32 = 1 << 9;
    pub const CTIME: u32 = 1 << 10;
    pub const KILL_SUIDGID: u32 = 1 << 11;
}

/// Flag bits of single operations.
pub mod flag {
    /// `getattr`/`statx`: the file handle field is valid.
    pub const GETATTR_FH: u32 = 1 << 0;
    /// `open`/`create`: drop set-user-ID and set-group-ID.
    pub const OPEN_KILL_SUIDGID: u32 = 1 << 0;
    /// `release`: the lock owner's flock must be dropped.
    pub const RELEASE_FLOCK_UNLOCK: u32 = 1 << 1;
    /// Lock operations: a BSD flock, not a POSIX record lock.
    pub const LK_FLOCK: u32 = 1 << 0;
    /// `write`: delayed write out of the page cache, the handle is a guess.
    pub const WRITE_CACHE: u32 = 1 << 0;
    /// `write`: the lock owner field is valid.
    pub const WRITE_LOCKOWNER: u32 = 1 << 1;
    /// `write`: drop set-user-ID and set-group-ID.
    pub const WRITE_KILL_SUIDGID: u32 = 1 << 2;
    /// `read`: the lock owner field is valid.
    pub const READ_LOCKOWNER: u32 = 1 << 1;
    /// `fsync`: data only.
    pub const FSYNC_FDATASYNC: u32 = 1 << 0;
    /// `poll`: the caller sleeps, wake it by a notification.
    pub const POLL_SCHEDULE_NOTIFY: u32 = 1 << 0;
    /// `setxattr`: drop set-group-ID along with setting a POSIX ACL.
    pub const SETXATTR_ACL_KILL_SGID: u32 = 1 << 0;
    /// Type of the request extension that carries supplementary groups.
    pub const EXT_GROUPS: u32 = 32;
}
