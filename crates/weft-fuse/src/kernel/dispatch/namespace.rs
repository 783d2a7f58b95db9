//! Names, nodes and their attributes.

use zerocopy::IntoBytes;

use super::Call;
use crate::kernel::abi::{self, *};
use crate::kernel::errno::{Errno, Result};
use crate::kernel::fs::FileSystem;
use crate::kernel::types::{Entry, Opened};

impl<F: FileSystem> Call<'_, F> {
    /// Runs an operation on names or attributes; `None` if `opcode` is no such operation.
    pub(super) fn namespace(&mut self, opcode: u32) -> Option<Result<usize>> {
        Some(match opcode {
            op::LOOKUP => self.lookup(),
            op::GETATTR => self.getattr(),
            op::STATX => self.statx(),
            op::SETATTR => self.setattr(),
            op::READLINK => self.readlink(),
            op::SYMLINK => self.symlink(),
            op::MKNOD => self.mknod(),
            op::MKDIR => self.mkdir(),
            op::UNLINK => self.unlink(),
            op::RMDIR => self.rmdir(),
            op::RENAME => self.rename(),
            op::RENAME2 => self.rename2(),
            op::LINK => self.link(),
            op::CREATE => self.create(),
            op::TMPFILE => self.tmpfile(),
            _ => return None,
        })
    }

    fn entry(&mut self, entry: Entry) -> Result<usize> {
        self.put(EntryOut::from(&entry))
    }

    fn lookup(&mut self) -> Result<usize> {
        let name = self.args.name()?;
        let entry = self.server.fs.lookup(&self.request, self.node, name)?;
        self.entry(entry)
    }

    fn getattr(&mut self) -> Result<usize> {
        let args: GetattrIn = self.args.take()?;
        let fh = (args.getattr_flags & abi::flag::GETATTR_FH != 0).then_some(args.fh);
        let attributes = self.server.fs.getattr(&self.request, self.node, fh)?;
        self.put(AttrOut::from(&attributes))
    }

    fn statx(&mut self) -> Result<usize> {
        let args: StatxIn = self.args.take()?;
        let fh = (args.getattr_flags & abi::flag::GETATTR_FH != 0).then_some(args.fh);
        let (flags, mask) = (args.sx_flags, args.sx_mask);
        let statx = self.server.fs.statx(&self.request, self.node, fh, flags, mask)?;
        self.put(StatxOut::from(&statx))
    }

    fn setattr(&mut self) -> Result<usize> {
        let args: SetattrIn = self.args.take()?;
        let attributes = self.server.fs.setattr(&self.request, self.node, &(&args).into())?;
        self.put(AttrOut::from(&attributes))
    }

    fn readlink(&mut self) -> Result<usize> {
        let target = self.server.fs.readlink(&self.request, self.node)?;
        self.put_bytes(&target)
    }

    fn symlink(&mut self) -> Result<usize> {
        let (name, target) = (self.args.name()?, self.args.name()?);
        let entry = self.server.fs.symlink(&self.request, self.node, name, target)?;
        self.entry(entry)
    }

    fn mknod(&mut self) -> Result<usize> {
        let MknodIn { mode, rdev, umask, .. } = self.args.take()?;
        let name = self.args.name()?;
        self.request.umask = umask;
        let entry = self.server.fs.mknod(&self.request, self.node, name, mode, rdev)?;
        self.entry(entry)
    }

    fn mkdir(&mut self) -> Result<usize> {
        let MkdirIn { mode, umask } = self.args.take()?;
        let name = self.args.name()?;
        self.request.umask = umask;
        let entry = self.server.fs.mkdir(&self.request, self.node, name, mode)?;
        self.entry(entry)
    }

    fn unlink(&mut self) -> Result<usize> {
        let name = self.args.name()?;
        self.server.fs.unlink(&self.request, self.node, name).map(|()| 0)
    }

    fn rmdir(&mut self) -> Result<usize> {
        let name = self.args.name()?;
        self.server.fs.rmdir(&self.request, self.node, name).map(|()| 0)
    }

    fn rename(&mut self) -> Result<usize> {
        let args: RenameIn = self.args.take()?;
        self.rename_to(args.newdir, 0)
    }

    fn rename2(&mut self) -> Result<usize> {
        let args: Rename2In = self.args.take()?;
        self.rename_to(args.newdir, args.flags)
    }

    fn rename_to(&mut self, new_parent: u64, flags: u32) -> Result<usize> {
        let (name, new_name) = (self.args.name()?, self.args.name()?);
        let fs = &self.server.fs;
        fs.rename(&self.request, self.node, name, new_parent, new_name, flags).map(|()| 0)
    }

    fn link(&mut self) -> Result<usize> {
        let args: LinkIn = self.args.take()?;
        let name = self.args.name()?;
        let entry = self.server.fs.link(&self.request, args.oldnodeid, self.node, name)?;
        self.entry(entry)
    }

    fn create(&mut self) -> Result<usize> {
        let CreateIn { flags, mode, umask, .. } = self.args.take()?;
        let name = self.args.name()?;
        self.request.umask = umask;
        let created = self.server.fs.create(&self.request, self.node, name, mode, flags)?;
        self.created(created)
    }

    fn tmpfile(&mut self) -> Result<usize> {
        let CreateIn { flags, mode, umask, .. } = self.args.take()?;
        self.request.umask = umask;
        let created = self.server.fs.tmpfile(&self.request, self.node, mode, flags)?;
        self.created(created)
    }

    fn created(&mut self, (entry, opened): (Entry, Opened)) -> Result<usize> {
        let (entry, opened) = (EntryOut::from(&entry), OpenOut::from(&opened));
        let used = self.put(entry)?;
        let rest = self.out.get_mut(used..used + size_of::<OpenOut>()).ok_or(Errno::EIO)?;
        rest.copy_from_slice(opened.as_bytes());
        Ok(used + rest.len())
    }
}
