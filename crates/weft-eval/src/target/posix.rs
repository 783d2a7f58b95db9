//! A directory of a mounted file system.

use super::{OpenFile, Target};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A directory by its path.
pub struct Posix(PathBuf);

impl Posix {
    /// Makes the directory if there is none.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn make(dir: &Path) -> io::Result<Posix> {
        fs::create_dir_all(dir)?;
        Ok(Posix(dir.to_path_buf()))
    }
}

impl Target for Posix {
    fn create(&self, name: &str) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o644).open(self.0.join(name)).map(drop)
    }

    fn stat(&self, name: &str) -> io::Result<()> {
        fs::symlink_metadata(self.0.join(name)).map(drop)
    }

    fn open_close(&self, name: &str) -> io::Result<()> {
        File::open(self.0.join(name)).map(drop)
    }

    fn unlink(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.0.join(name))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn OpenFile + '_>> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false);
        Ok(Box::new(file.open(self.0.join(name))?))
    }

    fn open_read(&self, name: &str) -> io::Result<Box<dyn OpenFile + '_>> {
        Ok(Box::new(File::open(self.0.join(name))?))
    }

    fn remove(&self) -> io::Result<()> {
        fs::remove_dir(&self.0)
    }
}

impl OpenFile for File {
    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(data, offset)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.read_exact_at(buffer, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_all()
    }

    fn size(&self) -> io::Result<u64> {
        self.metadata().map(|meta| meta.len())
    }
}
