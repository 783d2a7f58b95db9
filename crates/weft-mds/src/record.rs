//! The values in the store of a metadata target, in protobuf. Field numbers are never changed and
//! never used again; unknown fields of a newer version are refused by the superblock's features.

use weft_model::attr::{Attr, FileType, Timespec};
use weft_model::{ErrorKind, Fid, FsError, Result};
use weft_rpc::pb;

/// An inode. Times are seconds and nanoseconds since the epoch.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Inode {
    /// Type and permission bits, as `st_mode`.
    #[prost(uint32, tag = "1")]
    pub mode: u32,
    #[prost(uint32, tag = "2")]
    pub nlink: u32,
    #[prost(uint32, tag = "3")]
    pub uid: u32,
    #[prost(uint32, tag = "4")]
    pub gid: u32,
    /// Bytes of a file; a lower bound while sessions write (see `writers`).
    #[prost(uint64, tag = "5")]
    pub size: u64,
    /// Allocated units of 512 bytes.
    #[prost(uint64, tag = "6")]
    pub blocks: u64,
    #[prost(uint32, tag = "7")]
    pub rdev: u32,
    #[prost(sint64, tag = "8")]
    pub atime: i64,
    #[prost(uint32, tag = "9")]
    pub atime_ns: u32,
    #[prost(sint64, tag = "10")]
    pub mtime: i64,
    #[prost(uint32, tag = "11")]
    pub mtime_ns: u32,
    #[prost(sint64, tag = "12")]
    pub ctime: i64,
    #[prost(uint32, tag = "13")]
    pub ctime_ns: u32,
    #[prost(sint64, tag = "14")]
    pub btime: i64,
    #[prost(uint32, tag = "15")]
    pub btime_ns: u32,
    /// When the mtime was last determined: the time of the write, or of the call that set it. A
    /// write reported later counts only if it was made later.
    #[prost(sint64, tag = "16")]
    pub mtime_order: i64,
    #[prost(uint32, tag = "17")]
    pub mtime_order_ns: u32,
    /// Grows with every change.
    #[prost(uint64, tag = "18")]
    pub change: u64,
    /// Counts truncations.
    #[prost(uint64, tag = "19")]
    pub size_epoch: u64,
    /// Where the data of a regular file lives.
    #[prost(message, optional, tag = "20")]
    pub layout: Option<pb::Layout>,
    /// Target of a symbolic link.
    #[prost(bytes = "vec", tag = "21")]
    pub symlink: Vec<u8>,
    /// A directory's parent; of other inodes the directory of one of their names, 0 when not known.
    #[prost(fixed64, tag = "22")]
    pub parent: u64,
    /// The name in `parent`.
    #[prost(bytes = "vec", tag = "23")]
    pub name: Vec<u8>,
    /// What new entries of a directory get.
    #[prost(message, optional, tag = "24")]
    pub spec: Option<pb::LayoutSpec>,
    /// Sessions that have the file open for writing, or had and have not said what they wrote.
    #[prost(uint64, repeated, tag = "25")]
    pub writers: Vec<u64>,
    /// Entries of a directory.
    #[prost(uint64, tag = "26")]
    pub entries: u64,
    /// There may be objects on OSTs.
    #[prost(bool, tag = "27")]
    pub touched: bool,
    /// There is an access list.
    #[prost(bool, tag = "28")]
    pub has_acl: bool,
    /// There is a default access list.
    #[prost(bool, tag = "29")]
    pub has_default_acl: bool,
    /// Number of extended attributes, access lists included.
    #[prost(uint32, tag = "30")]
    pub xattrs: u32,
    /// The target has the bytes of the file itself (see [`Inline`]). Objects, if there are any, are void.
    #[prost(bool, tag = "31")]
    pub inline: bool,
}

/// The bytes of a small file from its beginning on; what is missing up to its size reads as zeros.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Inline {
    #[prost(bytes = "vec", tag = "1")]
    pub data: Vec<u8>,
    /// CRC32C of each block of 4 KiB.
    #[prost(fixed32, repeated, tag = "2")]
    pub sums: Vec<u32>,
}

/// An entry of a directory.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Dirent {
    /// The inode.
    #[prost(fixed64, tag = "1")]
    pub fid: u64,
    /// `d_type`.
    #[prost(uint32, tag = "2")]
    pub kind: u32,
}

/// A session.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Session {
    #[prost(string, tag = "1")]
    pub host: String,
    #[prost(string, tag = "2")]
    pub mountpoint: String,
    /// The client lives in the server's process and dies with it.
    #[prost(bool, tag = "3")]
    pub local: bool,
    /// The client keeps what it is granted.
    #[prost(bool, tag = "4")]
    pub caches: bool,
    /// The client takes write delegations.
    #[prost(bool, tag = "5")]
    pub delegations: bool,
}

/// The answer to the last modifying request of a slot.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct SavedReply {
    #[prost(uint64, tag = "1")]
    pub sequence: u64,
    /// Message number.
    #[prost(uint32, tag = "2")]
    pub number: u32,
    /// Encoded reply.
    #[prost(bytes = "vec", tag = "3")]
    pub body: Vec<u8>,
}

/// Objects whose file is gone.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Garbage {
    #[prost(message, optional, tag = "1")]
    pub layout: Option<pb::Layout>,
}

/// A truncation that has begun: objects are being cut to what a file of `size` bytes has.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Truncation {
    #[prost(uint64, tag = "1")]
    pub size: u64,
}

/// How far the objects of an OST have been compared with inodes.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ObjectCheck {
    /// Of the OST's list; empty at the beginning.
    #[prost(string, tag = "1")]
    pub cursor: String,
    /// Something was left that has to be looked at again.
    #[prost(bool, tag = "2")]
    pub again: bool,
}

/// Numbers given out. What was reserved and not used at a crash is skipped.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Counters {
    /// Sequence in use.
    #[prost(uint32, tag = "1")]
    pub sequence: u32,
    /// Next object number in it.
    #[prost(uint64, tag = "2")]
    pub next_object: u64,
    /// Inodes in use.
    #[prost(uint64, tag = "3")]
    pub inodes: u64,
}

/// Decodes a stored value.
///
/// # Errors
/// `Corrupt`, naming the key.
pub fn decode<M: prost::Message + Default>(key: &[u8], value: &[u8]) -> Result<M> {
    M::decode(value).map_err(|error| {
        FsError::new(ErrorKind::Corrupt, "decode record")
            .on(format_args!("key={}", key.escape_ascii()))
            .because(error)
    })
}

impl Inode {
    /// What it is.
    pub fn kind(&self) -> FileType {
        // Only known types are ever stored; a damaged record does not pass the store's checksums.
        FileType::from_mode(self.mode).unwrap_or(FileType::Regular)
    }

    /// Whether it is a directory.
    pub fn is_dir(&self) -> bool {
        self.kind() == FileType::Directory
    }

    /// The attributes as users see them.
    pub fn attr(&self, fid: Fid) -> Attr {
        let kind = self.kind();
        let size = match kind {
            FileType::Directory => self.entries,
            FileType::Symlink => self.symlink.len() as u64,
            _ => self.size,
        };
        Attr {
            fid,
            kind,
            mode: self.mode & 0o7777,
            nlink: self.nlink,
            uid: self.uid,
            gid: self.gid,
            size,
            blocks: self.blocks,
            rdev: self.rdev,
            atime: self.atime(),
            mtime: self.mtime(),
            ctime: self.ctime(),
            btime: Timespec { secs: self.btime, nanos: self.btime_ns },
            change: self.change,
        }
    }

    /// Last access.
    pub const fn atime(&self) -> Timespec {
        Timespec { secs: self.atime, nanos: self.atime_ns }
    }

    /// Last change of the contents.
    pub const fn mtime(&self) -> Timespec {
        Timespec { secs: self.mtime, nanos: self.mtime_ns }
    }

    /// Last change of anything.
    pub const fn ctime(&self) -> Timespec {
        Timespec { secs: self.ctime, nanos: self.ctime_ns }
    }

    /// Sets the access time.
    pub const fn set_atime(&mut self, time: Timespec) {
        (self.atime, self.atime_ns) = (time.secs, time.nanos);
    }

    /// Sets the modification time, as determined at `order`.
    pub const fn set_mtime(&mut self, time: Timespec, order: Timespec) {
        (self.mtime, self.mtime_ns) = (time.secs, time.nanos);
        (self.mtime_order, self.mtime_order_ns) = (order.secs, order.nanos);
    }

    /// Notes a change of anything: time and counter.
    pub const fn touch_ctime(&mut self, time: Timespec) {
        (self.ctime, self.ctime_ns) = (time.secs, time.nanos);
        self.change += 1;
    }

    /// Notes a change of a directory's entries.
    pub const fn touch_entries(&mut self, time: Timespec) {
        self.set_mtime(time, time);
        self.touch_ctime(time);
    }

    /// Notes a write made at `time` by a client, unless something later has set the times already.
    pub fn touch_written(&mut self, time: Timespec) {
        let order = Timespec { secs: self.mtime_order, nanos: self.mtime_order_ns };
        if time > order {
            self.set_mtime(time, time);
        }
        let ctime = self.ctime().max(time);
        self.touch_ctime(ctime);
    }

    /// Whether sessions other than `client` may have written what is not known here.
    pub fn written_by_others(&self, client: u64) -> bool {
        self.writers.iter().any(|&writer| writer != client)
    }
}
