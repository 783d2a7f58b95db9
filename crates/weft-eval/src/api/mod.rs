//! File systems as benchmarks see them: paths and positions, nothing more.

mod mapped;
mod posix;
mod weft;

pub use posix::Posix;
pub use weft::Weft;

use std::io;

/// Where the buffers and positions of direct I/O must begin, bytes.
pub const ALIGNMENT: usize = 4096;

/// How a file is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct How {
    /// For writing, too.
    pub write: bool,
    /// Made if there is none.
    pub create: bool,
    /// There must be none.
    pub exclusive: bool,
    /// Past the page cache (`O_DIRECT`).
    pub direct: bool,
    /// Space for [`How::size`] bytes is reserved at once.
    pub reserve: bool,
    /// Bytes it will have at the end, for those who must know before.
    pub size: u64,
}

impl How {
    /// For reading only.
    pub const READ: How = How {
        write: false,
        create: false,
        exclusive: false,
        direct: false,
        reserve: false,
        size: 0,
    };
    /// For writing, made if there is none.
    pub const WRITE: How = How { write: true, create: true, ..How::READ };
    /// For writing, made now.
    pub const NEW: How = How { exclusive: true, ..How::WRITE };
}

/// A file system by paths.
pub trait Api {
    /// Opens a file.
    ///
    /// # Errors
    /// Those of the file system, naming the path. (So for all of these.)
    fn open(&self, path: &str, how: &How) -> io::Result<Box<dyn File + '_>>;

    /// Bytes of a file or directory.
    ///
    /// # Errors
    /// As above.
    fn stat(&self, path: &str) -> io::Result<u64>;

    /// Removes a file.
    ///
    /// # Errors
    /// As above.
    fn unlink(&self, path: &str) -> io::Result<()>;

    /// Makes a directory.
    ///
    /// # Errors
    /// As above.
    fn mkdir(&self, path: &str) -> io::Result<()>;

    /// Removes a directory.
    ///
    /// # Errors
    /// As above.
    fn rmdir(&self, path: &str) -> io::Result<()>;

    /// Moves a file or directory.
    ///
    /// # Errors
    /// As above.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Names in a directory, and whether each is a directory itself.
    ///
    /// # Errors
    /// As above.
    fn list(&self, dir: &str) -> io::Result<Vec<(String, bool)>>;

    /// Brings everything to stable storage.
    ///
    /// # Errors
    /// As above.
    fn sync_all(&self) -> io::Result<()>;

    /// Makes a directory and all above it that are missing.
    ///
    /// # Errors
    /// As above.
    fn mkdir_all(&self, path: &str) -> io::Result<()> {
        if self.stat(path).is_ok() {
            return Ok(());
        }
        if let Some((above, _)) = path.trim_end_matches('/').rsplit_once('/')
            && !above.is_empty()
        {
            self.mkdir_all(above)?;
        }
        match self.mkdir(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made,
        }
    }

    /// Removes a directory with all that is in it, as far as it can; others may do so at once.
    fn remove_all(&self, dir: &str) {
        for (name, is_dir) in self.list(dir).unwrap_or_default() {
            let path = format!("{dir}/{name}");
            if is_dir {
                self.remove_all(&path);
            } else {
                // Somebody else may have removed it.
                let _ = self.unlink(&path);
            }
        }
        // As above.
        let _ = self.rmdir(dir);
    }
}

/// An open file.
pub trait File {
    /// Writes all of `data`.
    ///
    /// # Errors
    /// Those of the file system. (So for all of these.)
    fn write_at(&mut self, data: &[u8], offset: u64) -> io::Result<()>;

    /// Fills `buffer`.
    ///
    /// # Errors
    /// As above; `UnexpectedEof` where the file is shorter.
    fn read_at(&mut self, buffer: &mut [u8], offset: u64) -> io::Result<()>;

    /// Brings it to stable storage.
    ///
    /// # Errors
    /// As above.
    fn sync(&mut self) -> io::Result<()>;

    /// Closes it; dropping does so, too, but tells of no error.
    ///
    /// # Errors
    /// As above.
    fn close(self: Box<Self>) -> io::Result<()>;
}

/// The error with the operation and path in front.
fn named(what: &str, path: &str) -> impl FnOnce(io::Error) -> io::Error {
    let name = format!("{what} {path}");
    move |error| io::Error::new(error.kind(), format!("{name}: {error}"))
}

/// Memory for transfers that direct I/O takes.
pub struct Buffer {
    memory: Vec<u8>,
    start: usize,
    length: usize,
}

impl Buffer {
    /// So many bytes, zero.
    pub fn new(length: usize) -> Buffer {
        let memory = vec![0u8; length + ALIGNMENT];
        let start = memory.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        Buffer { memory, start, length }
    }
}

impl std::ops::Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.length]
    }
}

impl std::ops::DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exercise(api: &dyn Api, dir: &str) {
        let (deep, path) = (format!("{dir}/a/b"), format!("{dir}/a/b/file"));
        api.mkdir_all(&deep).unwrap();
        api.mkdir_all(&deep).unwrap();
        let mut file = api.open(&path, &How { size: 10_000, reserve: true, ..How::NEW }).unwrap();
        assert_eq!(api.stat(&path).unwrap(), 10_000);
        file.write_at(&[7; 10_000], 0).unwrap();
        file.write_at(b"hello", 5000).unwrap();
        file.sync().unwrap();
        file.close().unwrap();
        assert!(api.open(&path, &How::NEW).is_err());
        assert_eq!(api.stat(&path).unwrap(), 10_000);
        let mut buffer = [0u8; 7];
        let mut file = api.open(&path, &How::READ).unwrap();
        file.read_at(&mut buffer, 4999).unwrap();
        assert_eq!(&buffer, b"\x07hello\x07");
        let short = file.read_at(&mut buffer, 9_999).unwrap_err();
        assert_eq!(short.kind(), io::ErrorKind::UnexpectedEof);
        file.close().unwrap();
        api.rename(&path, &format!("{dir}/a/other")).unwrap();
        let missing = api.stat(&path).unwrap_err();
        assert!(missing.to_string().contains("/a/b/file"), "{missing}");
        let mut names = api.list(&format!("{dir}/a")).unwrap();
        names.sort();
        assert_eq!(names, [("b".to_string(), true), ("other".to_string(), false)]);
        api.remove_all(&format!("{dir}/a"));
        assert!(api.stat(&format!("{dir}/a")).is_err());
    }

    #[test]
    fn directories_of_the_kernel() {
        let dir = tempfile::tempdir().unwrap();
        exercise(&Posix::default(), dir.path().to_str().unwrap());
        exercise(&Posix::mapped(), dir.path().to_str().unwrap());
    }

    #[test]
    fn buffers_are_aligned() {
        let buffer = Buffer::new(47_008);
        assert_eq!((buffer.len(), buffer.as_ptr().align_offset(ALIGNMENT)), (47_008, 0));
    }
}
