//! Open files: what this client knows of an inode that it has open, shared by all its handles.

pub(crate) mod buffer;
pub(crate) mod bytes;
pub mod table;
pub(crate) mod written;

use self::buffer::Buffer;
use self::bytes::Bytes;
use crate::ahead::Ahead;
use crate::flags::OpenFlags;
use crate::lock::held::HeldLocks;
use crate::namespace::entry::Known;
use parking_lot::{Mutex, MutexGuard, RwLock};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weft_model::attr::mode;
use weft_model::{Attr, ErrorKind, Fid, FsError, Layout, Result, Timespec};
use weft_rpc::pb::mds;

pub use table::InodeTable;
use written::Unreported;

/// An open file. Close it with [`crate::Client::close`]; dropping it leaves it open until unmount.
#[derive(Clone, Debug)]
pub struct OpenFile {
    pub(crate) handle: u64,
    pub(crate) flags: OpenFlags,
    pub(crate) inode: Arc<OpenInode>,
}

impl OpenFile {
    /// The inode.
    pub fn fid(&self) -> Fid {
        self.inode.fid
    }

    /// How it was opened.
    pub const fn flags(&self) -> OpenFlags {
        self.flags
    }

    /// Number of the handle, unique in this mount.
    pub const fn handle(&self) -> u64 {
        self.handle
    }

    /// Where the file's bytes live.
    pub fn layout(&self) -> Arc<Layout> {
        self.inode.layout()
    }

    /// Checks that data may be read through this handle.
    pub(crate) fn check_readable(&self, op: &'static str) -> Result<()> {
        if self.flags.may_read() { self.inode.check_usable(op) } else { Err(bad(op, self.fid())) }
    }

    /// Checks that data may be written through this handle.
    pub(crate) fn check_writable(&self, op: &'static str) -> Result<()> {
        if self.flags.has(OpenFlags::WRITE) {
            self.inode.check_usable(op)
        } else {
            Err(bad(op, self.fid()))
        }
    }
}

fn bad(op: &'static str, fid: Fid) -> FsError {
    FsError::new(ErrorKind::BadHandle, op).on(format_args!("fid={fid}"))
}

/// What is known of an inode that is open here.
#[derive(Debug)]
pub struct OpenInode {
    fid: Fid,
    state: Mutex<State>,
    /// Shared by writers, exclusive for truncation: a write is either before or after it.
    pub(crate) io: RwLock<()>,
    /// One append at a time from this client.
    pub(crate) append: Mutex<()>,
    buffer: Mutex<Buffer>,
    /// Held by whoever brings the buffer to the OSTs.
    pub(crate) writing_back: Mutex<()>,
    /// Somebody is about to.
    pub(crate) queued: AtomicBool,
    ahead: Mutex<Ahead>,
    handles: Mutex<BTreeMap<u64, OpenFlags>>,
    locks: Mutex<HeldLocks>,
    locks_lost: AtomicBool,
    removed: AtomicBool,
}

/// The changing part.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) layout: Arc<Layout>,
    /// Count of truncations, as last heard of.
    pub(crate) size_epoch: u64,
    /// Size, as last heard of from the MDS.
    pub(crate) known_size: u64,
    mode: u32,
    /// Whether the next read has to be noted as an access (relatime).
    atime_due: bool,
    pub(crate) unreported: Unreported,
    /// What the MDT has told of a small file's bytes.
    pub(crate) bytes: Option<Bytes>,
    /// End of the place that an append under way was given, and the count of truncations then.
    pub(crate) appending: Option<(u64, u64)>,
}

/// Seconds after which an access is noted even if nothing has changed.
const RELATIME: i64 = 24 * 3600;

impl OpenInode {
    pub(crate) fn new(known: &Known, now: Timespec) -> OpenInode {
        let state = State {
            layout: Arc::new(known.layout.clone().unwrap_or_default()),
            size_epoch: known.size_epoch,
            known_size: known.attr.size,
            mode: known.attr.mode,
            atime_due: is_atime_due(&known.attr, now),
            unreported: Unreported::default(),
            bytes: None,
            appending: None,
        };
        OpenInode {
            fid: known.attr.fid,
            state: Mutex::new(state),
            io: RwLock::new(()),
            append: Mutex::new(()),
            buffer: Mutex::new(Buffer::of(known.place)),
            writing_back: Mutex::new(()),
            queued: AtomicBool::new(false),
            ahead: Mutex::default(),
            handles: Mutex::default(),
            locks: Mutex::default(),
            locks_lost: AtomicBool::new(false),
            removed: AtomicBool::new(false),
        }
    }

    /// The inode.
    pub const fn fid(&self) -> Fid {
        self.fid
    }

    /// Where the file's bytes live.
    pub fn layout(&self) -> Arc<Layout> {
        self.state.lock().layout.clone()
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// What is written behind. Taken before [`Self::state`], and never over a request.
    pub(crate) fn buffer(&self) -> MutexGuard<'_, Buffer> {
        self.buffer.lock()
    }

    /// What is read ahead. Never taken over a request, nor with another lock held but an inode's `io`.
    pub(crate) fn ahead(&self) -> MutexGuard<'_, Ahead> {
        self.ahead.lock()
    }

    /// Takes over what a reply says.
    pub(crate) fn learn(&self, known: &Known) {
        let mut state = self.state.lock();
        if let Some(layout) = &known.layout
            && (layout.version > state.layout.version || state.layout.components.is_empty())
        {
            state.layout = Arc::new(layout.clone());
        }
        state.learn_epoch(known.size_epoch);
        state.known_size = known.attr.size;
        state.mode = known.attr.mode;
    }

    /// What is unreported now, to be laid over attributes that are asked for after this.
    pub(crate) fn unreported(&self) -> Unreported {
        let waiting = self.buffer.lock().bytes();
        let mut unreported = self.state.lock().unreported.clone();
        unreported.set_waiting(waiting);
        unreported
    }

    /// Takes note of a read.
    pub(crate) fn note_read(&self, now: impl FnOnce() -> Timespec) {
        let mut state = self.state.lock();
        if state.atime_due {
            state.atime_due = false;
            state.unreported.record_read(now());
        }
    }

    /// Where a file ends that is delegated to this client, so that nobody else can move its end.
    pub(crate) fn delegated_end(&self) -> Option<u64> {
        let buffer = self.buffer.lock();
        let state = self.state.lock();
        let end = state.known_size.max(state.unreported.end_at(state.size_epoch));
        buffer.delegated.then_some(end)
    }

    /// The file is delegated to this client, unless `is_recalled` says so by now.
    pub(crate) fn delegate(&self, is_recalled: impl FnOnce() -> bool) {
        // Within the lock: a recall is noted before it takes it.
        let mut buffer = self.buffer.lock();
        buffer.delegated |= !is_recalled();
    }

    /// Whether nothing of the file is in objects: only this client can put it there.
    pub(crate) fn is_wholly_on_mdt(&self) -> bool {
        let buffer = self.buffer.lock();
        buffer.delegated && buffer.is_inline() && buffer.fits_inline()
    }

    /// What the MDT has is about to be synced.
    pub(crate) fn expect_sync(&self) {
        self.buffer.lock().synced = true;
    }

    /// The file's bytes are in its objects from now on.
    pub(crate) fn leave_mdt(&self) {
        self.buffer.lock().place = mds::Place::Objects;
        self.state.lock().bytes = None;
    }

    /// The file was delegated to this client, and may be another's by now. How many bytes are dropped.
    pub(crate) fn lose_delegation(&self) -> usize {
        let mut buffer = self.buffer.lock();
        buffer.delegated = false;
        if buffer.is_clean() {
            return 0;
        }
        let dropped = buffer.clear();
        let lost = FsError::new(ErrorKind::Io, "write back")
            .on(format_args!("fid={}", self.fid))
            .because("the session was ended before written data was on the OSTs");
        tracing::error!(error = %lost, "written data is lost");
        buffer.failure.get_or_insert(lost);
        self.state.lock().unreported.forget_pending();
        dropped
    }

    /// Whether a reclaim has to tell that the file is delegated.
    pub(crate) fn is_delegated(&self) -> bool {
        let buffer = self.buffer.lock();
        buffer.delegated || !buffer.is_clean()
    }

    /// Whether a write by somebody without privileges has to clear set-id bits.
    pub(crate) fn has_set_id(&self) -> bool {
        let mode = self.state.lock().mode;
        let group = mode::SETGID | mode::GROUP_EXEC;
        mode & mode::SETUID != 0 || mode & group == group
    }

    /// The set-id bits are gone.
    pub(crate) fn clear_set_id(&self) {
        self.state.lock().mode &= !(mode::SETUID | mode::SETGID);
    }

    pub(crate) fn locks(&self) -> MutexGuard<'_, HeldLocks> {
        self.locks.lock()
    }

    pub(crate) fn handles(&self) -> MutexGuard<'_, BTreeMap<u64, OpenFlags>> {
        self.handles.lock()
    }

    /// Every handle, as a reclaim tells it.
    pub(crate) fn open_handles(&self) -> Vec<mds::OpenHandle> {
        let handles = self.handles.lock();
        let one = |(&handle, flags): (&u64, &OpenFlags)| mds::OpenHandle {
            fid: self.fid.0,
            handle,
            flags: flags.to_wire(),
        };
        handles.iter().map(one).collect()
    }

    /// The place of an append that is under way, as a reclaim tells it.
    pub(crate) fn append_under_way(&self) -> Option<mds::ReservedEnd> {
        let (end, size_epoch) = self.state.lock().appending?;
        Some(mds::ReservedEnd { fid: self.fid.0, end, size_epoch })
    }

    /// Every lock, as a reclaim tells it.
    pub(crate) fn held_locks(&self) -> Vec<mds::Lock> {
        self.locks.lock().to_wire(self.fid)
    }

    /// The locks are gone without our doing. If there were any, what they protected may have been
    /// changed by others, so I/O answers `Stale` from now on.
    pub(crate) fn lose_locks(&self) {
        if self.locks.lock().clear() {
            self.locks_lost.store(true, Ordering::Release);
        }
    }

    /// The file was removed while the session had expired: its objects are gone, and must not be made anew.
    pub(crate) fn note_removed(&self) {
        self.removed.store(true, Ordering::Release);
    }

    fn check_usable(&self, op: &'static str) -> Result<()> {
        let stale = |why| {
            let error = FsError::new(ErrorKind::Stale, op).on(format_args!("fid={}", self.fid));
            Err(error.because(why))
        };
        if self.removed.load(Ordering::Acquire) {
            return stale("the file was removed while the session had expired; close it");
        }
        if self.locks_lost.load(Ordering::Acquire) {
            return stale("locks were lost when the session expired; close the file");
        }
        Ok(())
    }
}

impl State {
    /// Takes over a newer count of truncations.
    pub(crate) fn learn_epoch(&mut self, epoch: u64) {
        self.size_epoch = self.size_epoch.max(epoch);
    }

    /// As far as known here, nothing lies at or beyond this offset.
    pub(crate) fn known_end(&self) -> u64 {
        self.known_size.max(self.unreported.end())
    }

    /// A write makes the next read worth noting, and void what the MDT told before it.
    pub(crate) fn note_write(&mut self) {
        self.atime_due = true;
        self.bytes = None;
    }
}

fn is_atime_due(attr: &Attr, now: Timespec) -> bool {
    attr.atime <= attr.mtime.max(attr.ctime) || now.secs - attr.atime.secs > RELATIME
}
