//! A file as memory.
#![allow(unsafe_code)]

use super::{File, How};
use rustix::mm::{MapFlags, MsyncFlags, ProtFlags, mmap, msync, munmap};
use std::ffi::c_void;
use std::fs;
use std::io::{self, ErrorKind};

/// A mapping of a whole file. Copies go through it in [`File::write_at`] and [`File::read_at`] alone.
pub struct Mapped {
    start: *mut c_void,
    length: usize,
    writable: bool,
}

impl Mapped {
    /// Maps the whole file; one that is written is first made as long as it will be.
    pub fn new(file: fs::File, how: &How) -> io::Result<Mapped> {
        if how.write && file.metadata()?.len() < how.size {
            file.set_len(how.size)?;
        }
        let length = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
        if length == 0 {
            return Ok(Mapped { start: std::ptr::null_mut(), length, writable: how.write });
        }
        let access = if how.write { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let start =
            unsafe { mmap(std::ptr::null_mut(), length, access, MapFlags::SHARED, &file, 0)? };
        Ok(Mapped { start, length, writable: how.write })
    }

    /// The address of `length` bytes at `offset`, which lie within the mapping.
    fn at(&self, offset: u64, length: usize) -> io::Result<*mut u8> {
        let offset = usize::try_from(offset).map_err(io::Error::other)?;
        match offset.checked_add(length) {
            Some(end) if end <= self.length => Ok(self.start.cast::<u8>().wrapping_add(offset)),
            _ => Err(io::Error::new(ErrorKind::UnexpectedEof, "beyond the end of the mapped file")),
        }
    }
}

impl File for Mapped {
    fn write_at(&mut self, data: &[u8], offset: u64) -> io::Result<()> {
        if !self.writable {
            return Err(ErrorKind::PermissionDenied.into());
        }
        let there = self.at(offset, data.len())?;
        // SAFETY: `there` begins `data.len()` bytes of a writable mapping that lives as long as
        // `self`; other processes may write them, too, which for plain bytes yields some bytes.
        unsafe { there.copy_from_nonoverlapping(data.as_ptr(), data.len()) };
        Ok(())
    }

    fn read_at(&mut self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let there = self.at(offset, buffer.len())?;
        // SAFETY: as above, of a readable mapping.
        unsafe { there.copy_to_nonoverlapping(buffer.as_mut_ptr(), buffer.len()) };
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        if self.length == 0 {
            return Ok(());
        }
        // SAFETY: the range is that of the mapping.
        unsafe { msync(self.start, self.length, MsyncFlags::SYNC).map_err(io::Error::from) }
    }

    fn close(self: Box<Self>) -> io::Result<()> {
        drop(self);
        Ok(())
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        if self.length > 0 {
            // SAFETY: the mapping is ours, and nothing points into it any more.
            let unmapped = unsafe { munmap(self.start, self.length) };
            debug_assert!(unmapped.is_ok());
        }
    }
}
