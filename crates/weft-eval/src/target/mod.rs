//! Where a workload runs: a directory of something that stores files.

pub mod library;
pub mod posix;

use std::io;

pub use library::Library;
pub use posix::Posix;

/// A directory, by names of files in it.
pub trait Target: Send + Sync {
    /// Makes an empty file, which must not exist, and closes it.
    ///
    /// # Errors
    /// Those of the file system. (So for all of these.)
    fn create(&self, name: &str) -> io::Result<()>;

    /// Asks for its attributes.
    ///
    /// # Errors
    /// As above.
    fn stat(&self, name: &str) -> io::Result<()>;

    /// Opens it for reading and closes it.
    ///
    /// # Errors
    /// As above.
    fn open_close(&self, name: &str) -> io::Result<()>;

    /// Removes it.
    ///
    /// # Errors
    /// As above.
    fn unlink(&self, name: &str) -> io::Result<()>;

    /// Opens it for reading and writing; makes it if there is none.
    ///
    /// # Errors
    /// As above.
    fn open(&self, name: &str) -> io::Result<Box<dyn OpenFile + '_>>;

    /// Opens it for reading only.
    ///
    /// # Errors
    /// As above.
    fn open_read(&self, name: &str) -> io::Result<Box<dyn OpenFile + '_>>;

    /// Removes the directory, which is empty.
    ///
    /// # Errors
    /// As above.
    fn remove(&self) -> io::Result<()>;
}

/// An open file; closed when dropped.
pub trait OpenFile {
    /// Writes all of `data`.
    ///
    /// # Errors
    /// Those of the file system. (So for all of these.)
    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()>;

    /// Fills `buffer`.
    ///
    /// # Errors
    /// As above; `UnexpectedEof` where the file is shorter.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;

    /// Brings it to stable storage.
    ///
    /// # Errors
    /// As above.
    fn sync(&self) -> io::Result<()>;

    /// Bytes of it.
    ///
    /// # Errors
    /// As above.
    fn size(&self) -> io::Result<u64>;
}
