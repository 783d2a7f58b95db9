//! Plain types the operations take and return; nothing of the wire format shows through.

use std::ops::BitOr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A point in time: seconds since the epoch (negative before it) plus nanoseconds (0..10^9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time {
    /// Whole seconds since 1970-01-01 UTC.
    pub secs: i64,
    /// Nanoseconds after `secs`.
    pub nanos: u32,
}

impl Time {
    /// The realtime clock now.
    pub fn now() -> Time {
        SystemTime::now().into()
    }
}

impl From<SystemTime> for Time {
    fn from(time: SystemTime) -> Time {
        match time.duration_since(UNIX_EPOCH) {
            Ok(after) => Time { secs: after.as_secs() as i64, nanos: after.subsec_nanos() },
            Err(error) => {
                let before = error.duration();
                let borrow = i64::from(before.subsec_nanos() > 0);
                let nanos = (1_000_000_000 - before.subsec_nanos()) % 1_000_000_000;
                Time { secs: -(before.as_secs() as i64) - borrow, nanos }
            }
        }
    }
}

/// Attributes of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attr {
    /// Inode number as `stat` shows it.
    pub ino: u64,
    /// Length in bytes.
    pub size: u64,
    /// Space taken, in units of 512 bytes.
    pub blocks: u64,
    /// Last access.
    pub atime: Time,
    /// Last change of the data.
    pub mtime: Time,
    /// Last change of the attributes.
    pub ctime: Time,
    /// File type and permission bits, as `st_mode`.
    pub mode: u32,
    /// Number of hard links.
    pub nlink: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Device number of a device node, in the kernel's 32-bit encoding (as [`rdev`] makes it).
    pub rdev: u32,
    /// Preferred I/O size in bytes, as `st_blksize`; 0 lets the kernel choose.
    pub blksize: u32,
}

/// Encodes a device number the way the kernel passes it in 32 bits.
pub const fn rdev(major: u32, minor: u32) -> u32 {
    (minor & 0xff) | (major << 8) | ((minor & !0xff) << 12)
}

/// Attributes with the time the kernel may cache them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// The attributes.
    pub attr: Attr,
    /// How long the kernel may use them without asking again.
    pub ttl: Duration,
}

/// Answer to a lookup, and to everything that makes a name.
///
/// Every entry answered with a non-zero `node` raises the kernel's lookup count of that node by
/// one; `forget` lowers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Number by which the kernel will name the node in requests; 0 for a negative entry.
    pub node: u64,
    /// Tells apart successive uses of one node number (matters for NFS export only).
    pub generation: u64,
    /// The node's attributes.
    pub attr: Attr,
    /// How long the kernel may use the name, or its absence, without asking again.
    pub entry_ttl: Duration,
    /// How long the kernel may use the attributes without asking again.
    pub attr_ttl: Duration,
}

impl Entry {
    /// An entry whose node number is its inode number, with one lifetime for name and attributes.
    pub fn new(attr: Attr, ttl: Duration) -> Entry {
        Entry { node: attr.ino, generation: 0, attr, entry_ttl: ttl, attr_ttl: ttl }
    }

    /// "There is no such name", cacheable for `ttl`; costs the kernel nothing to remember.
    pub fn negative(ttl: Duration) -> Entry {
        let attr = Attr::default();
        Entry { node: 0, generation: 0, attr, entry_ttl: ttl, attr_ttl: Duration::ZERO }
    }
}

/// A timestamp to set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetTime {
    /// The time of execution; allowed to whoever may write the file.
    Now,
    /// A given time; allowed to the owner only.
    At(Time),
}

/// Attribute changes; `None` leaves the attribute alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetAttr {
    /// New permission bits (the file type bits repeat the node's type).
    pub mode: Option<u32>,
    /// New owner.
    pub uid: Option<u32>,
    /// New group.
    pub gid: Option<u32>,
    /// New length in bytes (truncate or extend).
    pub size: Option<u64>,
    /// New access time.
    pub atime: Option<SetTime>,
    /// New modification time.
    pub mtime: Option<SetTime>,
    /// New change time; only sent with writeback caching.
    pub ctime: Option<Time>,
    /// Handle of the open file through which the change is made (`ftruncate`).
    pub fh: Option<u64>,
    /// POSIX lock owner, for mandatory locking; see [`ReadArgs::lock_owner`].
    pub lock_owner: Option<u64>,
    /// Also drop set-user-ID and set-group-ID (feature `HANDLE_KILLPRIV_V2`).
    pub kill_suidgid: bool,
}

/// Attributes beyond [`Attr`], answered to `statx`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statx {
    /// The ordinary attributes.
    pub attr: Attr,
    /// Time of birth, where known.
    pub btime: Option<Time>,
    /// `STATX_ATTR_…` bits that are set.
    pub attributes: u64,
    /// `STATX_ATTR_…` bits that the file system supports.
    pub attributes_mask: u64,
    /// How long the kernel may cache the ordinary attributes.
    pub ttl: Duration,
}

/// Totals of the file system, as `statvfs(3)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statfs {
    /// Size in units of `frsize`.
    pub blocks: u64,
    /// Free blocks.
    pub bfree: u64,
    /// Free blocks for unprivileged users.
    pub bavail: u64,
    /// Number of inodes.
    pub files: u64,
    /// Free inodes.
    pub ffree: u64,
    /// Preferred I/O size in bytes.
    pub bsize: u32,
    /// Longest file name in bytes.
    pub namelen: u32,
    /// Block unit in bytes.
    pub frsize: u32,
}

/// How the kernel is to treat an open file or directory (`FOPEN_…`); combine with `|`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenFlags(pub(crate) u32);

impl OpenFlags {
    /// Reads and writes bypass the page cache.
    pub const DIRECT_IO: OpenFlags = OpenFlags(1 << 0);
    /// Keep the pages cached under earlier opens.
    pub const KEEP_CACHE: OpenFlags = OpenFlags(1 << 1);
    /// The file cannot seek.
    pub const NONSEEKABLE: OpenFlags = OpenFlags(1 << 2);
    /// The kernel may cache this directory's listing.
    pub const CACHE_DIR: OpenFlags = OpenFlags(1 << 3);
    /// The file has no position at all.
    pub const STREAM: OpenFlags = OpenFlags(1 << 4);
    /// Send no `flush` at close (ignored with writeback caching).
    pub const NOFLUSH: OpenFlags = OpenFlags(1 << 5);
    /// Direct writes to one file may run at the same time, extending ones excepted.
    pub const PARALLEL_DIRECT_WRITES: OpenFlags = OpenFlags(1 << 6);
    /// Set by [`Opened::passthrough`] alone, since it needs a backing file.
    pub(crate) const PASSTHROUGH: OpenFlags = OpenFlags(1 << 7);
}

impl BitOr for OpenFlags {
    type Output = OpenFlags;
    fn bitor(self, other: OpenFlags) -> OpenFlags {
        OpenFlags(self.0 | other.0)
    }
}

/// Answer to `open`, `opendir` and `create`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Opened {
    /// Handle the kernel will name in operations on this open file; any value.
    pub fh: u64,
    /// How the kernel is to treat it.
    pub flags: OpenFlags,
    /// Registered backing file; see [`Opened::passthrough`].
    pub(crate) backing_id: i32,
}

impl Opened {
    /// An ordinary open file.
    pub fn new(fh: u64, flags: OpenFlags) -> Opened {
        Opened { fh, flags, backing_id: 0 }
    }

    /// An open file whose reads, writes and maps the kernel does itself on the backing file that
    /// [`Device::backing_open`](super::Device::backing_open) registered. Needs the feature
    /// `PASSTHROUGH`; all opens of one node must use the same backing file.
    pub fn passthrough(fh: u64, flags: OpenFlags, backing_id: i32) -> Opened {
        Opened { fh, flags: flags | OpenFlags::PASSTHROUGH, backing_id }
    }
}

/// Arguments of `read` beside the node and the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadArgs {
    /// Handle of the open file.
    pub fh: u64,
    /// Position in bytes.
    pub offset: u64,
    /// Present flags of the open file (`O_…`).
    pub flags: u32,
    /// Opaque number of the process's POSIX lock owner, where the kernel sends it.
    pub lock_owner: Option<u64>,
}

/// Arguments of `write` beside the node and the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteArgs {
    /// Handle of the open file; with `from_cache`, of any one that can write.
    pub fh: u64,
    /// Position in bytes.
    pub offset: u64,
    /// Present flags of the open file (`O_…`).
    pub flags: u32,
    /// Opaque number of the process's POSIX lock owner, where the kernel sends it.
    pub lock_owner: Option<u64>,
    /// Delayed write out of the page cache: the caller's identity is not the writer's.
    pub from_cache: bool,
    /// Also drop set-user-ID and set-group-ID (feature `HANDLE_KILLPRIV_V2`).
    pub kill_suidgid: bool,
}

/// Arguments of `release`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReleaseArgs {
    /// Handle of the open file.
    pub fh: u64,
    /// Flags of the open file (`O_…`).
    pub flags: u32,
    /// Owner whose BSD flock on this file is to be dropped, if there may be one.
    pub flock_owner: Option<u64>,
}

/// A byte range lock, or with [`Lock::flock`] a whole-file BSD lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lock {
    /// Handle of the open file.
    pub fh: u64,
    /// Opaque number of the owner: a process (POSIX) or an open file (flock, OFD).
    pub owner: u64,
    /// First byte.
    pub start: u64,
    /// Last byte, inclusive; `i64::MAX` (`OFFSET_MAX`) means to the end.
    pub end: u64,
    /// Shared, exclusive or unlock.
    pub kind: LockKind,
    /// Process id, for `F_GETLK`.
    pub pid: u32,
    /// A BSD flock: owners differ from those of POSIX locks and the two kinds do not conflict.
    pub flock: bool,
}

/// Kind of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind {
    /// `F_RDLCK`.
    Shared,
    /// `F_WRLCK`.
    Exclusive,
    /// `F_UNLCK`: remove; as an answer to `getlk`: nothing is in the way.
    Unlock,
}

/// Arguments of `copy_file_range`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyArgs {
    /// Handle of the source.
    pub fh_in: u64,
    /// Position in the source, bytes.
    pub offset_in: u64,
    /// Node of the destination.
    pub node_out: u64,
    /// Handle of the destination.
    pub fh_out: u64,
    /// Position in the destination, bytes.
    pub offset_out: u64,
    /// Bytes to copy at most.
    pub len: u64,
    /// As `copy_file_range(2)`; 0 today.
    pub flags: u64,
}

/// Arguments of a restricted `ioctl`: the command number itself gives direction and sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoctlArgs {
    /// Handle of the open file or directory.
    pub fh: u64,
    /// The command.
    pub cmd: u32,
    /// The third argument of `ioctl(2)`, not to be dereferenced.
    pub arg: u64,
    /// `FUSE_IOCTL_…` flags: 32-bit caller, directory.
    pub flags: u32,
}

/// Answer to `ioctl`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoctlReply {
    /// Value `ioctl(2)` returns, not negative.
    pub result: i32,
    /// Bytes written to the output buffer.
    pub len: usize,
}
