//! One error type for the whole system: a stable kind, what was attempted, on what, and why.
//!
//! Three exhaustive matches hang on the kind: the errno an application sees, the retry rule a client
//! follows, and (later) the operator's code. Numbers are frozen: they travel on the wire.

use std::fmt;

/// Result of anything that can fail in Weft.
pub type Result<T, E = FsError> = std::result::Result<T, E>;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $errno:ident, $retry:ident, $text:literal;)*) => {
        /// What went wrong. The numbers never change and are never used again.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(u16)]
        pub enum ErrorKind { $($(#[$doc])* $name = $number,)* }

        impl ErrorKind {
            /// Every kind, for documentation and tests.
            pub const ALL: &'static [ErrorKind] = &[$(ErrorKind::$name,)*];

            /// The kind behind a wire number; an unknown one is an I/O error.
            pub fn from_wire(number: u16) -> ErrorKind {
                match number { $($number => ErrorKind::$name,)* _ => ErrorKind::Io }
            }

            /// The errno that an application gets to see.
            pub const fn errno(self) -> i32 {
                match self { $(ErrorKind::$name => errno::$errno,)* }
            }

            /// What a client does about it.
            pub const fn retry(self) -> Retry {
                match self { $(ErrorKind::$name => Retry::$retry,)* }
            }

            /// Short lowercase description.
            pub const fn text(self) -> &'static str {
                match self { $(ErrorKind::$name => $text,)* }
            }
        }
    };
}

/// Linux errno values, spelled out so that this crate needs no libc.
pub mod errno {
    #![allow(missing_docs)]
    pub const EPERM: i32 = 1;
    pub const ENOENT: i32 = 2;
    pub const EINTR: i32 = 4;
    pub const EIO: i32 = 5;
    pub const ENXIO: i32 = 6;
    pub const E2BIG: i32 = 7;
    pub const EBADF: i32 = 9;
    pub const EAGAIN: i32 = 11;
    pub const ENOMEM: i32 = 12;
    pub const EACCES: i32 = 13;
    pub const EBUSY: i32 = 16;
    pub const EEXIST: i32 = 17;
    pub const EXDEV: i32 = 18;
    pub const ENFILE: i32 = 23;
    pub const EMFILE: i32 = 24;
    pub const ENODEV: i32 = 19;
    pub const ENOTDIR: i32 = 20;
    pub const EISDIR: i32 = 21;
    pub const EINVAL: i32 = 22;
    pub const ETXTBSY: i32 = 26;
    pub const EFBIG: i32 = 27;
    pub const ENOSPC: i32 = 28;
    pub const EROFS: i32 = 30;
    pub const EMLINK: i32 = 31;
    pub const ERANGE: i32 = 34;
    pub const EDEADLK: i32 = 35;
    pub const ENAMETOOLONG: i32 = 36;
    pub const ENOSYS: i32 = 38;
    pub const ENOTEMPTY: i32 = 39;
    pub const ELOOP: i32 = 40;
    pub const ENODATA: i32 = 61;
    pub const EPROTO: i32 = 71;
    pub const EOPNOTSUPP: i32 = 95;
    pub const ETIMEDOUT: i32 = 110;
    pub const ESTALE: i32 = 116;
    pub const EUCLEAN: i32 = 117;
    pub const EDQUOT: i32 = 122;
}

/// What a client does about an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Retry {
    /// Final: hand it to the caller.
    No,
    /// Send the same request again after a pause.
    Same,
    /// Fetch the cluster map, find the target anew, send again.
    RefreshMap,
    /// The connection is gone: connect again, send again.
    Reconnect,
    /// The server does not know the session: open it again, reclaim, send again.
    NewSession,
}

kinds! {
    /// The caller may not do this, whatever the mode bits say.
    Perm = 1, EPERM, No, "operation not permitted";
    /// No such file, directory or object.
    NotFound = 2, ENOENT, No, "no such file or directory";
    /// Interrupted by a signal.
    Interrupted = 4, EINTR, No, "interrupted";
    /// Unspecified input/output error.
    Io = 5, EIO, No, "input/output error";
    /// A seek found neither data nor hole.
    NoSuchOffset = 6, ENXIO, No, "no such offset";
    /// A value or a request is larger than allowed.
    TooBig = 7, E2BIG, No, "argument too large";
    /// The file handle is not open, or not open for this.
    BadHandle = 9, EBADF, No, "bad file handle";
    /// A non-blocking request would have to wait (locks).
    WouldBlock = 11, EAGAIN, No, "would block";
    /// A bound on memory was met.
    NoMemory = 12, ENOMEM, No, "out of memory";
    /// Mode bits or access control list deny it.
    Access = 13, EACCES, No, "permission denied";
    /// In use.
    Busy = 16, EBUSY, No, "busy";
    /// The name exists already.
    Exists = 17, EEXIST, No, "exists already";
    /// The operation would cross file systems or targets.
    CrossDevice = 18, EXDEV, No, "crosses targets";
    /// A path component is not a directory.
    NotDir = 20, ENOTDIR, No, "not a directory";
    /// The object is a directory.
    IsDir = 21, EISDIR, No, "is a directory";
    /// The request makes no sense.
    Invalid = 22, EINVAL, No, "invalid argument";
    /// Offset or size beyond what the layout allows.
    FileTooBig = 27, EFBIG, No, "file too large";
    /// The target, or every target, is full.
    NoSpace = 28, ENOSPC, No, "no space left";
    /// Mounted or exported read-only.
    ReadOnly = 30, EROFS, No, "read-only file system";
    /// Too many hard links.
    TooManyLinks = 31, EMLINK, No, "too many links";
    /// The result does not fit the buffer given.
    Range = 34, ERANGE, No, "result too large for the buffer";
    /// Waiting for this lock would close a circle.
    Deadlock = 35, EDEADLK, No, "deadlock";
    /// A name longer than 255 bytes or a path longer than 4095.
    NameTooLong = 36, ENAMETOOLONG, No, "name too long";
    /// Not implemented.
    NotImplemented = 38, ENOSYS, No, "not implemented";
    /// The directory has entries.
    NotEmpty = 39, ENOTEMPTY, No, "directory not empty";
    /// Too many symbolic links, or a rename that would make a loop.
    Loop = 40, ELOOP, No, "too many levels";
    /// No such extended attribute.
    NoData = 61, ENODATA, No, "no such attribute";
    /// A known operation that this object or layout does not support.
    NotSupported = 95, EOPNOTSUPP, No, "not supported";
    /// The deadline passed.
    TimedOut = 110, ETIMEDOUT, Same, "timed out";
    /// The file is gone, though a handle or number for it was still held.
    Stale = 116, ESTALE, No, "stale file handle";
    /// Quota exceeded.
    Quota = 122, EDQUOT, No, "quota exceeded";

    /// Stored data does not match its checksum.
    Checksum = 200, EIO, No, "checksum mismatch";
    /// A stored structure cannot be understood.
    Corrupt = 201, EUCLEAN, No, "corrupt structure";
    /// A frame or message that cannot be understood.
    Protocol = 202, EPROTO, No, "malformed message";
    /// No version of the protocol or format that both sides know.
    Version = 203, EPROTO, No, "version not supported";
    /// Key wrong or missing, or the role may not do this.
    Denied = 204, EACCES, No, "access to the cluster refused";
    /// The answering server knows a newer cluster map.
    StaleMap = 210, EIO, RefreshMap, "cluster map is out of date";
    /// The target is not served here.
    WrongNode = 211, EIO, RefreshMap, "target is not served here";
    /// The target is starting, stopping or recovering.
    NotReady = 212, EIO, Same, "target is not ready";
    /// The connection broke before the answer came.
    Disconnected = 213, EIO, Reconnect, "connection lost";
    /// The session is unknown or has expired.
    NoSession = 214, EIO, NewSession, "session expired";
    /// The session was shut out; nothing it still sends may be carried out.
    Fenced = 215, EIO, No, "session fenced";
    /// Too much is queued; come again.
    Overloaded = 216, EIO, Same, "server overloaded";
    /// The target took itself out of service after a failed write or sync.
    Poisoned = 217, EIO, No, "target out of service after an I/O failure";
    /// The MDS needs the supplementary groups to decide.
    NeedGroups = 218, EACCES, No, "supplementary groups needed";
    /// The MDT does not keep the bytes of this file.
    NotInline = 219, EIO, No, "data is not on the metadata target";
}

/// What went wrong, in which operation, on what, and what caused it.
///
/// Prints as `create failed: no space left subject=OST0003 fid=0x2:0x11: detail`.
#[derive(Debug)]
pub struct FsError {
    /// The stable kind.
    pub kind: ErrorKind,
    /// What was attempted, lowercase verb: `create`, `read superblock`.
    pub op: &'static str,
    /// On what: target, file, address, as `key=value`; empty when the caller knows.
    pub subject: String,
    /// What caused it, or what to do about it; empty when the kind says all.
    pub detail: String,
}

impl FsError {
    /// An error with nothing to add. Cheap: allocates nothing.
    pub const fn new(kind: ErrorKind, op: &'static str) -> FsError {
        FsError { kind, op, subject: String::new(), detail: String::new() }
    }

    /// Names what the operation was about.
    pub fn on(mut self, subject: impl fmt::Display) -> FsError {
        self.subject = subject.to_string();
        self
    }

    /// Adds the cause, or what to do.
    pub fn because(mut self, detail: impl fmt::Display) -> FsError {
        self.detail = detail.to_string();
        self
    }

    /// The same error once more, where one failure concerns several.
    pub fn again(&self) -> FsError {
        FsError {
            kind: self.kind,
            op: self.op,
            subject: self.subject.clone(),
            detail: self.detail.clone(),
        }
    }

    /// The errno an application sees.
    pub const fn errno(&self) -> i32 {
        self.kind.errno()
    }

    /// An operating system error, keeping `ENOSPC` and its like recognisable.
    pub fn from_io(op: &'static str, error: &std::io::Error) -> FsError {
        let kind = match error.raw_os_error() {
            Some(errno::ENOSPC) => ErrorKind::NoSpace,
            Some(errno::EDQUOT) => ErrorKind::NoSpace,
            Some(errno::EFBIG) => ErrorKind::FileTooBig,
            Some(errno::ENOENT) => ErrorKind::NotFound,
            Some(errno::EEXIST) => ErrorKind::Exists,
            Some(errno::EACCES) => ErrorKind::Access,
            Some(errno::EROFS) => ErrorKind::ReadOnly,
            Some(errno::EINVAL) => ErrorKind::Invalid,
            Some(errno::EOPNOTSUPP) => ErrorKind::NotSupported,
            Some(errno::ENXIO) => ErrorKind::NoSuchOffset,
            Some(errno::EINTR) => ErrorKind::Interrupted,
            Some(errno::ETIMEDOUT) => ErrorKind::TimedOut,
            // Out of descriptors: nothing is wrong with the disk, and some come back.
            Some(errno::EMFILE | errno::ENFILE) => ErrorKind::Overloaded,
            _ => ErrorKind::Io,
        };
        FsError::new(kind, op).because(error)
    }
}

impl From<ErrorKind> for FsError {
    fn from(kind: ErrorKind) -> FsError {
        FsError::new(kind, "")
    }
}

impl fmt::Display for FsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.op.is_empty() {
            write!(f, "{} failed: ", self.op)?;
        }
        f.write_str(self.kind.text())?;
        if !self.subject.is_empty() {
            write!(f, " {}", self.subject)?;
        }
        if !self.detail.is_empty() {
            write!(f, ": {}", self.detail)?;
        }
        Ok(())
    }
}

impl std::error::Error for FsError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wire_numbers_round_trip() {
        for &kind in ErrorKind::ALL {
            assert_eq!(ErrorKind::from_wire(kind as u16), kind);
            assert!(kind.errno() > 0 && !kind.text().is_empty());
        }
        assert_eq!(ErrorKind::from_wire(9999), ErrorKind::Io);
    }

    #[test]
    fn prints_what_and_where() {
        let error = FsError::new(ErrorKind::NoSpace, "write").on("target=OST0001").because("full");
        assert_eq!(error.to_string(), "write failed: no space left target=OST0001: full");
    }
}
