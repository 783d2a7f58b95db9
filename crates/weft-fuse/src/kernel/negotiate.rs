//! INIT: agreeing with the kernel on features and sizes.

use std::fmt;
use std::ops::{BitAnd, BitOr, BitOrAssign, Not};

use zerocopy::FromBytes;

use super::abi::{self, InitIn, InitInExt, InitOut};
use super::errno::{Errno, Result};

/// A set of protocol features (`FUSE_…` bits of INIT); combine with `|`, remove with `& !`.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Features(u64);

macro_rules! features {
    ($($(#[$doc:meta])* $name:ident = $bit:literal;)*) => {
        impl Features {
            $($(#[$doc])* pub const $name: Features = Features(1 << $bit);)*
        }
        impl fmt::Debug for Features {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut set = f.debug_set();
                $(if self.contains(Features::$name) { set.entry(&stringify!($name)); })*
                set.finish()
            }
        }
    };
}

features! {
    /// Several reads of one file at once.
    ASYNC_READ = 0;
    /// POSIX locks are the file system's business.
    POSIX_LOCKS = 1;
    /// `open` and `create` truncate; otherwise a `setattr` follows.
    ATOMIC_O_TRUNC = 3;
    /// `lookup` knows `.` and `..`, for NFS export and handles.
    EXPORT_SUPPORT = 4;
    /// Writes larger than a page.
    BIG_WRITES = 5;
    /// The file system applies the umask itself; a must with default ACLs.
    DONT_MASK = 6;
    /// BSD flocks are the file system's business.
    FLOCK_LOCKS = 10;
    /// `ioctl` on directories.
    HAS_IOCTL_DIR = 11;
    /// Drop cached data when attributes show that the file changed.
    AUTO_INVAL_DATA = 12;
    /// `readdirplus`.
    DO_READDIRPLUS = 13;
    /// `readdirplus` only while lookups follow.
    READDIRPLUS_AUTO = 14;
    /// Direct I/O is split and sent in parallel.
    ASYNC_DIO = 15;
    /// Delayed writes; takes the authority over length and times away from the file system.
    WRITEBACK_CACHE = 16;
    /// `open` may be answered `ENOSYS`, after which none is sent.
    NO_OPEN_SUPPORT = 17;
    /// Lookups and listings of one directory at once.
    PARALLEL_DIROPS = 18;
    /// POSIX ACLs in xattrs, checked by the kernel; ask for `DONT_MASK` as well.
    POSIX_ACL = 20;
    /// Reading an aborted connection fails with `ECONNABORTED` instead of `ENODEV`.
    ABORT_ERROR = 21;
    /// Requests larger than 128 KiB.
    MAX_PAGES = 22;
    /// Cache `readlink`.
    CACHE_SYMLINKS = 23;
    /// Drop cached data only on notification, never on changed attributes.
    EXPLICIT_INVAL_DATA = 25;
    /// The file system drops set-ID bits on write, truncate and chown, told by flags when to.
    HANDLE_KILLPRIV_V2 = 28;
    /// `setxattr` carries flags of its own.
    SETXATTR_EXT = 29;
    /// The features from bit 32 on exist.
    INIT_EXT = 30;
    /// One supplementary group comes along with operations that make a node.
    CREATE_SUPP_GROUP = 34;
    /// Entries can be expired instead of dropped.
    HAS_EXPIRE_ONLY = 35;
    /// Shared maps of files open for direct I/O.
    DIRECT_IO_ALLOW_MMAP = 36;
    /// Reads and writes go straight to a backing file.
    PASSTHROUGH = 37;
    /// Unanswered requests can be sent again, to the daemon's successor.
    HAS_RESEND = 39;
    /// Requests come through io_uring.
    OVER_IO_URING = 41;
}

impl Features {
    /// Whether all of `other` are in this set.
    pub fn contains(self, other: Features) -> bool {
        self & other == other
    }

    /// As a number, to be kept.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// What was kept.
    pub const fn from_bits(bits: u64) -> Features {
        Features(bits)
    }

    /// What this binding asks for unless told otherwise.
    pub const fn standard() -> Features {
        let list = [
            Features::ASYNC_READ,
            Features::POSIX_LOCKS,
            Features::FLOCK_LOCKS,
            Features::ATOMIC_O_TRUNC,
            Features::EXPORT_SUPPORT,
            Features::BIG_WRITES,
            Features::HAS_IOCTL_DIR,
            Features::DO_READDIRPLUS,
            Features::READDIRPLUS_AUTO,
            Features::ASYNC_DIO,
            Features::PARALLEL_DIROPS,
            Features::MAX_PAGES,
            Features::HANDLE_KILLPRIV_V2,
            Features::SETXATTR_EXT,
            Features::CREATE_SUPP_GROUP,
            Features::HAS_EXPIRE_ONLY,
            Features::DIRECT_IO_ALLOW_MMAP,
            Features::HAS_RESEND,
        ];
        let mut bits = 0;
        let mut index = 0;
        while index < list.len() {
            bits |= list[index].0;
            index += 1;
        }
        Features(bits)
    }
}

impl BitOr for Features {
    type Output = Features;
    fn bitor(self, other: Features) -> Features {
        Features(self.0 | other.0)
    }
}

impl BitOrAssign for Features {
    fn bitor_assign(&mut self, other: Features) {
        self.0 |= other.0;
    }
}

impl BitAnd for Features {
    type Output = Features;
    fn bitand(self, other: Features) -> Features {
        Features(self.0 & other.0)
    }
}

impl Not for Features {
    type Output = Features;
    fn not(self) -> Features {
        Features(!self.0)
    }
}

/// What the kernel offers.
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    /// Protocol minor version of the kernel.
    pub minor: u32,
    /// Features the kernel knows.
    pub features: Features,
    /// Read-ahead in bytes (more only through `/sys/class/bdi/…/read_ahead_kb`).
    pub max_readahead: u32,
}

impl Offer {
    /// Reads the argument of INIT.
    ///
    /// # Errors
    /// `EPROTO` for another major version, one older than 7.31, or a short message.
    pub fn decode(body: &[u8]) -> Result<Offer> {
        let (init, rest) = InitIn::read_from_prefix(body).map_err(|_| Errno::EPROTO)?;
        if init.major != abi::KERNEL_VERSION || init.minor < abi::OLDEST_MINOR_VERSION {
            return Err(Errno::EPROTO);
        }
        let mut features = Features(u64::from(init.flags));
        if features.contains(Features::INIT_EXT) {
            let (more, _) = InitInExt::read_from_prefix(rest).map_err(|_| Errno::EPROTO)?;
            features.0 |= u64::from(more.flags2) << 32;
        }
        Ok(Offer { minor: init.minor, features, max_readahead: init.max_readahead })
    }
}

/// The terms of a connection: first as wanted, after INIT as in force.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// Features.
    pub features: Features,
    /// Largest read or write in bytes, a multiple of the page size. The kernel has its own limit,
    /// 1 MiB unless the sysctl `fs.fuse.max_pages_limit` is raised before the mount.
    pub max_write: u32,
    /// Largest read-ahead in bytes; the kernel's offer is the upper bound.
    pub max_readahead: u32,
    /// Requests nobody waits for (read-ahead, write-back, asynchronous direct I/O, `release`)
    /// that may be under way at once.
    pub max_background: u16,
    /// Such requests from which on the kernel holds back read-ahead.
    pub congestion_threshold: u16,
    /// Granularity of timestamps in nanoseconds.
    pub time_gran: u32,
    /// With `PASSTHROUGH`: stacking depth of this mount, 1 for backing files on ordinary file
    /// systems.
    pub max_stack_depth: u32,
}

impl Default for Terms {
    fn default() -> Terms {
        Terms {
            features: Features::standard(),
            max_write: 1 << 20,
            max_readahead: 1 << 20,
            max_background: 64,
            congestion_threshold: 48,
            time_gran: 1,
            max_stack_depth: 0,
        }
    }
}

const PAGE: u32 = 4096;

impl Terms {
    /// Cuts the wishes down to what the kernel offers and to what is valid at all.
    pub fn settle(&mut self, offer: &Offer) {
        self.features |= Features::INIT_EXT;
        self.features = self.features & offer.features;
        if !self.features.contains(Features::PASSTHROUGH) {
            self.max_stack_depth = 0;
        }
        let largest = if self.features.contains(Features::MAX_PAGES) { 65535 } else { 32 };
        self.max_write = self.max_write.next_multiple_of(PAGE).clamp(32 * PAGE, largest * PAGE);
        self.max_readahead = self.max_readahead.min(offer.max_readahead);
    }

    /// The reply to INIT.
    pub(crate) fn encode(&self, offer: &Offer) -> InitOut {
        InitOut {
            major: abi::KERNEL_VERSION,
            minor: offer.minor.min(abi::KERNEL_MINOR_VERSION),
            max_readahead: self.max_readahead,
            flags: self.features.0 as u32,
            max_background: self.max_background,
            congestion_threshold: self.congestion_threshold,
            max_write: self.max_write,
            time_gran: self.time_gran,
            max_pages: (self.max_write / PAGE) as u16,
            flags2: (self.features.0 >> 32) as u32,
            max_stack_depth: self.max_stack_depth,
            ..InitOut::default()
        }
    }
}
