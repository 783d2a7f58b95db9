//! How RocksDB is set up, what all stores of the process share, and what its errors mean here.

use std::path::Path;
use std::sync::OnceLock;
use weft_model::{ErrorKind, FsError, Result};
use weft_rocksdb::{BlockBasedOptions, Cache, DBCompressionType, DBRecoveryMode, Env, Options};

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

/// Threads, and the cache of uncompressed blocks.
struct Shared {
    env: Env,
    cache: Cache,
}

/// Level of the info log's first lines, written at opening, and of nothing else.
const HEADERS_ONLY: i32 = 5;
const CACHE_BYTES: usize = 256 << 20;

fn shared() -> Result<&'static Shared> {
    static SHARED: OnceLock<Shared> = OnceLock::new();
    if let Some(shared) = SHARED.get() {
        return Ok(shared);
    }
    let env = Env::new().map_err(|error| fail("start RocksDB", Path::new(""), &error))?;
    Ok(SHARED.get_or_init(|| Shared { env, cache: Cache::new_lru_cache(CACHE_BYTES) }))
}

/// Options of a store that exists.
pub fn options(profile: Profile) -> Result<Options> {
    options_with(profile, &shared()?.cache)
}

/// The same with a small cache of its own: what is read comes from the disk.
pub fn uncached_options(profile: Profile) -> Result<Options> {
    options_with(profile, &Cache::new_lru_cache(1 << 20))
}

fn options_with(profile: Profile, cache: &Cache) -> Result<Options> {
    let shared = shared()?;
    let mut table = BlockBasedOptions::default();
    table.set_block_cache(cache);
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
    // Almost no info log: a RocksDB with assertions (Debian's) aborts the process when it cannot
    // write it because the disk is full. Errors come back from the calls anyway.
    options.set_info_log_level(HEADERS_ONLY);
    options.set_keep_log_file_num(1);
    options.set_stats_dump_period_sec(0);
    options.set_stats_persist_period_sec(0);
    Ok(options)
}

/// Sorts RocksDB's errors into ours. Its messages name the damaged file.
pub fn fail(op: &'static str, dir: &Path, error: &weft_rocksdb::Error) -> FsError {
    let text: &str = error.as_ref();
    let kind = match error.kind() {
        weft_rocksdb::ErrorKind::Corruption if text.contains("checksum") => ErrorKind::Checksum,
        weft_rocksdb::ErrorKind::Corruption => ErrorKind::Corrupt,
        weft_rocksdb::ErrorKind::InvalidArgument => ErrorKind::Corrupt,
        _ if text.contains("No space left on device") => ErrorKind::NoSpace,
        weft_rocksdb::ErrorKind::IOError if text.contains("/LOCK") => ErrorKind::Busy,
        weft_rocksdb::ErrorKind::IOError if text.contains("lock hold by") => ErrorKind::Busy,
        _ => ErrorKind::Io,
    };
    FsError::new(kind, op).on(named(dir)).because(text)
}

/// The store as errors name it.
pub fn named(dir: &Path) -> String {
    format!("store={}", dir.display())
}
