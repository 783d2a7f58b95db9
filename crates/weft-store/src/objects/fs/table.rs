//! The objects that are in use, open, or not yet durable, and the bound on open files.

use super::marks::REGION;
use super::object::Files;
use super::writeback::Stream;
use parking_lot::{Mutex, RwLock, RwLockWriteGuard};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weft_model::{ObjectId, Result};

/// Number of directories that objects are spread over.
pub const DIRS: usize = 256;
const SHARDS: usize = 64;

/// Which directory an object is in: upper 8 bits of a multiplicative hash of the FID. On disk for
/// ever.
pub fn dir_of(id: ObjectId) -> u8 {
    (id.fid.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// An object's lock and what is known about it.
pub struct Object {
    /// Which object.
    pub id: ObjectId,
    /// Everything else; reads share it.
    pub state: RwLock<State>,
    /// Used since the last look for files to close.
    recent: AtomicBool,
}

/// What is known about an object.
#[derive(Default)]
pub struct State {
    /// Its files, while they are open.
    pub files: Option<Files>,
    /// Destroyed: whoever still finds this must look again.
    pub dead: bool,
    /// Counts changes.
    pub written: u64,
    /// The change up to which everything is durable.
    pub synced: u64,
    /// The change that was the last at the end of the syncer's previous round.
    pub settled: u64,
    /// Size that was durable at some time; behind it there is no data that a crash may not take.
    pub durable_size: u64,
    /// Marked regions with the last change in each. Not empty while anything is not durable.
    pub regions: BTreeMap<u32, u64>,
    /// What is being written in order.
    pub stream: Stream,
    /// The last cut that may not be durable, and the smallest size since all were.
    pub cut: Option<Cut>,
}

/// A cut of an object, of which the key-value store has a note.
#[derive(Clone, Copy)]
pub struct Cut {
    /// The change that it was.
    pub change: u64,
    /// The size; what was cut off in two steps must not come back between them.
    pub size: u64,
}

impl State {
    /// Whether anything may not be durable, or the note of a cut may be.
    pub fn dirty(&self) -> bool {
        (self.written > self.synced || self.cut.is_some()) && !self.dead
    }

    /// Whether the region holds data that was durable before.
    pub fn had_data(&self, region: u32) -> bool {
        u64::from(region) * REGION < self.durable_size
    }
}

#[derive(Default)]
struct Shard {
    objects: HashMap<ObjectId, Arc<Object>>,
    /// Those with open files, roughly by age.
    open: VecDeque<Arc<Object>>,
}

/// All objects that are not idle.
pub struct Table {
    root: PathBuf,
    shards: Vec<Mutex<Shard>>,
    open_per_shard: usize,
    /// Set when something came to or went from a directory since its last sync.
    pub dirty_dirs: Vec<AtomicBool>,
}

impl Table {
    /// Objects below the directory `root`, of which about `max_open` have open files at a time.
    pub fn new(root: &Path, max_open: usize) -> Table {
        Table {
            root: root.to_path_buf(),
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            open_per_shard: (max_open / SHARDS).max(2),
            dirty_dirs: (0..DIRS).map(|_| AtomicBool::new(false)).collect(),
        }
    }

    /// Directory number `number`.
    pub fn dir(&self, number: u8) -> PathBuf {
        self.root.join(format!("{number:02x}"))
    }

    /// Where the data of an object is.
    pub fn path(&self, id: ObjectId) -> PathBuf {
        self.root.join(format!("{:02x}/{id}", dir_of(id)))
    }

    /// Changes an object under its lock, with its files open. None when it is missing and is not
    /// to be made.
    pub fn update<T>(
        &self,
        id: ObjectId,
        create: bool,
        change: impl FnOnce(&mut State, &mut Files) -> Result<T>,
    ) -> Result<Option<T>> {
        loop {
            let object = self.get(id);
            let mut state = object.state.write();
            if state.dead {
                continue;
            }
            if !self.ensure_open(&object, &mut state, create)? {
                drop(state);
                self.release(&object);
                return Ok(None);
            }
            let Some(mut files) = state.files.take() else { continue };
            let result = change(&mut state, &mut files);
            state.files = Some(files);
            return result.map(Some);
        }
    }

    /// Looks at an object while nobody changes it. None when it is missing.
    pub fn view<T>(
        &self,
        id: ObjectId,
        look: impl FnOnce(&State, &Files) -> Result<T>,
    ) -> Result<Option<T>> {
        loop {
            let object = self.get(id);
            let mut state = object.state.read();
            if state.dead {
                continue;
            }
            if state.files.is_none() {
                drop(state);
                let mut opening = object.state.write();
                if opening.dead {
                    continue;
                }
                if !self.ensure_open(&object, &mut opening, false)? {
                    drop(opening);
                    self.release(&object);
                    return Ok(None);
                }
                state = RwLockWriteGuard::downgrade(opening);
            }
            let Some(files) = &state.files else { continue };
            return look(&state, files).map(Some);
        }
    }

    /// Marks an object as destroyed, while `remove` has it to itself. Its regions are returned.
    pub fn bury(
        &self,
        id: ObjectId,
        remove: impl FnOnce() -> Result<()>,
    ) -> Result<BTreeMap<u32, u64>> {
        loop {
            let object = self.get(id);
            let mut state = object.state.write();
            if state.dead {
                continue;
            }
            let removed = remove();
            state.dead = true;
            state.files = None;
            self.shard(id).lock().objects.remove(&id);
            return removed.map(|()| std::mem::take(&mut state.regions));
        }
    }

    /// Acts while nobody changes the object, unless it was made again and has marked regions.
    pub fn unless_marked(&self, id: ObjectId, act: impl FnOnce() -> Result<()>) -> Result<()> {
        loop {
            let object = self.get(id);
            let state = object.state.write();
            if state.dead {
                continue;
            }
            let done = if state.regions.is_empty() { act() } else { Ok(()) };
            drop(state);
            self.release(&object);
            return done;
        }
    }

    /// An object, if anything is known about it.
    pub fn find(&self, id: ObjectId) -> Option<Arc<Object>> {
        self.shard(id).lock().objects.get(&id).cloned()
    }

    /// All objects with marked regions.
    pub fn marked(&self) -> Vec<Arc<Object>> {
        let mut marked = Vec::new();
        for shard in &self.shards {
            let objects: Vec<_> = shard.lock().objects.values().cloned().collect();
            marked.extend(objects.into_iter().filter(|o| !o.state.read().regions.is_empty()));
        }
        marked
    }

    /// Forgets an object that is not open, not marked and not in use.
    pub fn release(&self, object: &Arc<Object>) {
        let mut shard = self.shard(object.id).lock();
        // One for the table, one for the caller.
        if Arc::strong_count(object) == 2 && is_idle(object) {
            shard.objects.remove(&object.id);
        }
    }

    fn shard(&self, id: ObjectId) -> &Mutex<Shard> {
        let hash = (id.fid.0 ^ u64::from(id.index) << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        &self.shards[(hash >> 58) as usize % SHARDS]
    }

    fn get(&self, id: ObjectId) -> Arc<Object> {
        let mut shard = self.shard(id).lock();
        let object = shard.objects.entry(id).or_insert_with(|| {
            let recent = AtomicBool::new(true);
            Arc::new(Object { id, state: RwLock::default(), recent })
        });
        object.recent.store(true, Ordering::Relaxed);
        object.clone()
    }

    /// Opens the files of an object whose lock the caller holds; false when it is missing.
    fn ensure_open(&self, object: &Arc<Object>, state: &mut State, create: bool) -> Result<bool> {
        if state.files.is_some() {
            return Ok(true);
        }
        let Some((files, made)) = Files::open(object.id, &self.path(object.id), create)? else {
            return Ok(false);
        };
        if made {
            self.dirty_dirs[dir_of(object.id) as usize].store(true, Ordering::Release);
        }
        if state.regions.is_empty() {
            state.durable_size = files.size;
        }
        state.files = Some(files);
        self.close_some(object);
        Ok(true)
    }

    /// Counts `opened` as open and closes others of its shard that were not used lately.
    fn close_some(&self, opened: &Arc<Object>) {
        let mut shard = self.shard(opened.id).lock();
        shard.open.push_back(opened.clone());
        for _ in 0..2 * self.open_per_shard {
            if shard.open.len() <= self.open_per_shard {
                return;
            }
            let Some(oldest) = shard.open.pop_front() else { return };
            let spared = oldest.recent.swap(false, Ordering::Relaxed)
                || match oldest.state.try_write() {
                    Some(mut state) => {
                        state.files = None;
                        false
                    }
                    None => true,
                };
            if spared {
                shard.open.push_back(oldest);
            } else if Arc::strong_count(&oldest) == 2 && is_idle(&oldest) {
                shard.objects.remove(&oldest.id);
            }
        }
    }
}

fn is_idle(object: &Object) -> bool {
    object.state.try_read().is_some_and(|state| state.files.is_none() && state.regions.is_empty())
}
