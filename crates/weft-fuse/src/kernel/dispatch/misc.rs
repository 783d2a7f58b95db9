//! Totals, extended attributes, locks, access, `ioctl`, `poll`.

use zerocopy::IntoBytes;

use super::Call;
use crate::kernel::abi::{self, *};
use crate::kernel::errno::{Errno, Result};
use crate::kernel::fs::FileSystem;
use crate::kernel::negotiate::Features;
use crate::kernel::types::{IoctlArgs, Lock, LockKind};

impl<F: FileSystem> Call<'_, F> {
    /// Runs one of the remaining operations; `None` if `opcode` is unknown.
    pub(super) fn misc(&mut self, opcode: u32) -> Option<Result<usize>> {
        Some(match opcode {
            op::STATFS => self.statfs(),
            op::SETXATTR => self.setxattr(),
            op::GETXATTR => self.getxattr(),
            op::LISTXATTR => self.listxattr(),
            op::REMOVEXATTR => self.removexattr(),
            op::ACCESS => self.access(),
            op::GETLK => self.getlk(),
            op::IOCTL => self.ioctl(),
            op::POLL => self.poll(),
            op::SYNCFS => self.server.fs.syncfs(&self.request, self.node).map(|()| 0),
            _ => return None,
        })
    }

    fn statfs(&mut self) -> Result<usize> {
        let statfs = self.server.fs.statfs(&self.request, self.node)?;
        self.put(StatfsOut::from(&statfs))
    }

    fn setxattr(&mut self) -> Result<usize> {
        let SetxattrIn { size, flags } = self.args.take()?;
        let extended = self.server.terms.features.contains(Features::SETXATTR_EXT);
        let more = if extended { self.args.take()? } else { SetxattrExt::default() };
        let kill_sgid = more.setxattr_flags & abi::flag::SETXATTR_ACL_KILL_SGID != 0;
        let (name, value) = (self.args.name()?, self.args.data(size)?);
        let fs = &self.server.fs;
        fs.setxattr(&self.request, self.node, name, value, flags, kill_sgid).map(|()| 0)
    }

    fn getxattr(&mut self) -> Result<usize> {
        let GetxattrIn { size, .. } = self.args.take()?;
        let name = self.args.name()?;
        let value = self.server.fs.getxattr(&self.request, self.node, name)?;
        self.xattr(size, &value)
    }

    fn listxattr(&mut self) -> Result<usize> {
        let GetxattrIn { size, .. } = self.args.take()?;
        let names = self.server.fs.listxattr(&self.request, self.node)?;
        self.xattr(size, &names)
    }

    /// Answers `value` to a caller with room for `size` bytes, 0 asking for its length only.
    fn xattr(&mut self, size: u32, value: &[u8]) -> Result<usize> {
        match size as usize {
            0 => self.put(GetxattrOut { size: value.len() as u32, padding: 0 }),
            room if room < value.len() => Err(Errno::ERANGE),
            _ => self.put_bytes(value),
        }
    }

    fn removexattr(&mut self) -> Result<usize> {
        let name = self.args.name()?;
        self.server.fs.removexattr(&self.request, self.node, name).map(|()| 0)
    }

    fn access(&mut self) -> Result<usize> {
        let args: AccessIn = self.args.take()?;
        self.server.fs.access(&self.request, self.node, args.mask).map(|()| 0)
    }

    /// Decodes the argument of `getlk` and `setlk`.
    pub(super) fn lock(&mut self) -> Result<Lock> {
        let LkIn { fh, owner, lk, lk_flags, .. } = self.args.take()?;
        let FileLock { start, end, kind, pid } = lk;
        let kind = LockKind::from_raw(kind).ok_or(Errno::EINVAL)?;
        Ok(Lock { fh, owner, start, end, kind, pid, flock: lk_flags & abi::flag::LK_FLOCK != 0 })
    }

    fn getlk(&mut self) -> Result<usize> {
        let lock = self.lock()?;
        let found = self.server.fs.getlk(&self.request, self.node, &lock)?;
        self.put(FileLock::from(&found))
    }

    fn ioctl(&mut self) -> Result<usize> {
        let IoctlIn { fh, flags, cmd, arg, in_size, out_size } = self.args.take()?;
        let input = self.args.data(in_size)?;
        let args = IoctlArgs { fh, cmd, arg, flags };
        let (head, room) =
            self.out.split_at_mut_checked(size_of::<IoctlOut>()).ok_or(Errno::EIO)?;
        let room = room.get_mut(..out_size as usize).ok_or(Errno::EINVAL)?;
        let reply = self.server.fs.ioctl(&self.request, self.node, &args, input, room)?;
        if reply.len > room.len() || reply.result < 0 {
            return Err(Errno::EIO);
        }
        let answer = IoctlOut { result: reply.result, ..IoctlOut::default() };
        head.copy_from_slice(answer.as_bytes());
        Ok(head.len() + reply.len)
    }

    fn poll(&mut self) -> Result<usize> {
        let PollIn { fh, kh, flags, events } = self.args.take()?;
        let wake = (flags & abi::flag::POLL_SCHEDULE_NOTIFY != 0).then_some(kh);
        let revents = self.server.fs.poll(&self.request, self.node, fh, events, wake)?;
        self.put(PollOut { revents, padding: 0 })
    }
}
