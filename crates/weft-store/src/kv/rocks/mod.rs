//! The store on disk: one RocksDB with one column family per target.
//!
//! Batches go to the log with a plain `write()` (they survive `kill -9` in the page cache); a sync
//! from another thread is one `fdatasync` of the log and covers everything written so far.
//!
//! A disk that is full fails writes and nothing else. RocksDB does not always come out of that by
//! itself, so the store is opened anew here, under the feet of its users, as soon as there is
//! space: the log is whole up to the write that failed.

mod log;
mod options;

pub use options::Profile;

use super::{Batch, Kv, KvStats, Op, VerifyReport, Visit};
use crate::files;
use crate::space::Gauge;
use log::Logs;
use options::{fail, named, options, uncached_options};
use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use weft_model::{ErrorKind, FsError, Result};
use weft_rocksdb::{DB, Options, ReadOptions, WriteBatch, WriteOptions};

/// Time between attempts to come out of a full disk.
const RETRY_EVERY: Duration = Duration::from_millis(500);

/// Free bytes without which the store is not opened: its info log must not meet a full disk.
const LEAST_ROOM: u64 = 1 << 20;

/// A [`Kv`] on disk.
pub struct RocksKv {
    /// None only while a full disk keeps the store from being opened anew.
    db: RwLock<Option<DB>>,
    dir: PathBuf,
    profile: Profile,
    write_options: WriteOptions,
    /// A write failed for lack of space, and none has succeeded since.
    full: AtomicBool,
    /// When it was last tried to come out of that.
    retried: Mutex<Instant>,
    poisoned: AtomicBool,
    synced: AtomicU64,
    /// Held during the log's `fdatasync`: whoever waits for it may find its own work done.
    logs: Mutex<Logs>,
}

impl RocksKv {
    /// Makes a new store in `dir`, which must not hold one.
    ///
    /// # Errors
    /// `Exists`, or what the disk says.
    pub fn create(dir: &Path, profile: Profile) -> Result<RocksKv> {
        if dir.join("CURRENT").exists() {
            return Err(FsError::new(ErrorKind::Exists, "create key-value store").on(named(dir)));
        }
        let mut options = options(profile)?;
        options.create_if_missing(true);
        options.set_error_if_exists(true);
        std::fs::create_dir_all(dir)
            .map_err(|error| files::fail("create key-value store", dir, &error))?;
        RocksKv::start(&options, dir, profile, "create key-value store")
    }

    /// Opens the store in `dir`, replaying its log.
    ///
    /// # Errors
    /// `Corrupt` or `Checksum` (naming the file) when it is damaged or no store; `Busy` when it
    /// is open already; `NoSpace` when not even the replayed log fits the disk.
    pub fn open(dir: &Path, profile: Profile) -> Result<RocksKv> {
        RocksKv::start(&options(profile)?, dir, profile, "open key-value store")
    }

    fn start(options: &Options, dir: &Path, profile: Profile, op: &'static str) -> Result<RocksKv> {
        if Gauge::new(dir, LEAST_ROOM)?.statfs()?.available == 0 {
            return Err(FsError::new(ErrorKind::NoSpace, op).on(named(dir)));
        }
        let db = DB::open(options, dir).map_err(|error| fail(op, dir, &error))?;
        let mut write_options = WriteOptions::new();
        write_options.set_sync(false);
        let kv = RocksKv {
            db: RwLock::new(Some(db)),
            dir: dir.to_path_buf(),
            profile,
            write_options,
            full: AtomicBool::new(false),
            retried: Mutex::new(Instant::now()),
            poisoned: AtomicBool::new(false),
            synced: AtomicU64::new(0),
            logs: Mutex::new(Logs::new(dir)),
        };
        kv.sync()?;
        Ok(kv)
    }

    fn admit(&self, op: &'static str) -> Result<()> {
        if self.poisoned.load(Ordering::Acquire) {
            return Err(FsError::new(ErrorKind::Poisoned, op).on(named(&self.dir)).because(
                "an earlier write or sync failed; check the disk, then restart the target",
            ));
        }
        Ok(())
    }

    /// Turns a failed write into its error, and takes the store out of service unless the disk is
    /// merely full.
    fn refuse(&self, error: FsError) -> FsError {
        if error.kind == ErrorKind::NoSpace {
            self.full.store(true, Ordering::Release);
            return error;
        }
        self.poison(error)
    }

    fn poison(&self, error: FsError) -> FsError {
        // Without a free descriptor nothing was tried, so nothing is in doubt.
        if error.kind == ErrorKind::Overloaded {
            return error;
        }
        if !self.poisoned.swap(true, Ordering::AcqRel) {
            tracing::error!(%error, "key-value store takes no more writes");
        }
        error
    }

    fn still_full(&self, op: &'static str) -> FsError {
        FsError::new(ErrorKind::NoSpace, op)
            .on(named(&self.dir))
            .because("waiting for space on the disk of the store")
    }

    /// The open store. Recursive, as the visitors of scans read.
    fn db(&self, op: &'static str) -> Result<Db<'_>> {
        let db = self.db.read_recursive();
        if db.is_some() {
            return Ok(Db(db));
        }
        self.admit(op)?;
        Err(self.still_full(op))
    }

    /// Opens the store anew if there is space again. Called when a write finds `full` set.
    fn come_back(&self, op: &'static str) -> Result<()> {
        let Some(mut retried) = self.retried.try_lock() else { return Err(self.still_full(op)) };
        if !self.full.load(Ordering::Acquire) {
            return Ok(());
        }
        let needed = self.profile.log_bytes + self.profile.memtable_bytes as u64;
        let room = Gauge::new(&self.dir, needed)?.statfs()?.available;
        if retried.elapsed() < RETRY_EVERY || room == 0 {
            return Err(self.still_full(op));
        }
        *retried = Instant::now();
        let mut db = self.db.write();
        *db = None;
        match DB::open(&options(self.profile)?, &self.dir) {
            Ok(opened) => {
                *db = Some(opened);
                self.full.store(false, Ordering::Release);
                tracing::info!(store = %self.dir.display(), "space again, writes go on");
                Ok(())
            }
            Err(error) => Err(self.refuse(fail(op, &self.dir, &error))),
        }
    }
}

/// The database, kept open as long as this lives.
struct Db<'a>(RwLockReadGuard<'a, Option<DB>>);

impl std::ops::Deref for Db<'_> {
    type Target = DB;

    fn deref(&self) -> &DB {
        self.0.as_ref().expect("checked when made, and the lock is held")
    }
}

fn native_batch(batch: &Batch) -> WriteBatch {
    let mut native = WriteBatch::with_capacity_bytes(batch.as_bytes().len() + 64);
    for op in batch.iter() {
        match op {
            Op::Put { key, value } => native.put(key, value),
            Op::Delete { key } => native.delete(key),
            Op::DeleteRange { from, until } if from < until => native.delete_range(from, until),
            Op::DeleteRange { .. } => {}
        }
    }
    native
}

impl Kv for RocksKv {
    fn get_with(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        match self.db("get")?.get_pinned(key) {
            Ok(Some(value)) => {
                read(&value);
                Ok(true)
            }
            Ok(None) => Ok(false),
            Err(error) => Err(fail("get", &self.dir, &error)),
        }
    }

    fn scan(&self, from: &[u8], until: &[u8], visit: &mut Visit<'_>) -> Result<()> {
        let mut read_options = ReadOptions::default();
        if !until.is_empty() {
            if until <= from {
                return Ok(());
            }
            read_options.set_iterate_upper_bound(until);
        }
        let db = self.db("scan")?;
        let mut cursor = db.raw_iterator_opt(read_options);
        cursor.seek(from);
        while let Some((key, value)) = cursor.item() {
            if visit(key, value).is_break() {
                return Ok(());
            }
            cursor.next();
        }
        cursor.status().map_err(|error| fail("scan", &self.dir, &error))
    }

    fn write(&self, batch: &Batch) -> Result<u64> {
        self.admit("write batch")?;
        if self.full.load(Ordering::Acquire) {
            self.come_back("write batch")?;
        }
        let native = native_batch(batch);
        let db = self.db("write batch")?;
        match db.write_opt(native, &self.write_options) {
            Ok(()) => Ok(db.latest_sequence_number()),
            Err(error) => Err(self.refuse(fail("write batch", &self.dir, &error))),
        }
    }

    fn sync(&self) -> Result<u64> {
        self.admit("sync log")?;
        let wanted = self.db("sync log")?.latest_sequence_number();
        let mut logs = self.logs.lock();
        let done = self.synced.load(Ordering::Acquire);
        if done >= wanted && done > 0 {
            return Ok(done);
        }
        let covered = self.db("sync log")?.latest_sequence_number();
        logs.sync().map_err(|error| self.poison(error))?;
        self.synced.store(covered, Ordering::Release);
        Ok(covered)
    }

    fn checkpoint(&self, dir: &Path) -> Result<()> {
        let db = self.db("checkpoint")?;
        let copy = db.create_checkpoint(dir);
        copy.map_err(|error| fail("checkpoint", dir, &error))
    }

    fn verify(
        &self,
        from: &[u8],
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<VerifyReport> {
        // The copy shares the files, and its blocks are in no cache.
        let copy = Removed::new(self.dir.with_extension("verify"))?;
        self.checkpoint(&copy.0)?;
        let mut report = VerifyReport::default();
        match DB::open(&uncached_options(self.profile)?, &copy.0) {
            Ok(db) => {
                let walked = walk(&db, from, &mut report, progress);
                report.damaged.extend(walked.err().map(|error| error.to_string()));
            }
            Err(error) => report.damaged.push(error.to_string()),
        }
        Ok(report)
    }

    fn make_room(&self) {
        // A store that is out of service has nothing to give.
        if let Ok(db) = self.db("make room") {
            db.compact();
        }
    }

    fn stats(&self) -> KvStats {
        let poisoned = self.poisoned.load(Ordering::Acquire);
        let Ok(db) = self.db("stats") else { return KvStats { poisoned, ..KvStats::default() } };
        let number = |name: &str| db.property_int_value(name).unwrap_or_default();
        KvStats {
            keys: number("rocksdb.estimate-num-keys"),
            disk_bytes: number("rocksdb.total-sst-files-size"),
            memtable_bytes: number("rocksdb.cur-size-all-mem-tables"),
            cache_bytes: number("rocksdb.block-cache-usage"),
            written_lsn: db.latest_sequence_number(),
            synced_lsn: self.synced.load(Ordering::Acquire),
            poisoned,
        }
    }
}

/// Reads everything from `from` on and counts it.
fn walk(
    db: &DB,
    from: &[u8],
    report: &mut VerifyReport,
    progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> std::result::Result<(), weft_rocksdb::Error> {
    let mut cursor = db.raw_iterator_opt(ReadOptions::default());
    cursor.seek(from);
    while let Some((key, value)) = cursor.item() {
        report.keys += 1;
        report.bytes += (key.len() + value.len()) as u64;
        if report.keys.is_multiple_of(4096) && progress(report.bytes).is_break() {
            report.next = Some([key, &[0]].concat());
            break;
        }
        cursor.next();
    }
    cursor.status()
}

/// A directory that is removed at the end, and first if an earlier end did not come to it.
struct Removed(PathBuf);

impl Removed {
    fn new(path: PathBuf) -> Result<Removed> {
        match std::fs::remove_dir_all(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(files::fail("remove", &path, &error))
            }
            _ => Ok(Removed(path)),
        }
    }
}

impl Drop for Removed {
    fn drop(&mut self) {
        // What stays is removed by the next one, and by a format.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
