//! Options of a database and what databases share.

use crate::ffi;
use std::sync::Arc;

macro_rules! owned {
    ($(#[$doc:meta])* $name:ident, $raw:ident, $destroy:ident) => {
        $(#[$doc])*
        pub(crate) struct $name(pub(crate) *mut ffi::$raw);

        impl Drop for $name {
            fn drop(&mut self) {
                // SAFETY: the pointer came from RocksDB and nobody else frees it.
                unsafe { ffi::$destroy(self.0) }
            }
        }

        // SAFETY: RocksDB's objects of this kind are not bound to a thread, and the calls made on
        // shared ones synchronise themselves.
        unsafe impl Send for $name {}
        // SAFETY: as above.
        unsafe impl Sync for $name {}
    };
}

owned!(OwnedCache, rocksdb_cache_t, rocksdb_cache_destroy);
owned!(OwnedEnv, rocksdb_env_t, rocksdb_env_destroy);

/// A cache of blocks that several databases share.
#[derive(Clone)]
pub struct Cache(pub(crate) Arc<OwnedCache>);

impl Cache {
    /// A least-recently-used cache of `bytes`.
    pub fn new_lru_cache(bytes: usize) -> Cache {
        // SAFETY: no preconditions.
        Cache(Arc::new(OwnedCache(unsafe { ffi::rocksdb_cache_create_lru(bytes) })))
    }
}

/// Background threads that several databases share.
#[derive(Clone)]
pub struct Env(pub(crate) Arc<OwnedEnv>);

impl Env {
    /// The process-wide environment.
    ///
    /// # Errors
    /// None today; kept so that callers do not change when there are some.
    pub fn new() -> Result<Env, crate::Error> {
        // SAFETY: no preconditions.
        Ok(Env(Arc::new(OwnedEnv(unsafe { ffi::rocksdb_create_default_env() }))))
    }
}

/// Compression of blocks. The numbers are RocksDB's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DBCompressionType {
    /// None.
    None = 0,
    /// LZ4.
    Lz4 = 4,
}

/// What to do about damage in the log at opening. The numbers are RocksDB's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DBRecoveryMode {
    /// A record cut off at the end is forgotten; damage before it is an error.
    TolerateCorruptedTailRecords = 0,
    /// Any damage is an error.
    AbsoluteConsistency = 1,
}

/// Options of sorted files.
pub struct BlockBasedOptions {
    pub(crate) raw: *mut ffi::rocksdb_block_based_table_options_t,
    cache: Option<Cache>,
}

impl Default for BlockBasedOptions {
    fn default() -> BlockBasedOptions {
        // SAFETY: no preconditions.
        BlockBasedOptions { raw: unsafe { ffi::rocksdb_block_based_options_create() }, cache: None }
    }
}

impl Drop for BlockBasedOptions {
    fn drop(&mut self) {
        // SAFETY: owned by this value.
        unsafe { ffi::rocksdb_block_based_options_destroy(self.raw) }
    }
}

impl BlockBasedOptions {
    /// The cache for uncompressed blocks.
    pub fn set_block_cache(&mut self, cache: &Cache) {
        // SAFETY: both are alive; the cache is kept with the options.
        unsafe { ffi::rocksdb_block_based_options_set_block_cache(self.raw, cache.0.0) }
        self.cache = Some(cache.clone());
    }

    /// A bloom filter over whole keys; the second argument is ignored (block-based filters are gone).
    pub fn set_bloom_filter(&mut self, bits_per_key: f64, _block_based: bool) {
        // SAFETY: the options take ownership of the policy.
        unsafe {
            let policy = ffi::rocksdb_filterpolicy_create_bloom_full(bits_per_key);
            ffi::rocksdb_block_based_options_set_filter_policy(self.raw, policy);
        }
    }

    /// Whether the filter holds whole keys.
    pub fn set_whole_key_filtering(&mut self, on: bool) {
        // SAFETY: the options are alive. (So for all setters here.)
        unsafe { ffi::rocksdb_block_based_options_set_whole_key_filtering(self.raw, on.into()) }
    }

    /// Whether index and filter count in the cache.
    pub fn set_cache_index_and_filter_blocks(&mut self, on: bool) {
        // SAFETY: as above.
        unsafe {
            ffi::rocksdb_block_based_options_set_cache_index_and_filter_blocks(self.raw, on.into())
        }
    }

    /// Whether those of the newest files stay in the cache.
    pub fn set_pin_l0_filter_and_index_blocks_in_cache(&mut self, on: bool) {
        // SAFETY: as above.
        unsafe {
            ffi::rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache(
                self.raw,
                on.into(),
            );
        }
    }

    /// Version of the file format that is written.
    pub fn set_format_version(&mut self, version: i32) {
        // SAFETY: as above.
        unsafe { ffi::rocksdb_block_based_options_set_format_version(self.raw, version) }
    }
}

/// Options of a database.
pub struct Options {
    pub(crate) raw: *mut ffi::rocksdb_options_t,
    pub(crate) shared: (Option<Cache>, Option<Env>),
}

impl Default for Options {
    fn default() -> Options {
        // SAFETY: no preconditions.
        Options { raw: unsafe { ffi::rocksdb_options_create() }, shared: (None, None) }
    }
}

impl Drop for Options {
    fn drop(&mut self) {
        // SAFETY: owned by this value.
        unsafe { ffi::rocksdb_options_destroy(self.raw) }
    }
}

macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident($type:ty) => $ffi:ident;)*) => {
        impl Options { $(
            $(#[$doc])*
            pub fn $name(&mut self, value: $type) {
                // SAFETY: the options are alive and the value is plain.
                unsafe { ffi::$ffi(self.raw, value.into()) }
            }
        )* }
    };
}

setters! {
    /// Make the database if there is none.
    create_if_missing(bool) => rocksdb_options_set_create_if_missing;
    /// Fail if there is one.
    set_error_if_exists(bool) => rocksdb_options_set_error_if_exists;
    /// Check more than is needed.
    set_paranoid_checks(bool) => rocksdb_options_set_paranoid_checks;
    /// Bytes of a memtable.
    set_write_buffer_size(usize) => rocksdb_options_set_write_buffer_size;
    /// Bytes of log before memtables are written out.
    set_max_total_wal_size(u64) => rocksdb_options_set_max_total_wal_size;
    /// Size levels from the last one up.
    set_level_compaction_dynamic_level_bytes(bool) => rocksdb_options_set_level_compaction_dynamic_level_bytes;
    /// Background flushes and compactions at a time.
    set_max_background_jobs(i32) => rocksdb_options_set_max_background_jobs;
    /// Bytes of an info log file.
    set_max_log_file_size(usize) => rocksdb_options_set_max_log_file_size;
    /// Least level of messages in the info log: 0 all, 3 errors, 5 only the first lines.
    set_info_log_level(i32) => rocksdb_options_set_info_log_level;
    /// Info log files kept.
    set_keep_log_file_num(usize) => rocksdb_options_set_keep_log_file_num;
    /// Log files used again; 0 for none.
    set_recycle_log_file_num(usize) => rocksdb_options_set_recycle_log_file_num;
    /// Seconds between statistics in the info log; 0 for never.
    set_stats_dump_period_sec(u32) => rocksdb_options_set_stats_dump_period_sec;
    /// Seconds between statistics kept; 0 for never.
    set_stats_persist_period_sec(u32) => rocksdb_options_set_stats_persist_period_sec;
    /// Bytes of a sorted file written between calls of `sync_file_range`.
    set_bytes_per_sync(u64) => rocksdb_options_set_bytes_per_sync;
    /// Share of a memtable for its bloom filter.
    set_memtable_prefix_bloom_ratio(f64) => rocksdb_options_set_memtable_prefix_bloom_size_ratio;
    /// Whether that filter holds whole keys.
    set_memtable_whole_key_filtering(bool) => rocksdb_options_set_memtable_whole_key_filtering;
}

impl Options {
    /// Background threads to use.
    pub fn set_env(&mut self, env: &Env) {
        // SAFETY: both are alive; the environment is kept with the options and the database.
        unsafe { ffi::rocksdb_options_set_env(self.raw, env.0.0) }
        self.shared.1 = Some(env.clone());
    }

    /// Options of sorted files.
    pub fn set_block_based_table_factory(&mut self, table: &BlockBasedOptions) {
        // SAFETY: RocksDB copies the table's options.
        unsafe { ffi::rocksdb_options_set_block_based_table_factory(self.raw, table.raw) }
        self.shared.0 = table.cache.clone();
    }

    /// Compression of blocks.
    pub fn set_compression_type(&mut self, kind: DBCompressionType) {
        // SAFETY: the options are alive.
        unsafe { ffi::rocksdb_options_set_compression(self.raw, kind as i32) }
    }

    /// What to do about damage in the log.
    pub fn set_wal_recovery_mode(&mut self, mode: DBRecoveryMode) {
        // SAFETY: the options are alive.
        unsafe { ffi::rocksdb_options_set_wal_recovery_mode(self.raw, mode as i32) }
    }
}
