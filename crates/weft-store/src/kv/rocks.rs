//! The store on disk: one RocksDB with one column family per target.
//!
//! Batches go to the log with a plain `write()` (they survive `kill -9` in the page cache); a sync
//! from another thread is one `fdatasync` of the log and covers everything written so far. A disk
//! that is full fails writes and nothing else: RocksDB looks at the free space every 5 s and takes
//! writes again once a memtable fits.

use super::{Batch, Kv, KvStats, Op, VerifyReport};
use parking_lot::Mutex;
use rocksdb::{
    BlockBasedOptions, Cache, DB, DBCompressionType, DBRecoveryMode, Env, Options, ReadOptions,
    WriteBatch, WriteOptions, checkpoint::Checkpoint,
};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use weft_model::{ErrorKind, FsError, Result};

/// Memory and log sizes of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Bytes gathered in memory before they are written out sorted.
    pub memtable_bytes: usize,
    /// Bytes of log that a restart may have to replay (about 1 s per 100 MiB).
    pub log_bytes: u64,
}

impl Profile {
    /// For inodes and directory entries.
    pub const METADATA: Profile = Profile { memtable_bytes: 64 << 20, log_bytes: 64 << 20 };
    /// For the manager's book and the small state of an OST.
    pub const SMALL: Profile = Profile { memtable_bytes: 8 << 20, log_bytes: 16 << 20 };
}

/// What all stores of a process share: threads, and the cache of uncompressed blocks.
struct Shared {
    env: Env,
    cache: Cache,
}

const DEFAULT_CACHE_BYTES: usize = 256 << 20;

fn shared() -> Result<&'static Shared> {
    static SHARED: OnceLock<Shared> = OnceLock::new();
    if let Some(shared) = SHARED.get() {
        return Ok(shared);
    }
    let env = Env::new().map_err(|e| fail("start RocksDB", Path::new(""), &e))?;
    Ok(SHARED.get_or_init(|| Shared { env, cache: Cache::new_lru_cache(DEFAULT_CACHE_BYTES) }))
}

/// A [`Kv`] on disk.
pub struct RocksKv {
    db: DB,
    dir: PathBuf,
    write_options: WriteOptions,
    /// The last write failed for lack of space.
    full: AtomicBool,
    poisoned: AtomicBool,
    synced: AtomicU64,
    /// Held during the log's `fdatasync`: whoever waits for it may find its own work done.
    syncing: Mutex<()>,
}

impl RocksKv {
    /// Makes a new store in `dir`, which must not hold one.
    ///
    /// # Errors
    /// `Exists`, or what the disk says.
    pub fn create(dir: &Path, profile: Profile) -> Result<RocksKv> {
        let mut options = options(profile)?;
        options.create_if_missing(true);
        options.set_error_if_exists(true);
        if dir.join("CURRENT").exists() {
            return Err(FsError::new(ErrorKind::Exists, "create key-value store").on(named(dir)));
        }
        RocksKv::start(&options, dir, "create key-value store")
    }

    /// Opens the store in `dir`, replaying its log.
    ///
    /// # Errors
    /// `Corrupt` or `Checksum` (naming the file) when it is damaged or no store; `Busy` when it
    /// is open already; `NoSpace` when not even the replayed log fits the disk.
    pub fn open(dir: &Path, profile: Profile) -> Result<RocksKv> {
        RocksKv::start(&options(profile)?, dir, "open key-value store")
    }

    fn start(options: &Options, dir: &Path, op: &'static str) -> Result<RocksKv> {
        let db = DB::open(options, dir).map_err(|e| fail(op, dir, &e))?;
        let mut write_options = WriteOptions::new();
        write_options.set_sync(false);
        let kv = RocksKv {
            db,
            dir: dir.to_path_buf(),
            write_options,
            full: AtomicBool::new(false),
            poisoned: AtomicBool::new(false),
            synced: AtomicU64::new(0),
            syncing: Mutex::new(()),
        };
        kv.sync()?;
        Ok(kv)
    }

    fn admit(&self, op: &'static str) -> Result<()> {
        if self.poisoned.load(Ordering::Acquire) {
            return Err(FsError::new(ErrorKind::Poisoned, op)
                .on(named(&self.dir))
                .because("an earlier write or sync failed; check the disk, then restart the target"));
        }
        Ok(())
    }

    /// Turns a failed write or sync into its error, and takes the store out of service unless
    /// the disk is merely full.
    fn refuse(&self, op: &'static str, error: &rocksdb::Error) -> FsError {
        let error = fail(op, &self.dir, error);
        if error.kind == ErrorKind::NoSpace {
            self.full.store(true, Ordering::Release);
        } else if !self.poisoned.swap(true, Ordering::AcqRel) {
            tracing::error!(%error, "key-value store takes no more writes");
        }
        error
    }
}

fn options(profile: Profile) -> Result<Options> {
    let shared = shared()?;
    let mut table = BlockBasedOptions::default();
    table.set_block_cache(&shared.cache);
    table.set_bloom_filter(10.0, false);
    table.set_whole_key_filtering(true);
    table.set_cache_index_and_filter_blocks(true);
    table.set_pin_l0_filter_and_index_blocks_in_cache(true);

    let mut options = Options::default();
    options.set_env(&shared.env);
    options.set_max_background_jobs(4);
    options.set_block_based_table_factory(&table);
    options.set_compression_type(DBCompressionType::Lz4);
    options.set_level_compaction_dynamic_level_bytes(true);
    options.set_write_buffer_size(profile.memtable_bytes);
    options.set_memtable_prefix_bloom_ratio(0.02);
    options.set_memtable_whole_key_filtering(true);
    options.set_max_total_wal_size(profile.log_bytes);
    options.set_recycle_log_file_num(0);
    options.set_wal_recovery_mode(DBRecoveryMode::TolerateCorruptedTailRecords);
    options.set_paranoid_checks(true);
    options.set_bytes_per_sync(1 << 20);
    options.set_keep_log_file_num(2);
    options.set_max_log_file_size(4 << 20);
    options.set_stats_dump_period_sec(0);
    options.set_stats_persist_period_sec(0);
    Ok(options)
}

fn named(dir: &Path) -> String {
    format!("store={}", dir.display())
}

/// Sorts RocksDB's errors into ours. Its messages name the damaged file.
fn fail(op: &'static str, dir: &Path, error: &rocksdb::Error) -> FsError {
    let text: &str = error.as_ref();
    let kind = match error.kind() {
        rocksdb::ErrorKind::Corruption if text.contains("checksum") => ErrorKind::Checksum,
        rocksdb::ErrorKind::Corruption => ErrorKind::Corrupt,
        rocksdb::ErrorKind::InvalidArgument => ErrorKind::Corrupt,
        _ if text.contains("No space left on device") => ErrorKind::NoSpace,
        rocksdb::ErrorKind::IOError if text.contains("lock hold by") => ErrorKind::Busy,
        rocksdb::ErrorKind::IOError if text.contains("/LOCK") => ErrorKind::Busy,
        _ => ErrorKind::Io,
    };
    FsError::new(kind, op).on(named(dir)).because(text)
}

impl Kv for RocksKv {
    fn get_with(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        match self.db.get_pinned(key) {
            Ok(Some(value)) => {
                read(&value);
                Ok(true)
            }
            Ok(None) => Ok(false),
            Err(error) => Err(fail("get", &self.dir, &error)),
        }
    }

    fn scan(
        &self,
        from: &[u8],
        until: &[u8],
        visit: &mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut read_options = ReadOptions::default();
        if !until.is_empty() {
            if until <= from {
                return Ok(());
            }
            read_options.set_iterate_upper_bound(until);
        }
        let mut cursor = self.db.raw_iterator_opt(read_options);
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
        let mut native = WriteBatch::with_capacity_bytes(batch.as_bytes().len() + 64);
        for op in batch.iter() {
            match op {
                Op::Put { key, value } => native.put(key, value),
                Op::Delete { key } => native.delete(key),
                Op::DeleteRange { from, until } if from < until => native.delete_range(from, until),
                Op::DeleteRange { .. } => {}
            }
        }
        match self.db.write_opt(native, &self.write_options) {
            Ok(()) => {
                if self.full.load(Ordering::Relaxed) {
                    self.full.store(false, Ordering::Release);
                }
                Ok(self.db.latest_sequence_number())
            }
            Err(error) => Err(self.refuse("write batch", &error)),
        }
    }

    fn sync(&self) -> Result<u64> {
        self.admit("sync log")?;
        let wanted = self.db.latest_sequence_number();
        let _turn = self.syncing.lock();
        let done = self.synced.load(Ordering::Acquire);
        if done >= wanted && done > 0 {
            return Ok(done);
        }
        let covered = self.db.latest_sequence_number();
        match self.db.flush_wal(true) {
            Ok(()) => {
                self.synced.store(covered, Ordering::Release);
                Ok(covered)
            }
            // The log that could not be extended takes no sync either; RocksDB writes the
            // memtable out instead before it takes writes again.
            Err(error) if self.full.load(Ordering::Acquire) => {
                Err(FsError { kind: ErrorKind::NoSpace, ..fail("sync log", &self.dir, &error) })
            }
            Err(error) => Err(self.refuse("sync log", &error)),
        }
    }

    fn checkpoint(&self, dir: &Path) -> Result<()> {
        let copy = Checkpoint::new(&self.db).and_then(|c| c.create_checkpoint(dir));
        copy.map_err(|error| fail("checkpoint", dir, &error))
    }

    fn verify(&self, progress: &mut dyn FnMut(u64) -> ControlFlow<()>) -> Result<VerifyReport> {
        let files = self.db.live_files().map_err(|e| fail("list files", &self.dir, &e))?;
        let mut report = VerifyReport {
            bytes: files.iter().map(|file| file.size as u64).sum(),
            ..VerifyReport::default()
        };
        if let Err(message) = native::verify_checksum(&self.db) {
            report.damaged.push(message);
            return Ok(report);
        }
        let mut done = 0;
        let walk = self.scan(&[], &[], &mut |key, value| {
            report.keys += 1;
            done += (key.len() + value.len()) as u64;
            if report.keys.is_multiple_of(4096) { progress(done) } else { ControlFlow::Continue(()) }
        });
        report.damaged.extend(walk.err().map(|error| error.to_string()));
        Ok(report)
    }

    fn stats(&self) -> KvStats {
        let number =
            |name: &str| self.db.property_int_value(name).ok().flatten().unwrap_or_default();
        KvStats {
            keys: number("rocksdb.estimate-num-keys"),
            disk_bytes: number("rocksdb.total-sst-files-size"),
            memtable_bytes: number("rocksdb.cur-size-all-mem-tables"),
            cache_bytes: number("rocksdb.block-cache-usage"),
            written_lsn: self.db.latest_sequence_number(),
            synced_lsn: self.synced.load(Ordering::Acquire),
            poisoned: self.poisoned.load(Ordering::Acquire),
        }
    }
}

/// The one call that the Rust crate does not wrap.
mod native {
    #![allow(unsafe_code)]

    use librocksdb_sys as ffi;
    use rocksdb::{AsRawPtr, DB};
    use std::ffi::{CStr, c_char, c_void};

    /// Reads every block of every sorted file from disk and checks it; the error names the first
    /// damaged file.
    pub fn verify_checksum(db: &DB) -> Result<(), String> {
        let mut error: *mut c_char = std::ptr::null_mut();
        // SAFETY: the database is open for the time of the call; the options are ours and freed
        // once; on failure RocksDB hands over a NUL-terminated string of its own allocation.
        unsafe {
            let options = ffi::rocksdb_readoptions_create();
            ffi::rocksdb_verify_checksum(db.as_raw_ptr(), options, &mut error);
            ffi::rocksdb_readoptions_destroy(options);
            if error.is_null() {
                return Ok(());
            }
            let message = CStr::from_ptr(error).to_string_lossy().into_owned();
            ffi::rocksdb_free(error.cast::<c_void>());
            Err(message)
        }
    }
}
