//! Whatever the kernel has mounted, by system calls or by a mapping of each file.

use super::mapped::Mapped;
use super::{Api, File, How, named};
use rustix::fs::{FallocateFlags, OFlags, fallocate};
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};

/// The kernel's file systems.
#[derive(Clone, Copy, Debug, Default)]
pub struct Posix {
    mapped: bool,
}

impl Posix {
    /// Files are written and read through a mapping of all of them.
    pub const fn mapped() -> Posix {
        Posix { mapped: true }
    }
}

impl Api for Posix {
    fn open(&self, path: &str, how: &How) -> io::Result<Box<dyn File + '_>> {
        let direct = if how.direct { OFlags::DIRECT.bits() as i32 } else { 0 };
        let file = OpenOptions::new()
            .read(true)
            .write(how.write)
            .create(how.create)
            .create_new(how.exclusive)
            .mode(0o664)
            .custom_flags(direct)
            .open(path)
            .map_err(named("open", path))?;
        if how.reserve && how.size > 0 {
            fallocate(&file, FallocateFlags::empty(), 0, how.size)
                .map_err(|error| named("reserve space of", path)(error.into()))?;
        }
        match self.mapped {
            true => Ok(Box::new(Mapped::new(file, how).map_err(named("map", path))?)),
            false => Ok(Box::new(file)),
        }
    }

    fn stat(&self, path: &str) -> io::Result<u64> {
        fs::symlink_metadata(path).map(|meta| meta.len()).map_err(named("stat", path))
    }

    fn unlink(&self, path: &str) -> io::Result<()> {
        fs::remove_file(path).map_err(named("remove", path))
    }

    fn mkdir(&self, path: &str) -> io::Result<()> {
        fs::create_dir(path).map_err(named("make directory", path))
    }

    fn rmdir(&self, path: &str) -> io::Result<()> {
        fs::remove_dir(path).map_err(named("remove directory", path))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(from, to).map_err(named("rename", from))
    }

    fn list(&self, dir: &str) -> io::Result<Vec<(String, bool)>> {
        let entries = fs::read_dir(dir).map_err(named("read directory", dir))?;
        let entry = |entry: io::Result<fs::DirEntry>| {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            Ok((name, entry.file_type()?.is_dir()))
        };
        entries.map(entry).collect::<io::Result<_>>().map_err(named("read directory", dir))
    }

    fn sync_all(&self) -> io::Result<()> {
        rustix::fs::sync();
        Ok(())
    }
}

impl File for fs::File {
    fn write_at(&mut self, data: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(data, offset)
    }

    fn read_at(&mut self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.read_exact_at(buffer, offset)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }

    fn close(self: Box<Self>) -> io::Result<()> {
        // The standard library keeps back what close(2) says; an fsync before it tells the same.
        drop(self);
        Ok(())
    }
}
