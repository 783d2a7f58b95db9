//! Making things durable: on request, and by a thread that does it anyway every few seconds.

use super::Core;
use super::table::{DIRS, Object, dir_of};
use super::writeback::Stretch;
use crate::files;
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use weft_model::{FsError, ObjectId, Result};

/// How often the thread makes new marks durable.
const FLUSH_EVERY: Duration = Duration::from_millis(30);
/// Stretches that may wait to be sent to the disk.
pub(super) const WAITING: usize = 64;
/// From this number of objects on, the whole file system is synced at once.
const BULK: usize = 16;

impl Core {
    /// See [`crate::objects::ObjectStore::sync`].
    pub(super) fn sync(&self, ids: &[ObjectId]) -> Result<()> {
        self.admit("sync")?;
        let known: Vec<_> = ids.iter().filter_map(|&id| self.table.find(id)).collect();
        if known.len() < ids.len() {
            // Some may have been destroyed.
            self.fatal(self.marks.flush())?;
            if self.unnoted.swap(false, Ordering::AcqRel) {
                (0..DIRS).try_for_each(|number| self.sync_dir(number as u8))?;
            }
        }
        self.sync_objects(known)
    }

    /// See [`crate::objects::ObjectStore::sync_all`].
    pub(super) fn sync_all(&self) -> Result<()> {
        self.admit("sync")?;
        self.sync_objects(self.table.marked())?;
        (0..DIRS).try_for_each(|number| self.sync_dir(number as u8))
    }

    fn sync_objects(&self, mut objects: Vec<Arc<Object>>) -> Result<()> {
        objects.retain(|object| object.state.read().dirty());
        if objects.is_empty() {
            return Ok(());
        }
        self.fatal(self.marks.flush())?;
        if objects.len() >= BULK {
            self.sync_bulk(&objects)?;
        } else {
            // The disk gets everything at once; then the waits and the commits of its journal are shared.
            let started: Vec<_> = objects.iter().map(|object| self.start(object)).collect();
            started.into_iter().try_for_each(|started| self.finish(started?))?;
        }
        self.forget_cuts(&objects)
    }

    /// Takes back the notes of cuts that are durable by themselves now, before anything that was written
    /// later counts as synced.
    fn forget_cuts(&self, objects: &[Arc<Object>]) -> Result<()> {
        let mut forgotten = Vec::new();
        for object in objects {
            let mut state = object.state.write();
            let synced = state.synced;
            if let Some(cut) = state.cut.as_mut().filter(|cut| cut.change <= synced) {
                self.marks.clear_cut(object.id)?;
                // A cut from now on begins with a note of its own.
                cut.size = u64::MAX;
                forgotten.push((object, cut.change));
            }
        }
        if forgotten.is_empty() {
            return Ok(());
        }
        self.fatal(self.marks.flush())?;
        for (object, change) in forgotten {
            object.state.write().cut.take_if(|cut| cut.change == change);
        }
        Ok(())
    }

    /// Has the kernel begin to write an object, whose marks are durable. The lock is not held from
    /// here on: others may write, and are not counted as synced.
    fn start<'a>(&self, object: &'a Object) -> Result<Option<Started<'a>>> {
        let started = self.table.view(object.id, |state, files| {
            let (data, sums) = (files.data.clone(), files.sums.clone());
            Ok(Started { object, written: state.written, size: files.size, data, sums })
        })?;
        if let Some(Started { data, sums, .. }) = &started {
            Stretch::whole(data).begin();
            Stretch::whole(sums).begin();
        }
        Ok(started)
    }

    /// Waits until it is durable.
    fn finish(&self, started: Option<Started<'_>>) -> Result<()> {
        let Some(Started { object, written, size, data, sums }) = started else { return Ok(()) };
        let id = object.id;
        let io = |error| FsError::from_io("sync object", &error).on(format!("object={id}"));
        self.fatal(data.sync_data().map_err(io))?;
        self.fatal(sums.sync_data().map_err(io))?;
        self.sync_dir(dir_of(id))?;
        record(object, written, size);
        Ok(())
    }

    fn sync_bulk(&self, objects: &[Arc<Object>]) -> Result<()> {
        let snapshot: Vec<_> = objects
            .iter()
            .map(|object| {
                let state = object.state.read();
                let size = state.files.as_ref().map_or(u64::MAX, |files| files.size);
                (state.written, size)
            })
            .collect();
        self.sync_file_system()?;
        for (object, (written, size)) in objects.iter().zip(snapshot) {
            record(object, written, size);
        }
        Ok(())
    }

    pub(super) fn sync_file_system(&self) -> Result<()> {
        let io = |error| FsError::from_io("sync file system", &error);
        self.fatal(native::syncfs(&self.root).map_err(io))
    }

    /// Makes the coming and going of files in a directory durable.
    fn sync_dir(&self, number: u8) -> Result<()> {
        let dirty = &self.table.dirty_dirs[number as usize];
        // Whoever comes second waits for the first: its files are covered by then, or the
        // directory is dirty again.
        let _turn = self.dir_turns[number as usize].lock();
        if dirty.swap(false, Ordering::AcqRel) {
            self.fatal(files::sync_dir(&self.table.dir(number)))?;
        }
        Ok(())
    }

    /// One round of the thread: syncs what is not durable, and takes back the marks of regions
    /// that have not changed since the round before.
    pub(super) fn round(&self) -> Result<()> {
        let marked = self.table.marked();
        self.sync_objects(marked.clone())?;
        for object in marked {
            {
                let mut state = object.state.write();
                let still = state.synced.min(state.settled);
                let calm: Vec<u32> = state
                    .regions
                    .iter()
                    .filter(|&(_, &changed)| changed <= still)
                    .map(|(&region, _)| region)
                    .collect();
                if !calm.is_empty() && !state.dead {
                    self.marks.clear(object.id, calm.iter().copied())?;
                    state.regions.retain(|_, &mut changed| changed > still);
                }
                state.settled = state.written;
            }
            self.table.release(&object);
        }
        self.forget_buried()
    }

    /// Makes the end of destroyed objects durable, and only then takes back their marks and graves: an
    /// object that came back without them would count as damaged, or as one that nobody destroys.
    fn forget_buried(&self) -> Result<()> {
        let buried = std::mem::take(&mut *self.buried.lock());
        if buried.is_empty() {
            return Ok(());
        }
        (0..DIRS).try_for_each(|number| self.sync_dir(number as u8))?;
        for (id, regions) in buried {
            if !regions.is_empty() {
                self.table.unless_marked(id, || self.marks.clear(id, regions.into_iter()))?;
            }
            self.marks.clear_grave(id)?;
        }
        Ok(())
    }
}

/// An object on its way to the disk, as it was when that began.
struct Started<'a> {
    object: &'a Object,
    written: u64,
    size: u64,
    data: Arc<File>,
    sums: Arc<File>,
}

fn record(object: &Object, written: u64, size: u64) {
    let mut state = object.state.write();
    state.synced = state.synced.max(written);
    state.durable_size = size;
}

/// What the thread is told.
pub(super) enum Order {
    /// To begin sending this to the disk.
    Begin(Stretch),
    /// To end.
    Stop,
}

/// The thread: stretches at once, marks within 30 ms, a round every `period`. It ends when told to or
/// when the store is poisoned.
pub(super) fn run(core: &Core, orders: &Receiver<Order>, period: Duration) {
    let mut next = Instant::now() + period;
    loop {
        let stretch = match orders.recv_timeout(FLUSH_EVERY) {
            Ok(Order::Begin(stretch)) => Some(stretch),
            Err(RecvTimeoutError::Timeout) => None,
            Ok(Order::Stop) | Err(RecvTimeoutError::Disconnected) => return,
        };
        if core.admit("sync").is_err() {
            return;
        }
        let mut result = core.fatal(core.marks.flush());
        if let (Some(stretch), Ok(())) = (stretch, &result) {
            stretch.begin();
        }
        if Instant::now() >= next {
            result = result.and_then(|()| core.round());
            next = Instant::now() + period;
        }
        if let Err(error) = result {
            tracing::warn!(%error, "background sync of objects failed");
        }
    }
}

mod native {
    #![allow(unsafe_code)] // `syncfs` is not in std.

    use super::File;
    use std::os::fd::AsRawFd;

    pub fn syncfs(file: &File) -> std::io::Result<()> {
        // SAFETY: plain system call on a descriptor that is open for the time of the borrow.
        let result = unsafe { libc::syncfs(file.as_raw_fd()) };
        if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    }
}
