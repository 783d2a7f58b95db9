//! Objects as plain files: `objects/<hh>/<name>` with their bytes, `<name>.crc` beside it with their
//! checksums.
//!
//! What a crash can leave, and why that is safe, is told in `docs/design/0003-object-store.md`. In
//! short: `kill -9` leaves [`intents`], a power cut leaves [`marks`]; both name the blocks whose
//! checksums are computed anew at the next start, and all others are exactly as they were checked.

mod intents;
mod marks;
mod object;
mod recover;
mod sync;
mod table;
mod writeback;

use super::{Check, MAX_SIZE, ObjectStat, ObjectStore, ScrubReport, Seek, StatFs};
use crate::files::{self, LastStop};
use crate::kv::Kv;
use crate::space::Gauge;
use intents::{Intent, Intents};
use marks::{Marks, REGION, regions};
use object::{Files, sums_path};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fs::{self, File};
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;
use sync::Order;
use table::{Cut, DIRS, State, Table, dir_of};
use weft_model::{ErrorKind, FsError, ObjectId, Result, Timespec, checksum};

/// Directory of the objects in the target's.
pub(crate) const DIR: &str = "objects";
/// File of the writes in progress in the target's directory.
pub(crate) const INTENTS: &str = "intents";

/// Each object takes two of the process's open files, several stores share a process, and sockets and
/// logs need some, too: a store may have this part of the limit open as objects.
const FILES_SHARE: usize = 64;

/// How objects are kept.
#[derive(Clone, Debug)]
pub struct ObjectsConfig {
    /// Objects with open files at a time (two descriptors each). Never more than a thirty-second of
    /// what the process may open, so that several stores fit in one process.
    pub max_open: usize,
    /// Time after which a change is made durable though nobody asked.
    pub sync_every: Duration,
}

impl Default for ObjectsConfig {
    fn default() -> ObjectsConfig {
        ObjectsConfig { max_open: 4096, sync_every: Duration::from_secs(5) }
    }
}

/// An [`ObjectStore`] of plain files.
pub struct FsObjects {
    core: Arc<Core>,
    /// What the thread is told.
    orders: SyncSender<Order>,
    syncer: Mutex<Option<JoinHandle<()>>>,
}

/// Everything but the thread.
struct Core {
    /// The objects' directory.
    root: File,
    table: Table,
    intents: Intents,
    marks: Marks,
    gauge: Arc<Gauge>,
    poisoned: AtomicBool,
    /// Destroyed objects with their marks, which a power cut brings back until their directories are
    /// synced.
    buried: Mutex<HashMap<ObjectId, Vec<u32>>>,
    /// Objects were destroyed of which there was no room to take a note: directories have to be synced.
    unnoted: AtomicBool,
    /// Held while a directory is synced.
    dir_turns: Vec<Mutex<()>>,
}

impl FsObjects {
    /// Makes the directories and files of an empty store in the target directory `dir`.
    pub(crate) fn format(dir: &Path) -> Result<()> {
        let root = dir.join(DIR);
        for number in 0..DIRS {
            let path = root.join(format!("{number:02x}"));
            fs::create_dir_all(&path).map_err(|e| files::fail("format objects", &path, &e))?;
        }
        files::sync_dir(&root)?;
        Intents::format(&dir.join(INTENTS))
    }

    /// Opens the store in the target directory `dir` and repairs what `last_stop` has left. Marks
    /// are kept in `kv`.
    pub(crate) fn open(
        dir: &Path,
        kv: Arc<dyn Kv>,
        gauge: Arc<Gauge>,
        last_stop: LastStop,
        config: &ObjectsConfig,
    ) -> Result<Arc<FsObjects>> {
        let path = dir.join(DIR);
        let root = File::open(&path).map_err(|e| files::fail("open objects", &path, &e))?;
        let core = Arc::new(Core {
            root,
            table: Table::new(&path, config.max_open.min(native::max_files() / FILES_SHARE)),
            intents: Intents::open(&dir.join(INTENTS))?,
            marks: Marks::new(kv),
            gauge,
            poisoned: AtomicBool::new(false),
            buried: Mutex::default(),
            unnoted: AtomicBool::new(false),
            dir_turns: (0..DIRS).map(|_| Mutex::new(())).collect(),
        });
        core.recover(last_stop)?;
        let (orders, queue) = sync_channel(sync::WAITING);
        let syncer = std::thread::Builder::new()
            .name("weft-sync".into())
            .spawn({
                let (core, period) = (core.clone(), config.sync_every);
                move || sync::run(&core, &queue, period)
            })
            .map_err(|e| FsError::from_io("start thread", &e))?;
        Ok(Arc::new(FsObjects { core, orders, syncer: Mutex::new(Some(syncer)) }))
    }

    /// Stops the thread and puts everything on stable storage.
    pub(crate) fn close(&self) -> Result<()> {
        self.stop_thread();
        self.core.sync_all()?;
        self.core.marks.clear_all()
    }

    fn stop_thread(&self) {
        let Some(thread) = self.syncer.lock().take() else { return };
        // Fails when the thread has ended because the store is poisoned.
        let _ = self.orders.send(Order::Stop);
        if thread.join().is_err() {
            tracing::error!("background sync of objects panicked");
        }
    }
}

impl Drop for FsObjects {
    fn drop(&mut self) {
        self.stop_thread();
    }
}

impl Core {
    fn admit(&self, op: &'static str) -> Result<()> {
        if self.poisoned.load(Ordering::Acquire) {
            return Err(FsError::new(ErrorKind::Poisoned, op).on("part=objects").because(
                "an earlier write or sync failed; check the disk, then restart the target",
            ));
        }
        Ok(())
    }

    /// Takes the store out of service when `result` is an error other than a full disk.
    fn fatal<T>(&self, result: Result<T>) -> Result<T> {
        if let Err(error) = &result
            && !matches!(error.kind, ErrorKind::NoSpace | ErrorKind::Overloaded)
            && !self.poisoned.swap(true, Ordering::AcqRel)
        {
            tracing::error!(%error, "object store takes no more writes");
        }
        result
    }

    /// Changes `[offset, end)` of an object: marks, intent, the change itself, and what is to be
    /// done when it fails.
    fn change(
        &self,
        state: &mut State,
        object: &mut Files,
        (offset, end): (u64, u64),
        act: impl FnOnce(&mut Files) -> Result<()>,
    ) -> Result<()> {
        self.mark(state, object.id, offset, end - offset)?;
        let claim = self.intents.claim(Intent { id: object.id, offset, len: end - offset });
        let size = object.size;
        let result = act(object);
        let Err(error) = &result else { return result };
        match error.kind {
            // Met before anything was changed.
            ErrorKind::Checksum
            | ErrorKind::NotSupported
            | ErrorKind::FileTooBig
            | ErrorKind::Invalid => {}
            ErrorKind::Io if error.op.starts_with("read") => {}
            ErrorKind::NoSpace => {
                if let Err(error) = object.back_out(size, offset, end) {
                    claim.leave();
                    return self.fatal(Err(FsError { kind: ErrorKind::Io, ..error }));
                }
            }
            _ => {
                claim.leave();
                return self.fatal(result);
            }
        }
        result
    }

    /// Marks the regions of a range that are not marked. Where they hold data that was durable,
    /// the marks are made durable first; elsewhere within tens of milliseconds.
    fn mark(&self, state: &mut State, id: ObjectId, offset: u64, len: u64) -> Result<()> {
        state.written += 1;
        let change = state.written;
        let fresh: Vec<u32> = regions(offset, len)
            .filter(|&region| state.regions.insert(region, change).is_none())
            .collect();
        if fresh.is_empty() {
            return Ok(());
        }
        let mut marked = Ok(());
        if self.buried.lock().contains_key(&id) {
            marked = self.marks.exhume(id);
        }
        marked = marked.and_then(|()| self.marks.set(id, fresh.iter().copied()));
        if fresh.iter().any(|&region| state.had_data(region)) {
            marked = marked.and_then(|()| self.marks.flush());
        }
        if marked.is_err() {
            state.regions.retain(|region, _| !fresh.contains(region));
        }
        marked
    }

    /// Notes that an object is about to be cut. If it is not, the note cuts what somebody has asked to be
    /// cut, and will again.
    fn note_cut(&self, state: &mut State, id: ObjectId, size: u64) -> Result<()> {
        let size = state.cut.map_or(size, |earlier| earlier.size.min(size));
        self.marks.set_cut(id, size)?;
        // The change that follows.
        state.cut = Some(Cut { change: state.written + 1, size });
        Ok(())
    }

    fn remove_files(&self, id: ObjectId) -> Result<()> {
        let path = self.table.path(id);
        // The data first: checksums without data are no object.
        for path in [&path, &sums_path(&path)] {
            match fs::remove_file(path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(files::fail("destroy object", path, &error));
                }
                _ => {}
            }
        }
        self.table.dirty_dirs[dir_of(id) as usize].store(true, Ordering::Release);
        Ok(())
    }

    /// Lets a write into the reserve only where it needs no space.
    fn admit_space(&self, room: Result<()>, object: &Files, end: u64) -> Result<()> {
        let Err(error) = room else { return Ok(()) };
        let full = object.data.metadata().is_ok_and(|meta| meta.blocks() * 512 >= object.size);
        if error.kind == ErrorKind::NoSpace && end <= object.size && full {
            return Ok(());
        }
        Err(error)
    }

    /// End of a range, checked against the largest object.
    fn end_of(&self, op: &'static str, offset: u64, len: u64) -> Result<u64> {
        match offset.checked_add(len) {
            Some(end) if end <= MAX_SIZE => Ok(end),
            _ => Err(FsError::new(ErrorKind::FileTooBig, op)),
        }
    }
}

impl ObjectStore for FsObjects {
    fn write(
        &self,
        id: ObjectId,
        offset: u64,
        sums: &[u32],
        data: &[u8],
        check: Check,
    ) -> Result<()> {
        let core = &self.core;
        core.admit("write")?;
        let end = core.end_of("write", offset, data.len() as u64)?;
        if sums.len() != checksum::piece_count(offset, data.len() as u64) {
            return Err(FsError::new(ErrorKind::Invalid, "write").because("number of checksums"));
        }
        if check == Check::Verify {
            checksum::verify(offset, data, sums)
                .map_err(|at| super::sums::damaged("write", id, at).because("data came damaged"))?;
        }
        if data.is_empty() {
            return Ok(());
        }
        let room = core.gauge.admit(data.len() as u64);
        if room.is_err() && core.table.view(id, |_, _| Ok(()))?.is_none() {
            return room;
        }
        let written = core.table.update(id, true, |state, object| {
            core.admit_space(room, object, end)?;
            core.change(state, object, (offset, end), |object| object.write(offset, sums, data))?;
            Ok(state.stream.extend(&object.data, offset, end))
        });
        if let Some(Some(stretch)) = written? {
            // When the thread is behind, what is left out is left to the sync.
            let _ = self.orders.try_send(Order::Begin(stretch));
        }
        Ok(())
    }

    fn read(
        &self,
        id: ObjectId,
        offset: u64,
        buffer: &mut [u8],
        sums: &mut Vec<u32>,
        check: Check,
    ) -> Result<usize> {
        sums.clear();
        let read = self.core.table.view(id, |_, object| object.read(offset, buffer, sums, check));
        Ok(read?.unwrap_or(0))
    }

    fn truncate(&self, id: ObjectId, size: u64) -> Result<()> {
        let core = &self.core;
        core.admit("truncate")?;
        core.end_of("truncate", size, 0)?;
        let cut = core.table.update(id, size > 0, |state, object| {
            let cut = size < object.size;
            if cut {
                core.note_cut(state, id, size)?;
            }
            // What may differ after a crash is the block that is cut, and the two sizes.
            core.change(state, object, (size, size + 1), |object| object.truncate(size))?;
            Ok(cut)
        })?;
        if cut == Some(true) { core.fatal(core.marks.flush()) } else { Ok(()) }
    }

    fn punch(&self, id: ObjectId, offset: u64, len: u64) -> Result<()> {
        let core = &self.core;
        core.admit("punch")?;
        let done = core.table.update(id, false, |state, object| {
            let end = offset.saturating_add(len).min(object.size);
            let mut from = offset;
            while from < end {
                // By regions, so that a crash leaves no more than one to be looked at.
                let to = end.min((from / REGION + 1) * REGION);
                core.change(state, object, (from, to), |object| object.punch(from, to))?;
                from = to;
            }
            Ok(())
        });
        done.map(drop)
    }

    fn allocate(&self, id: ObjectId, offset: u64, len: u64, keep_size: bool) -> Result<()> {
        let core = &self.core;
        core.admit("allocate")?;
        core.end_of("allocate", offset, len)?;
        if len == 0 {
            return Err(FsError::new(ErrorKind::Invalid, "allocate").because("no length"));
        }
        core.gauge.admit(len)?;
        let done = core.table.update(id, true, |state, object| {
            let size = object.size;
            core.change(state, object, (size, size + 1), |object| {
                object.allocate(offset, len, keep_size)
            })
        });
        done.map(drop)
    }

    fn seek(&self, id: ObjectId, offset: u64, what: Seek) -> Result<u64> {
        let found = self.core.table.view(id, |_, object| object.seek(offset, what))?;
        found.ok_or(FsError::new(ErrorKind::NoSuchOffset, "seek"))
    }

    fn stat(&self, id: ObjectId) -> Result<Option<ObjectStat>> {
        self.core.table.view(id, |_, object| {
            let meta = object.data.metadata().map_err(|e| FsError::from_io("stat object", &e))?;
            let mtime = Timespec { secs: meta.mtime(), nanos: meta.mtime_nsec() as u32 };
            Ok(ObjectStat { size: object.size, blocks: meta.blocks(), mtime })
        })
    }

    fn sync(&self, ids: &[ObjectId]) -> Result<()> {
        self.core.sync(ids)
    }

    fn sync_all(&self) -> Result<()> {
        self.core.sync_all()
    }

    fn destroy(&self, id: ObjectId) -> Result<()> {
        let core = &self.core;
        core.admit("destroy")?;
        let marked = core.table.bury(id, || {
            match core.marks.bury(id) {
                // What gives space back must not need any.
                Err(error) if error.kind == ErrorKind::NoSpace => {
                    core.unnoted.store(true, Ordering::Release);
                }
                noted => noted?,
            }
            core.remove_files(id)
        })?;
        core.buried.lock().entry(id).or_default().extend(marked.into_keys());
        Ok(())
    }

    fn list(&self, after: Option<ObjectId>, limit: usize) -> Result<Vec<ObjectId>> {
        let mut found = Vec::new();
        for number in after.map_or(0, dir_of)..=u8::MAX {
            let path = self.core.table.dir(number);
            let io = |error| files::fail("list objects", &path, &error);
            let mut names = Vec::new();
            for entry in fs::read_dir(&path).map_err(io)? {
                let name = entry.map_err(io)?.file_name();
                names.extend(name.to_str().and_then(|name| name.parse::<ObjectId>().ok()));
            }
            names.retain(|&id| after.is_none_or(|after| dir_of(after) != number || id > after));
            names.sort_unstable();
            found.extend(names);
            if found.len() >= limit.max(1) {
                found.truncate(limit.max(1));
                break;
            }
        }
        Ok(found)
    }

    fn statfs(&self) -> Result<StatFs> {
        self.core.gauge.statfs()
    }

    fn scrub(
        &self,
        id: ObjectId,
        pace: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<ScrubReport> {
        let mut report = ScrubReport::default();
        let mut block = 0;
        loop {
            let step =
                self.core.table.view(id, |_, object| object.check(block, &mut report.damaged));
            let Some((next, bytes)) = step? else { break };
            report.bytes += bytes;
            if next <= block || pace(bytes).is_break() {
                break;
            }
            block = next;
        }
        Ok(report)
    }
}

mod native {
    #![allow(unsafe_code)] // `getrlimit` is not in std.

    /// How many files this process may open.
    pub fn max_files() -> usize {
        let mut limit = libc::rlimit { rlim_cur: 1024, rlim_max: 1024 };
        // SAFETY: writes to a local of the right type; on failure it stays as it is.
        unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
        limit.rlim_cur as usize
    }
}
