//! Notifications: what the daemon tells the kernel unasked.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use zerocopy::IntoBytes;

use super::abi::{DeleteOut, InvalEntryOut, InvalInodeOut, PollWakeupOut, StoreOut, notify};
use super::device::Device;

/// Tells the kernel to drop or take things into its caches. Cheap to clone, usable from any
/// thread, effective when the call returns.
///
/// **Deadlock rule.** The kernel takes the locks of the nodes concerned, and a thread that waits
/// for a request's reply may hold them. So never call these methods inside a
/// [`FileSystem`](super::FileSystem) operation, nor under a lock that an operation may need: the
/// operation's caller would wait for the reply, the reply for this call, and this call for the
/// caller. `poll_wakeup`, `resend` and `expire_all_entries` alone are exempt.
///
/// `ENOENT` from any of them means that the kernel had nothing cached, which is success to most
/// callers; `ENOTCONN` and `ENODEV` mean that the mount is gone.
#[derive(Clone)]
pub struct Notifier {
    device: Arc<Device>,
}

impl Notifier {
    /// For the mount that `device` belongs to.
    pub fn new(device: Arc<Device>) -> Notifier {
        Notifier { device }
    }

    /// Drops the cached attributes of a node, and its cached data from byte `offset` on for `len`
    /// bytes, 0 meaning to the end; a negative `offset` drops attributes alone. Waits for writes
    /// under way to these pages, and flushes dirty ones first.
    ///
    /// # Errors
    /// See [`Notifier`].
    pub fn inval_inode(&self, node: u64, offset: i64, len: i64) -> io::Result<()> {
        let body = InvalInodeOut { ino: node, off: offset, len };
        self.device.notify(notify::INVAL_INODE, &[body.as_bytes()])
    }

    /// Drops a cached name, or its cached absence.
    ///
    /// # Errors
    /// See [`Notifier`].
    pub fn inval_entry(&self, parent: u64, name: &OsStr) -> io::Result<()> {
        self.entry(parent, name, 0)
    }

    /// Has the next use of a cached name look it up anew. Unlike [`Notifier::inval_entry`] it
    /// leaves a name alone that is a mount point or working directory. Needs the feature
    /// `HAS_EXPIRE_ONLY`.
    ///
    /// # Errors
    /// See [`Notifier`].
    pub fn expire_entry(&self, parent: u64, name: &OsStr) -> io::Result<()> {
        self.entry(parent, name, notify::EXPIRE_ONLY)
    }

    fn entry(&self, parent: u64, name: &OsStr, flags: u32) -> io::Result<()> {
        let body = InvalEntryOut { parent, namelen: name.len() as u32, flags };
        self.device.notify(notify::INVAL_ENTRY, &[body.as_bytes(), name.as_bytes(), &[0]])
    }

    /// A name of node `child` was removed elsewhere: as [`Notifier::inval_entry`], and tells those
    /// who watch the directory (inotify) of the removal.
    ///
    /// # Errors
    /// See [`Notifier`]; also `ENOTEMPTY`, `EBUSY` (a mount point).
    pub fn delete(&self, parent: u64, child: u64, name: &OsStr) -> io::Result<()> {
        let body = DeleteOut { parent, child, namelen: name.len() as u32, padding: 0 };
        self.device.notify(notify::DELETE, &[body.as_bytes(), name.as_bytes(), &[0]])
    }

    /// Puts data into the page cache of a node.
    ///
    /// # Errors
    /// See [`Notifier`]; also `ENOMEM`.
    pub fn store(&self, node: u64, offset: u64, data: &[u8]) -> io::Result<()> {
        let body = StoreOut { nodeid: node, offset, size: data.len() as u32, padding: 0 };
        self.device.notify(notify::STORE, &[body.as_bytes(), data])
    }

    /// Wakes a sleeper in `poll(2)`; `wake` is what
    /// [`FileSystem::poll`](super::FileSystem::poll) was given.
    ///
    /// # Errors
    /// See [`Notifier`].
    pub fn poll_wakeup(&self, wake: u64) -> io::Result<()> {
        self.device.notify(notify::POLL, &[PollWakeupOut { kh: wake }.as_bytes()])
    }

    /// Has every name be looked up anew when it is used next. Takes no lock. Linux 6.16 (7.44).
    ///
    /// # Errors
    /// `EINVAL` from older kernels; see [`Notifier`].
    pub fn expire_all_entries(&self) -> io::Result<()> {
        self.device.notify(notify::INC_EPOCH, &[])
    }

    /// Has the kernel send all unanswered requests again: what a daemon does that took over the
    /// descriptor from a dead one, before it reads any: those that this process has read come again, too.
    /// Needs the feature `HAS_RESEND`.
    ///
    /// # Errors
    /// See [`Notifier`].
    pub fn resend(&self) -> io::Result<()> {
        self.device.notify(notify::RESEND, &[])
    }
}
