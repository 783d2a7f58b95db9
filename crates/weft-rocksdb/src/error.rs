//! Errors of RocksDB: a message, sorted by how it begins.

use crate::ffi;
use libc::c_char;
use std::ffi::CStr;
use std::fmt;

/// What kind of error; from the first word of the message, as `Status::ToString` writes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorKind {
    /// Damaged data.
    Corruption,
    /// What the system says.
    IOError,
    /// Impossible options, or no database.
    InvalidArgument,
    /// Anything else.
    Other,
}

/// An error message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error(String);

impl Error {
    pub(crate) fn new(message: impl Into<String>) -> Error {
        Error(message.into())
    }

    /// What kind it is.
    pub fn kind(&self) -> ErrorKind {
        match self.0.split(':').next() {
            Some("Corruption") => ErrorKind::Corruption,
            Some("IO error") => ErrorKind::IOError,
            Some("Invalid argument") => ErrorKind::InvalidArgument,
            _ => ErrorKind::Other,
        }
    }
}

impl AsRef<str> for Error {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

/// Calls a function that reports failure through a message, and takes the message over.
pub(crate) fn check<T>(call: impl FnOnce(*mut *mut c_char) -> T) -> Result<T, Error> {
    let mut message: *mut c_char = std::ptr::null_mut();
    let value = call(&raw mut message);
    if message.is_null() {
        return Ok(value);
    }
    // SAFETY: on failure RocksDB hands over a NUL-terminated string of its own allocation.
    unsafe {
        let text = CStr::from_ptr(message).to_string_lossy().into_owned();
        ffi::rocksdb_free(message.cast());
        Err(Error(text))
    }
}
