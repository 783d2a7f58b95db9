//! Open files.

use super::Door;
use crate::journal::Shown;
use crate::kernel::{self, Opened};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use weft_client::{Client, Created, Ctx, DirHandle, OpenFile, OpenFlags};
use weft_model::{ErrorKind, Fid, FileType, FsError, Result};

const FMODE_EXEC: u32 = 0o40;

/// The client's flags for those of open(2). The kernel opens what it executes with the access mode
/// "read", but the right to execute is enough.
pub(super) fn open_flags(flags: u32) -> OpenFlags {
    if flags & FMODE_EXEC != 0 { OpenFlags::EXEC } else { OpenFlags::from_linux(flags) }
}

/// An open file of the kernel.
pub(super) struct Handle {
    /// Open in the way that was asked for.
    pub(super) file: OpenFile,
    /// The kernel reads it through its page cache.
    pub(super) cached: bool,
    /// The same file open the other way as to appending, once needed.
    twin: Mutex<Option<OpenFile>>,
    /// Who has taken fcntl(2) locks through this handle.
    owners: Mutex<BTreeSet<u64>>,
}

impl Handle {
    pub(super) fn new(file: OpenFile, cached: bool, owners: BTreeSet<u64>) -> Handle {
        Handle { file, cached, twin: Mutex::default(), owners: Mutex::new(owners) }
    }

    /// The file for a write that appends or does not. That may change after the file was opened
    /// (`F_SETFL`), and pages of a memory map are written back at their place in any case.
    pub(super) fn for_write(&self, client: &Client, append: bool) -> Result<OpenFile> {
        let flags = self.file.flags();
        if append == flags.has(OpenFlags::APPEND) || !flags.has(OpenFlags::WRITE) {
            return Ok(self.file.clone());
        }
        let mut twin = self.twin.lock();
        if let Some(twin) = &*twin {
            return Ok(twin.clone());
        }
        let append = if append { OpenFlags::APPEND } else { OpenFlags::default() };
        let sync = if flags.is_sync() { OpenFlags::SYNC } else { OpenFlags::default() };
        let wanted = OpenFlags::WRITE | append | sync;
        // The right to write came with the first handle.
        let file = client.open(&Ctx::root(), self.file.fid(), wanted)?;
        Ok(twin.insert(file).clone())
    }

    /// Notes that `owner` may have fcntl(2) locks through this handle from now on.
    pub(super) fn note_owner(&self, owner: u64) {
        self.owners.lock().insert(owner);
    }

    /// A descriptor was closed by `owner`, whose fcntl(2) locks go.
    pub(super) fn flush(&self, client: &Client, ctx: &Ctx<'_>, owner: u64) -> Result<()> {
        self.owners.lock().remove(&owner);
        client.flush(ctx, &self.file, owner)
    }

    /// The last descriptor was closed. Locks left over belong to the open file (`F_OFD_SETLK`), of
    /// whose end Linux tells in no other way. Everything is done even after a failure.
    pub(super) fn close(
        &self,
        client: &Client,
        ctx: &Ctx<'_>,
        flock_owner: Option<u64>,
    ) -> Result<()> {
        let mut outcome = Ok(());
        for owner in std::mem::take(&mut *self.owners.lock()) {
            outcome = outcome.and(client.release_owner(ctx, &self.file, owner));
        }
        if let Some(twin) = self.twin.lock().take() {
            outcome = outcome.and(client.close(ctx, &twin, None));
        }
        let closed = client.close(ctx, &self.file, flock_owner);
        outcome.and(closed)
    }
}

impl Door {
    /// Keeps an open file for the kernel. A file that is only read, and that nobody else writes, is
    /// read through the page cache.
    pub(super) fn keep(&self, made: Created) -> Opened {
        let flags = made.file.flags();
        let cached = made.attr.kind == FileType::Regular
            && flags.may_read()
            && !flags.has(OpenFlags::WRITE)
            && !self.ttl(&made.attr.grant, Duration::ZERO).is_zero();
        let fh = made.file.handle();
        self.files.add(fh, Handle::new(made.file, cached, BTreeSet::new()));
        self.show(fh, if cached { Shown::Cached } else { Shown::Yes });
        if !cached {
            return self.opened(fh);
        }
        let same = self.cache.open(self.node(made.attr.fid), (&*made.attr).into());
        Opened::new(fh, if same { kernel::OpenFlags::KEEP_CACHE } else { Default::default() })
    }

    /// Keeps an open directory for the kernel.
    pub(super) fn keep_dir(&self, dir: DirHandle) -> Opened {
        let fh = dir.handle();
        self.dirs.add(fh, dir);
        self.show(fh, Shown::Yes);
        Opened::new(fh, kernel::OpenFlags::default())
    }

    /// An open file.
    pub(super) fn file(&self, fh: u64) -> Result<Arc<Handle>> {
        self.files.get(fh).ok_or_else(bad_handle)
    }

    /// An open directory.
    pub(super) fn dir(&self, fh: u64) -> Result<Arc<DirHandle>> {
        self.dirs.get(fh).ok_or_else(bad_handle)
    }

    /// Makes a directory durable. The right to came with its handle, which the client does not
    /// let us use for that.
    pub(super) fn sync_dir(&self, fid: Fid, datasync: bool) -> Result<()> {
        let ctx = Ctx::root();
        let file = self.client.open(&ctx, fid, OpenFlags::READ | OpenFlags::DIRECTORY)?;
        let synced = self.client.fsync(&ctx, &file, datasync);
        synced.and(self.client.close(&ctx, &file, None))
    }
}

/// The kernel has named what is not open.
pub(super) fn bad_handle() -> FsError {
    FsError::new(ErrorKind::BadHandle, "find handle")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executing_does_not_need_reading() {
        let flags = open_flags(FMODE_EXEC);
        assert!(flags.has(OpenFlags::EXEC) && !flags.has(OpenFlags::READ));
        assert!(open_flags(libc::O_RDWR as u32).has(OpenFlags::READ | OpenFlags::WRITE));
    }
}
