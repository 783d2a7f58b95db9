//! POSIX attributes of an inode.

use crate::id::Fid;
use serde::{Deserialize, Serialize};

/// Seconds and nanoseconds since the epoch; `nanos` is below 1,000,000,000 also before 1970.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
pub struct Timespec {
    /// Whole seconds, negative before 1970.
    pub secs: i64,
    /// Nanoseconds added to them.
    pub nanos: u32,
}

impl Timespec {
    /// From nanoseconds since the epoch.
    pub const fn from_nanos(nanos: i128) -> Timespec {
        Timespec {
            secs: nanos.div_euclid(1_000_000_000) as i64,
            nanos: nanos.rem_euclid(1_000_000_000) as u32,
        }
    }

    /// Nanoseconds since the epoch.
    pub const fn as_nanos(self) -> i128 {
        self.secs as i128 * 1_000_000_000 + self.nanos as i128
    }
}

/// What kind of thing an inode is; the values are those of `d_type` and of the mode's upper bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum FileType {
    /// Named pipe.
    Fifo = 1,
    /// Character device.
    CharDevice = 2,
    /// Directory.
    Directory = 4,
    /// Block device.
    BlockDevice = 6,
    /// Regular file.
    Regular = 8,
    /// Symbolic link.
    Symlink = 10,
    /// Unix socket.
    Socket = 12,
}

impl FileType {
    /// From `st_mode`.
    pub const fn from_mode(mode: u32) -> Option<FileType> {
        match (mode >> 12) & 0xf {
            1 => Some(FileType::Fifo),
            2 => Some(FileType::CharDevice),
            4 => Some(FileType::Directory),
            6 => Some(FileType::BlockDevice),
            8 => Some(FileType::Regular),
            10 => Some(FileType::Symlink),
            12 => Some(FileType::Socket),
            _ => None,
        }
    }

    /// The upper bits of `st_mode`.
    pub const fn mode_bits(self) -> u32 {
        (self as u32) << 12
    }
}

/// Mode bits, as in `<sys/stat.h>`.
pub mod mode {
    /// Set user id on execution.
    pub const SETUID: u32 = 0o4000;
    /// Set group id on execution; on directories: children inherit the group.
    pub const SETGID: u32 = 0o2000;
    /// Restricted deletion.
    pub const STICKY: u32 = 0o1000;
    /// Execution by the group.
    pub const GROUP_EXEC: u32 = 0o010;
    /// Any execution.
    pub const ANY_EXEC: u32 = 0o111;
    /// All permission bits that `chmod` may set.
    pub const PERMISSIONS: u32 = 0o7777;
}

/// Attributes of an inode, as `stat` shows them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Attr {
    /// The inode.
    pub fid: Fid,
    /// What it is.
    pub kind: FileType,
    /// Permission bits, without the type.
    pub mode: u32,
    /// Number of names; a directory's is 2 plus its sub-directories.
    pub nlink: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Bytes; length of the target for a symbolic link; number of entries for a directory.
    pub size: u64,
    /// 512-byte blocks allocated, as far as known.
    pub blocks: u64,
    /// Device number (`makedev`) of a device.
    pub rdev: u32,
    /// Last access.
    pub atime: Timespec,
    /// Last change of the contents.
    pub mtime: Timespec,
    /// Last change of anything.
    pub ctime: Timespec,
    /// Creation.
    pub btime: Timespec,
    /// Grows with every change of contents or attributes.
    pub change: u64,
}

/// The contents of a file at some moment: differs whenever another client has changed them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DataVersion {
    /// Bytes.
    pub size: u64,
    /// Last change of the contents.
    pub mtime: Timespec,
    /// Last change of anything.
    pub ctime: Timespec,
    /// As [`Attr::change`].
    pub change: u64,
}

impl From<&Attr> for DataVersion {
    fn from(attr: &Attr) -> DataVersion {
        DataVersion { size: attr.size, mtime: attr.mtime, ctime: attr.ctime, change: attr.change }
    }
}

/// A time to set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SetTime {
    /// The server's clock.
    Now,
    /// This instant.
    At(Timespec),
}

/// Which attributes to change. What is `None` stays.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SetAttr {
    /// Permission bits.
    pub mode: Option<u32>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Length in bytes.
    pub size: Option<u64>,
    /// Last access.
    pub atime: Option<SetTime>,
    /// Last modification.
    pub mtime: Option<SetTime>,
    /// Last attribute change, given by the kernel in rare cases.
    pub ctime: Option<Timespec>,
    /// Clear set-id bits as a write or chown by an unprivileged caller does.
    pub kill_suidgid: bool,
}
