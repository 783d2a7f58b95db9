//! The trait a file system implements to be mounted.

use std::ffi::OsStr;
use std::sync::Arc;

use super::deferred::Deferred;
use super::device::Device;
use super::directory::{Listing, ListingPlus};
use super::errno::{Errno, Result};
use super::negotiate::{Offer, Terms};
use super::request::Request;
use super::types::*;

/// One method per operation of the kernel; each runs to its end on the thread that received the
/// request, and its return value is the reply.
///
/// - Methods run at the same time on many threads; a blocked one delays no other request, since
///   the session adds threads (up to its limit, see [`Threads`](super::Threads) and
///   [`Transport`](super::Transport)).
/// - `Err(ENOSYS)` makes the kernel stop sending that operation for the life of the mount where
///   the operation is optional (`open`, `flush`, `access`, xattrs, locks, `statx`, ...); where it
///   is not, it is the caller's error. It is the default throughout unless said otherwise.
/// - A panic is answered with `EIO` and the mount goes on.
/// - Names are any bytes but `/` and NUL; node numbers are those of [`Entry::node`], the root is
///   [`ROOT_ID`](super::abi::ROOT_ID).
/// - A method must not send notifications about the nodes it works on: see
///   [`Notifier`](super::Notifier).
#[allow(unused_variables)]
pub trait FileSystem: Send + Sync + 'static {
    /// Called once, before any other operation: what the kernel offers and the terms asked for by
    /// the session's configuration, to be changed at will. What is asked for but not offered is
    /// dropped silently afterwards.
    fn init(&self, offer: &Offer, terms: &mut Terms, device: &Arc<Device>) -> Result<()> {
        Ok(())
    }

    /// Called once, after the last request.
    fn destroy(&self) {}

    /// Called after the reply of an operation, or its error, was handed to the kernel, on the thread that
    /// carried it out. See also [`FileSystem::awaits_reply`].
    fn replied(&self) {}

    /// Whether the reply that this thread is about to hand over must have reached the kernel before
    /// [`FileSystem::replied`] is called. Otherwise a ring may hand it over right afterwards,
    /// together with waiting for the next request, which saves a system call.
    fn awaits_reply(&self) -> bool {
        true
    }

    /// Finds a name. A negative entry (`node` 0) says "no such name" with a lifetime, `ENOENT`
    /// says it without. With the feature `EXPORT_SUPPORT`, names may be `.` and `..`.
    fn lookup(&self, req: &Request<'_>, parent: u64, name: &OsStr) -> Result<Entry> {
        Err(Errno::ENOSYS)
    }

    /// The kernel dropped `count` references to the node. Not answered.
    fn forget(&self, node: u64, count: u64) {}

    /// Many [`FileSystem::forget`]s at once, as pairs of node and count. Not answered.
    fn batch_forget(&self, nodes: &mut dyn Iterator<Item = (u64, u64)>) {
        nodes.for_each(|(node, count)| self.forget(node, count));
    }

    /// Attributes of a node, `fh` being given for `fstat` on an open file.
    fn getattr(&self, req: &Request<'_>, node: u64, fh: Option<u64>) -> Result<Attributes> {
        Err(Errno::ENOSYS)
    }

    /// Extended `stat`: `mask` are the wanted `STATX_…` bits, `flags` the `AT_STATX_…` bits. After
    /// `ENOSYS` the kernel uses [`FileSystem::getattr`].
    fn statx(
        &self,
        req: &Request<'_>,
        node: u64,
        fh: Option<u64>,
        flags: u32,
        mask: u32,
    ) -> Result<Statx> {
        Err(Errno::ENOSYS)
    }

    /// Changes attributes and answers the new ones.
    fn setattr(&self, req: &Request<'_>, node: u64, set: &SetAttr) -> Result<Attributes> {
        Err(Errno::ENOSYS)
    }

    /// Target of a symbolic link, without a terminating NUL.
    fn readlink(&self, req: &Request<'_>, node: u64) -> Result<Vec<u8>> {
        Err(Errno::ENOSYS)
    }

    /// Makes a symbolic link.
    fn symlink(
        &self,
        req: &Request<'_>,
        parent: u64,
        name: &OsStr,
        target: &OsStr,
    ) -> Result<Entry> {
        Err(Errno::EPERM)
    }

    /// Makes a file, device node, FIFO or socket; `rdev` is encoded as [`rdev`](super::rdev) does.
    fn mknod(
        &self,
        req: &Request<'_>,
        parent: u64,
        name: &OsStr,
        mode: u32,
        rdev: u32,
    ) -> Result<Entry> {
        Err(Errno::EPERM)
    }

    /// Makes a directory.
    fn mkdir(&self, req: &Request<'_>, parent: u64, name: &OsStr, mode: u32) -> Result<Entry> {
        Err(Errno::EPERM)
    }

    /// Removes a name of something other than a directory.
    fn unlink(&self, req: &Request<'_>, parent: u64, name: &OsStr) -> Result<()> {
        Err(Errno::EPERM)
    }

    /// Removes an empty directory.
    fn rmdir(&self, req: &Request<'_>, parent: u64, name: &OsStr) -> Result<()> {
        Err(Errno::EPERM)
    }

    /// Renames; `flags` are those of `renameat2(2)`: `RENAME_NOREPLACE`, `RENAME_EXCHANGE`,
    /// `RENAME_WHITEOUT`. Answer `EINVAL` to unsupported flags.
    fn rename(
        &self,
        req: &Request<'_>,
        parent: u64,
        name: &OsStr,
        new_parent: u64,
        new_name: &OsStr,
        flags: u32,
    ) -> Result<()> {
        Err(Errno::EPERM)
    }

    /// Makes a hard link.
    fn link(
        &self,
        req: &Request<'_>,
        node: u64,
        new_parent: u64,
        new_name: &OsStr,
    ) -> Result<Entry> {
        Err(Errno::EPERM)
    }

    /// Opens a file; `flags` are the `O_…` bits without `O_CREAT` and `O_EXCL`, with `O_TRUNC`
    /// under the feature `ATOMIC_O_TRUNC`; `kill_suidgid` asks to drop these bits on truncation.
    fn open(&self, req: &Request<'_>, node: u64, flags: u32, kill_suidgid: bool) -> Result<Opened> {
        Ok(Opened::default())
    }

    /// Makes and opens a file in one step; an existing one is opened unless `O_EXCL` is set.
    fn create(
        &self,
        req: &Request<'_>,
        parent: u64,
        name: &OsStr,
        mode: u32,
        flags: u32,
    ) -> Result<(Entry, Opened)> {
        Err(Errno::ENOSYS)
    }

    /// Makes and opens a file without a name (`O_TMPFILE`) in the directory.
    fn tmpfile(
        &self,
        req: &Request<'_>,
        parent: u64,
        mode: u32,
        flags: u32,
    ) -> Result<(Entry, Opened)> {
        Err(Errno::EOPNOTSUPP)
    }

    /// Reads into `out`, whose length is the size asked for, and answers the count; less than
    /// asked for means end of file. `out` holds stale data of other requests beforehand.
    fn read(&self, req: &Request<'_>, node: u64, args: &ReadArgs, out: &mut [u8]) -> Result<usize> {
        Err(Errno::ENOSYS)
    }

    /// Writes and answers the count; less than given is an error to the caller. `data` starts on
    /// a page boundary.
    fn write(&self, req: &Request<'_>, node: u64, args: &WriteArgs, data: &[u8]) -> Result<usize> {
        Err(Errno::ENOSYS)
    }

    /// A descriptor of the open file was closed: report write errors, drop the POSIX locks of
    /// `lock_owner`.
    fn flush(&self, req: &Request<'_>, node: u64, fh: u64, lock_owner: u64) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// The last descriptor of the open file was closed. Nobody waits for the answer. POSIX locks
    /// on this node taken through this handle and still held belong to the open file
    /// (`F_OFD_SETLK`) and must be dropped: Linux reports their end in no other way.
    fn release(&self, req: &Request<'_>, node: u64, args: &ReleaseArgs) -> Result<()> {
        Ok(())
    }

    /// Makes the file's data, and unless `datasync` its attributes, durable.
    fn fsync(&self, req: &Request<'_>, node: u64, fh: u64, datasync: bool) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// Opens a directory.
    fn opendir(&self, req: &Request<'_>, node: u64, flags: u32) -> Result<Opened> {
        Ok(Opened::default())
    }

    /// Lists the names after the record whose offset was `offset` (0: from the start) until
    /// `list` is full. An empty list means the end. Include `.` and `..`.
    fn readdir(
        &self,
        req: &Request<'_>,
        node: u64,
        fh: u64,
        offset: u64,
        list: &mut Listing<'_>,
    ) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// As [`FileSystem::readdir`] with an [`Entry`] per name, each counting as a lookup except
    /// `.`, `..` and those with node 0.
    fn readdirplus(
        &self,
        req: &Request<'_>,
        node: u64,
        fh: u64,
        offset: u64,
        list: &mut ListingPlus<'_>,
    ) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// Closes a directory. Nobody waits for the answer.
    fn releasedir(&self, req: &Request<'_>, node: u64, args: &ReleaseArgs) -> Result<()> {
        Ok(())
    }

    /// Makes the directory durable.
    fn fsyncdir(&self, req: &Request<'_>, node: u64, fh: u64, datasync: bool) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// Totals of the file system.
    fn statfs(&self, req: &Request<'_>, node: u64) -> Result<Statfs> {
        Err(Errno::ENOSYS)
    }

    /// Sets an extended attribute; `flags` are `XATTR_CREATE` and `XATTR_REPLACE`, `kill_sgid`
    /// asks to drop set-group-ID along with setting a POSIX ACL.
    fn setxattr(
        &self,
        req: &Request<'_>,
        node: u64,
        name: &OsStr,
        value: &[u8],
        flags: u32,
        kill_sgid: bool,
    ) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// Value of an extended attribute, `ENODATA` if there is none. Size queries and too small
    /// buffers are dealt with by the caller.
    fn getxattr(&self, req: &Request<'_>, node: u64, name: &OsStr) -> Result<Vec<u8>> {
        Err(Errno::ENOSYS)
    }

    /// Names of all extended attributes, each ended by a NUL.
    fn listxattr(&self, req: &Request<'_>, node: u64) -> Result<Vec<u8>> {
        Err(Errno::ENOSYS)
    }

    /// Removes an extended attribute, `ENODATA` if there is none.
    fn removexattr(&self, req: &Request<'_>, node: u64, name: &OsStr) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// Checks `access(2)`; never sent under the mount option `default_permissions`.
    fn access(&self, req: &Request<'_>, node: u64, mask: u32) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// Finds a lock in the way of `lock`; answers it, or `lock` with [`LockKind::Unlock`].
    fn getlk(&self, req: &Request<'_>, node: u64, lock: &Lock) -> Result<Lock> {
        Err(Errno::ENOSYS)
    }

    /// Sets or removes a lock. A lock in the way is `EAGAIN`, or with `wait` a reason to keep
    /// `reply`, answer it later from any thread, and heed its interruption with `EINTR`. After
    /// `ENOSYS` locks are local to this mount.
    fn setlk(&self, req: &Request<'_>, node: u64, lock: &Lock, wait: bool, reply: Deferred) {
        reply.send(Err(Errno::ENOSYS));
    }

    /// A restricted `ioctl`: `input` and `out` have the sizes the command number encodes.
    fn ioctl(
        &self,
        req: &Request<'_>,
        node: u64,
        args: &IoctlArgs,
        input: &[u8],
        out: &mut [u8],
    ) -> Result<IoctlReply> {
        Err(Errno::ENOTTY)
    }

    /// Ready events of `poll(2)` out of `events`. `wake` is given if the caller will sleep: pass
    /// it to [`Notifier::poll_wakeup`](super::Notifier::poll_wakeup) on a change. After `ENOSYS`
    /// files are always ready.
    fn poll(
        &self,
        req: &Request<'_>,
        node: u64,
        fh: u64,
        events: u32,
        wake: Option<u64>,
    ) -> Result<u32> {
        Err(Errno::ENOSYS)
    }

    /// Allocates or punches a range; `mode` as `fallocate(2)`.
    fn fallocate(
        &self,
        req: &Request<'_>,
        node: u64,
        fh: u64,
        offset: u64,
        len: u64,
        mode: u32,
    ) -> Result<()> {
        Err(Errno::EOPNOTSUPP)
    }

    /// `SEEK_DATA` and `SEEK_HOLE`. After `ENOSYS` files count as all data.
    fn lseek(
        &self,
        req: &Request<'_>,
        node: u64,
        fh: u64,
        offset: u64,
        whence: u32,
    ) -> Result<u64> {
        Err(Errno::ENOSYS)
    }

    /// Copies a range between two files of this mount and answers the count. After `ENOSYS` the
    /// kernel copies by reading and writing.
    fn copy_file_range(&self, req: &Request<'_>, node_in: u64, args: &CopyArgs) -> Result<u64> {
        Err(Errno::ENOSYS)
    }

    /// Makes everything durable (`syncfs(2)`); the kernel sends it on some mount types only.
    fn syncfs(&self, req: &Request<'_>, node: u64) -> Result<()> {
        Err(Errno::ENOSYS)
    }
}
