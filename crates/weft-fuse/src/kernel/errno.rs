//! Error numbers as replies carry them.

use std::{fmt, io};

/// A positive Linux error number, the only error a [`FileSystem`](super::FileSystem) can answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(i32);

/// What the operations of a [`FileSystem`](super::FileSystem) return.
pub type Result<T> = std::result::Result<T, Errno>;

macro_rules! errnos {
    ($($name:ident)*) => {
        #[allow(missing_docs)] // see errno(3)
        impl Errno { $(pub const $name: Errno = Errno(libc::$name);)* }
        impl fmt::Debug for Errno {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match *self {
                    $(Errno::$name => f.write_str(stringify!($name)),)*
                    Errno(code) => write!(f, "Errno({code})"),
                }
            }
        }
    };
}

errnos! {
    EPERM ENOENT EINTR EIO ENXIO E2BIG EBADF EAGAIN ENOMEM EACCES EFAULT EBUSY EEXIST EXDEV ENODEV
    ENOTDIR EISDIR EINVAL ENFILE EMFILE ENOTTY EFBIG ENOSPC ESPIPE EROFS EMLINK ERANGE EDEADLK
    ENAMETOOLONG ENOLCK ENOSYS ENOTEMPTY ELOOP ENODATA EPROTO EOVERFLOW EOPNOTSUPP ETIMEDOUT
    EHOSTDOWN EHOSTUNREACH ESTALE EDQUOT ECANCELED EKEYEXPIRED ENOTCONN ESHUTDOWN
}

impl Errno {
    /// From an error number; what is not a plausible one (1 to 511) becomes `EIO`, because the
    /// kernel treats a reply with any other value as malformed and the caller would hang.
    pub const fn new(code: i32) -> Errno {
        if code > 0 && code < 512 { Errno(code) } else { Errno(libc::EIO) }
    }

    /// The error number, positive.
    pub const fn code(self) -> i32 {
        self.0
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        io::Error::from_raw_os_error(self.0).fmt(f)
    }
}

impl std::error::Error for Errno {}

impl From<io::Error> for Errno {
    fn from(error: io::Error) -> Errno {
        error.raw_os_error().map_or(Errno::EIO, Errno::new)
    }
}

impl From<Errno> for io::Error {
    fn from(errno: Errno) -> io::Error {
        io::Error::from_raw_os_error(errno.0)
    }
}
