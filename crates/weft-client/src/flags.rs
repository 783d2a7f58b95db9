//! How a file is opened.

use std::ops::BitOr;

/// Open flags: those of the protocol (`mds.Open`), and two that only the client heeds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OpenFlags(u32);

impl OpenFlags {
    /// For reading.
    pub const READ: OpenFlags = OpenFlags(1);
    /// For writing.
    pub const WRITE: OpenFlags = OpenFlags(2);
    /// Every write goes to the end of the file.
    pub const APPEND: OpenFlags = OpenFlags(4);
    /// Cut to nothing at open.
    pub const TRUNCATE: OpenFlags = OpenFlags(8);
    /// For execution: may be read, and execute permission is checked.
    pub const EXEC: OpenFlags = OpenFlags(16);
    /// Must be a directory.
    pub const DIRECTORY: OpenFlags = OpenFlags(32);
    /// `O_SYNC`: a write returns when data and all metadata are on stable storage.
    pub const SYNC: OpenFlags = OpenFlags(1 << 16);
    /// `O_DSYNC`: a write returns when data and what is needed to read it are on stable storage.
    pub const DSYNC: OpenFlags = OpenFlags(1 << 17);

    /// Whether all flags of `other` are set.
    pub const fn has(self, other: OpenFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether data may be read.
    pub const fn may_read(self) -> bool {
        self.0 & (Self::READ.0 | Self::EXEC.0) != 0
    }

    /// Whether each write is to be made durable.
    pub const fn is_sync(self) -> bool {
        self.0 & (Self::SYNC.0 | Self::DSYNC.0) != 0
    }

    /// As the protocol has them.
    pub const fn to_wire(self) -> u32 {
        self.0 & 0xffff
    }

    /// All of them, to be kept.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// What was kept.
    pub const fn from_bits(bits: u32) -> OpenFlags {
        OpenFlags(bits)
    }

    /// As the protocol has them, for a file that is open already: not to be cut, nor to be allowed again.
    pub(crate) const fn once_more(self) -> u32 {
        self.0 & (Self::READ.0 | Self::WRITE.0 | Self::APPEND.0 | Self::DIRECTORY.0)
    }

    /// From the flags of open(2) as Linux (x86-64 and arm64 alike) has them, including the kernel's
    /// internal `FMODE_EXEC`. Flags of no meaning here are ignored.
    pub const fn from_linux(flags: u32) -> OpenFlags {
        let access = match flags & 0o3 {
            0 => Self::READ.0,
            1 => Self::WRITE.0,
            _ => Self::READ.0 | Self::WRITE.0,
        };
        const MEANING: [(u32, OpenFlags); 5] = [
            (0o40, OpenFlags::EXEC),
            (0o1000, OpenFlags::TRUNCATE),
            (0o2000, OpenFlags::APPEND),
            (0o10000, OpenFlags::DSYNC),
            (0o4000000, OpenFlags::SYNC),
        ];
        let mut out = access;
        let mut i = 0;
        while i < MEANING.len() {
            if flags & MEANING[i].0 != 0 {
                out |= MEANING[i].1.0;
            }
            i += 1;
        }
        OpenFlags(out)
    }
}

impl BitOr for OpenFlags {
    type Output = OpenFlags;

    fn bitor(self, other: OpenFlags) -> OpenFlags {
        OpenFlags(self.0 | other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linux_flags() {
        assert_eq!(OpenFlags::from_linux(0), OpenFlags::READ);
        let flags = OpenFlags::from_linux(0o2 | 0o2000 | 0o4010000);
        let all = OpenFlags::READ | OpenFlags::WRITE | OpenFlags::APPEND;
        assert_eq!(flags, all | OpenFlags::SYNC | OpenFlags::DSYNC);
        assert_eq!(flags.to_wire(), 7);
        assert!(flags.is_sync() && flags.may_read() && !flags.has(OpenFlags::EXEC));
    }
}
