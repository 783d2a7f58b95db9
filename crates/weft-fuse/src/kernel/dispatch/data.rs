//! Open files and directories, and what is in them.

use super::Call;
use crate::kernel::abi::{self, *};
use crate::kernel::directory::{Listing, ListingPlus};
use crate::kernel::errno::{Errno, Result};
use crate::kernel::fs::FileSystem;
use crate::kernel::types::{CopyArgs, ReadArgs, ReleaseArgs, WriteArgs};

/// Most bytes a 32-bit `copy_file_range` reply can tell, cut to whole pages.
const COPY_32_MAX: u64 = u32::MAX as u64 & !0xfff;

impl<F: FileSystem> Call<'_, F> {
    /// Runs an operation on open files; `None` if `opcode` is no such operation.
    pub(super) fn data(&mut self, opcode: u32) -> Option<Result<usize>> {
        Some(match opcode {
            op::OPEN => self.open(),
            op::READ => self.read(),
            op::WRITE => self.write(),
            op::FLUSH => self.flush(),
            op::RELEASE => self.release(),
            op::FSYNC => self.fsync(),
            op::OPENDIR => self.opendir(),
            op::READDIR => self.readdir(),
            op::READDIRPLUS => self.readdirplus(),
            op::RELEASEDIR => self.releasedir(),
            op::FSYNCDIR => self.fsyncdir(),
            op::FALLOCATE => self.fallocate(),
            op::LSEEK => self.lseek(),
            op::COPY_FILE_RANGE => self.copy_file_range_32(),
            op::COPY_FILE_RANGE_64 => self.copy_file_range_64(),
            _ => return None,
        })
    }

    fn open(&mut self) -> Result<usize> {
        let OpenIn { flags, open_flags } = self.args.take()?;
        let kill = open_flags & abi::flag::OPEN_KILL_SUIDGID != 0;
        let opened = self.server.fs.open(&self.request, self.node, flags, kill)?;
        self.put(OpenOut::from(&opened))
    }

    fn opendir(&mut self) -> Result<usize> {
        let args: OpenIn = self.args.take()?;
        let opened = self.server.fs.opendir(&self.request, self.node, args.flags)?;
        self.put(OpenOut::from(&opened))
    }

    /// The part of the output that a request of `size` bytes may fill.
    fn room(&mut self, size: u32) -> Result<&mut [u8]> {
        self.out.get_mut(..size as usize).ok_or(Errno::EINVAL)
    }

    fn read(&mut self) -> Result<usize> {
        let args: ReadIn = self.args.take()?;
        let owned = args.read_flags & abi::flag::READ_LOCKOWNER != 0;
        let ReadIn { fh, offset, flags, .. } = args;
        let read = ReadArgs { fh, offset, flags, lock_owner: owned.then_some(args.lock_owner) };
        let (server, request, node) = (self.server, self.request, self.node);
        let out = self.room(args.size)?;
        let count = server.fs.read(&request, node, &read, out)?;
        if count > out.len() { Err(Errno::EIO) } else { Ok(count) }
    }

    fn readdir(&mut self) -> Result<usize> {
        let ReadIn { fh, offset, size, .. } = self.args.take()?;
        let (server, request, node) = (self.server, self.request, self.node);
        let mut list = Listing::new(self.room(size)?);
        server.fs.readdir(&request, node, fh, offset, &mut list)?;
        Ok(list.used())
    }

    fn readdirplus(&mut self) -> Result<usize> {
        let ReadIn { fh, offset, size, .. } = self.args.take()?;
        let (server, request, node) = (self.server, self.request, self.node);
        let mut list = ListingPlus::new(self.room(size)?);
        server.fs.readdirplus(&request, node, fh, offset, &mut list)?;
        Ok(list.used())
    }

    fn write(&mut self) -> Result<usize> {
        let args: WriteIn = self.args.take()?;
        let data = self.args.data(args.size)?;
        let has = |bit| args.write_flags & bit != 0;
        let write = WriteArgs {
            fh: args.fh,
            offset: args.offset,
            flags: args.flags,
            lock_owner: has(abi::flag::WRITE_LOCKOWNER).then_some(args.lock_owner),
            from_cache: has(abi::flag::WRITE_CACHE),
            kill_suidgid: has(abi::flag::WRITE_KILL_SUIDGID),
        };
        let size = self.server.fs.write(&self.request, self.node, &write, data)?;
        if size > data.len() {
            return Err(Errno::EIO);
        }
        self.put(WriteOut { size: size as u32, padding: 0 })
    }

    fn flush(&mut self) -> Result<usize> {
        let FlushIn { fh, lock_owner, .. } = self.args.take()?;
        self.server.fs.flush(&self.request, self.node, fh, lock_owner).map(|()| 0)
    }

    fn release_args(&mut self) -> Result<ReleaseArgs> {
        let ReleaseIn { fh, flags, release_flags, lock_owner } = self.args.take()?;
        let locked = release_flags & abi::flag::RELEASE_FLOCK_UNLOCK != 0;
        Ok(ReleaseArgs { fh, flags, flock_owner: locked.then_some(lock_owner) })
    }

    fn release(&mut self) -> Result<usize> {
        let args = self.release_args()?;
        self.server.fs.release(&self.request, self.node, &args).map(|()| 0)
    }

    fn releasedir(&mut self) -> Result<usize> {
        let args = self.release_args()?;
        self.server.fs.releasedir(&self.request, self.node, &args).map(|()| 0)
    }

    fn fsync(&mut self) -> Result<usize> {
        let FsyncIn { fh, fsync_flags, .. } = self.args.take()?;
        let datasync = fsync_flags & abi::flag::FSYNC_FDATASYNC != 0;
        self.server.fs.fsync(&self.request, self.node, fh, datasync).map(|()| 0)
    }

    fn fsyncdir(&mut self) -> Result<usize> {
        let FsyncIn { fh, fsync_flags, .. } = self.args.take()?;
        let datasync = fsync_flags & abi::flag::FSYNC_FDATASYNC != 0;
        self.server.fs.fsyncdir(&self.request, self.node, fh, datasync).map(|()| 0)
    }

    fn fallocate(&mut self) -> Result<usize> {
        let FallocateIn { fh, offset, length, mode, .. } = self.args.take()?;
        let fs = &self.server.fs;
        fs.fallocate(&self.request, self.node, fh, offset, length, mode).map(|()| 0)
    }

    fn lseek(&mut self) -> Result<usize> {
        let LseekIn { fh, offset, whence, .. } = self.args.take()?;
        let offset = self.server.fs.lseek(&self.request, self.node, fh, offset, whence)?;
        self.put(LseekOut { offset })
    }

    fn copy(&mut self, max: u64) -> Result<u64> {
        let args: CopyFileRangeIn = self.args.take()?;
        let copy = CopyArgs {
            fh_in: args.fh_in,
            offset_in: args.off_in,
            node_out: args.nodeid_out,
            fh_out: args.fh_out,
            offset_out: args.off_out,
            len: args.len.min(max),
            flags: args.flags,
        };
        self.server.fs.copy_file_range(&self.request, self.node, &copy)
    }

    fn copy_file_range_64(&mut self) -> Result<usize> {
        let bytes_copied = self.copy(u64::MAX)?;
        self.put(CopyFileRangeOut { bytes_copied })
    }

    fn copy_file_range_32(&mut self) -> Result<usize> {
        let size = u32::try_from(self.copy(COPY_32_MAX)?).map_err(|_| Errno::EIO)?;
        self.put(WriteOut { size, padding: 0 })
    }
}
