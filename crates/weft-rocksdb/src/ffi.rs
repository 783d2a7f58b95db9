//! Declarations from `rocksdb/c.h`. Only functions that are the same in 7.8 and 11.

#![allow(missing_docs)]

use libc::{c_char, c_double, c_int, c_uchar, c_uint, size_t};

macro_rules! opaque {
    ($($name:ident)*) => { $(
        #[repr(C)]
        pub struct $name { _private: [u8; 0] }
    )* };
}

opaque! {
    rocksdb_t rocksdb_options_t rocksdb_block_based_table_options_t rocksdb_cache_t rocksdb_env_t
    rocksdb_filterpolicy_t rocksdb_readoptions_t rocksdb_writeoptions_t rocksdb_writebatch_t
    rocksdb_iterator_t rocksdb_pinnableslice_t rocksdb_checkpoint_t rocksdb_livefiles_t
}

#[cfg_attr(not(feature = "bundled"), link(name = "rocksdb"))]
unsafe extern "C" {
    pub fn rocksdb_open(
        o: *const rocksdb_options_t,
        name: *const c_char,
        err: *mut *mut c_char,
    ) -> *mut rocksdb_t;
    pub fn rocksdb_close(db: *mut rocksdb_t);
    pub fn rocksdb_free(p: *mut libc::c_void);
    pub fn rocksdb_write(
        db: *mut rocksdb_t,
        o: *const rocksdb_writeoptions_t,
        b: *mut rocksdb_writebatch_t,
        err: *mut *mut c_char,
    );
    pub fn rocksdb_get_pinned(
        db: *mut rocksdb_t,
        o: *const rocksdb_readoptions_t,
        key: *const c_char,
        len: size_t,
        err: *mut *mut c_char,
    ) -> *mut rocksdb_pinnableslice_t;
    pub fn rocksdb_pinnableslice_value(
        s: *const rocksdb_pinnableslice_t,
        len: *mut size_t,
    ) -> *const c_char;
    pub fn rocksdb_pinnableslice_destroy(s: *mut rocksdb_pinnableslice_t);
    pub fn rocksdb_compact_range(
        db: *mut rocksdb_t,
        start: *const c_char,
        start_len: size_t,
        limit: *const c_char,
        limit_len: size_t,
    );
    pub fn rocksdb_flush_wal(db: *mut rocksdb_t, sync: c_uchar, err: *mut *mut c_char);
    pub fn rocksdb_get_latest_sequence_number(db: *mut rocksdb_t) -> u64;
    pub fn rocksdb_property_int(db: *mut rocksdb_t, name: *const c_char, out: *mut u64) -> c_int;

    pub fn rocksdb_create_iterator(
        db: *mut rocksdb_t,
        o: *const rocksdb_readoptions_t,
    ) -> *mut rocksdb_iterator_t;
    pub fn rocksdb_iter_destroy(i: *mut rocksdb_iterator_t);
    pub fn rocksdb_iter_valid(i: *const rocksdb_iterator_t) -> c_uchar;
    pub fn rocksdb_iter_seek(i: *mut rocksdb_iterator_t, key: *const c_char, len: size_t);
    pub fn rocksdb_iter_next(i: *mut rocksdb_iterator_t);
    pub fn rocksdb_iter_key(i: *const rocksdb_iterator_t, len: *mut size_t) -> *const c_char;
    pub fn rocksdb_iter_value(i: *const rocksdb_iterator_t, len: *mut size_t) -> *const c_char;
    pub fn rocksdb_iter_get_error(i: *const rocksdb_iterator_t, err: *mut *mut c_char);

    pub fn rocksdb_writebatch_create() -> *mut rocksdb_writebatch_t;
    pub fn rocksdb_writebatch_destroy(b: *mut rocksdb_writebatch_t);
    pub fn rocksdb_writebatch_put(
        b: *mut rocksdb_writebatch_t,
        k: *const c_char,
        kl: size_t,
        v: *const c_char,
        vl: size_t,
    );
    pub fn rocksdb_writebatch_delete(b: *mut rocksdb_writebatch_t, k: *const c_char, kl: size_t);
    pub fn rocksdb_writebatch_delete_range(
        b: *mut rocksdb_writebatch_t,
        s: *const c_char,
        sl: size_t,
        e: *const c_char,
        el: size_t,
    );

    pub fn rocksdb_checkpoint_object_create(
        db: *mut rocksdb_t,
        err: *mut *mut c_char,
    ) -> *mut rocksdb_checkpoint_t;
    pub fn rocksdb_checkpoint_create(
        c: *mut rocksdb_checkpoint_t,
        dir: *const c_char,
        log_size: u64,
        err: *mut *mut c_char,
    );
    pub fn rocksdb_checkpoint_object_destroy(c: *mut rocksdb_checkpoint_t);

    pub fn rocksdb_livefiles(db: *mut rocksdb_t) -> *const rocksdb_livefiles_t;
    pub fn rocksdb_livefiles_count(l: *const rocksdb_livefiles_t) -> c_int;
    pub fn rocksdb_livefiles_size(l: *const rocksdb_livefiles_t, index: c_int) -> size_t;
    pub fn rocksdb_livefiles_destroy(l: *const rocksdb_livefiles_t);

    pub fn rocksdb_readoptions_create() -> *mut rocksdb_readoptions_t;
    pub fn rocksdb_readoptions_destroy(o: *mut rocksdb_readoptions_t);
    pub fn rocksdb_readoptions_set_iterate_upper_bound(
        o: *mut rocksdb_readoptions_t,
        key: *const c_char,
        len: size_t,
    );
    pub fn rocksdb_readoptions_set_fill_cache(o: *mut rocksdb_readoptions_t, v: c_uchar);
    pub fn rocksdb_writeoptions_create() -> *mut rocksdb_writeoptions_t;
    pub fn rocksdb_writeoptions_destroy(o: *mut rocksdb_writeoptions_t);
    pub fn rocksdb_writeoptions_set_sync(o: *mut rocksdb_writeoptions_t, v: c_uchar);

    pub fn rocksdb_create_default_env() -> *mut rocksdb_env_t;
    pub fn rocksdb_env_destroy(e: *mut rocksdb_env_t);
    pub fn rocksdb_cache_create_lru(capacity: size_t) -> *mut rocksdb_cache_t;
    pub fn rocksdb_cache_destroy(c: *mut rocksdb_cache_t);
    pub fn rocksdb_filterpolicy_create_bloom_full(bits: c_double) -> *mut rocksdb_filterpolicy_t;

    pub fn rocksdb_block_based_options_create() -> *mut rocksdb_block_based_table_options_t;
    pub fn rocksdb_block_based_options_destroy(o: *mut rocksdb_block_based_table_options_t);
    pub fn rocksdb_block_based_options_set_block_cache(
        o: *mut rocksdb_block_based_table_options_t,
        c: *mut rocksdb_cache_t,
    );
    pub fn rocksdb_block_based_options_set_filter_policy(
        o: *mut rocksdb_block_based_table_options_t,
        p: *mut rocksdb_filterpolicy_t,
    );
    pub fn rocksdb_block_based_options_set_whole_key_filtering(
        o: *mut rocksdb_block_based_table_options_t,
        v: c_uchar,
    );
    pub fn rocksdb_block_based_options_set_cache_index_and_filter_blocks(
        o: *mut rocksdb_block_based_table_options_t,
        v: c_uchar,
    );
    pub fn rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache(
        o: *mut rocksdb_block_based_table_options_t,
        v: c_uchar,
    );
    pub fn rocksdb_block_based_options_set_format_version(
        o: *mut rocksdb_block_based_table_options_t,
        v: c_int,
    );

    pub fn rocksdb_options_create() -> *mut rocksdb_options_t;
    pub fn rocksdb_options_destroy(o: *mut rocksdb_options_t);
    pub fn rocksdb_options_set_block_based_table_factory(
        o: *mut rocksdb_options_t,
        t: *mut rocksdb_block_based_table_options_t,
    );
    pub fn rocksdb_options_set_env(o: *mut rocksdb_options_t, e: *mut rocksdb_env_t);
    pub fn rocksdb_options_set_create_if_missing(o: *mut rocksdb_options_t, v: c_uchar);
    pub fn rocksdb_options_set_error_if_exists(o: *mut rocksdb_options_t, v: c_uchar);
    pub fn rocksdb_options_set_paranoid_checks(o: *mut rocksdb_options_t, v: c_uchar);
    pub fn rocksdb_options_set_write_buffer_size(o: *mut rocksdb_options_t, v: size_t);
    pub fn rocksdb_options_set_max_total_wal_size(o: *mut rocksdb_options_t, v: u64);
    pub fn rocksdb_options_set_level_compaction_dynamic_level_bytes(
        o: *mut rocksdb_options_t,
        v: c_uchar,
    );
    pub fn rocksdb_options_set_max_background_jobs(o: *mut rocksdb_options_t, v: c_int);
    pub fn rocksdb_options_set_max_log_file_size(o: *mut rocksdb_options_t, v: size_t);
    pub fn rocksdb_options_set_info_log_level(o: *mut rocksdb_options_t, v: c_int);
    pub fn rocksdb_options_set_keep_log_file_num(o: *mut rocksdb_options_t, v: size_t);
    pub fn rocksdb_options_set_recycle_log_file_num(o: *mut rocksdb_options_t, v: size_t);
    pub fn rocksdb_options_set_stats_dump_period_sec(o: *mut rocksdb_options_t, v: c_uint);
    pub fn rocksdb_options_set_stats_persist_period_sec(o: *mut rocksdb_options_t, v: c_uint);
    pub fn rocksdb_options_set_bytes_per_sync(o: *mut rocksdb_options_t, v: u64);
    pub fn rocksdb_options_set_memtable_prefix_bloom_size_ratio(
        o: *mut rocksdb_options_t,
        v: c_double,
    );
    pub fn rocksdb_options_set_memtable_whole_key_filtering(o: *mut rocksdb_options_t, v: c_uchar);
    pub fn rocksdb_options_set_compression(o: *mut rocksdb_options_t, v: c_int);
    pub fn rocksdb_options_set_wal_recovery_mode(o: *mut rocksdb_options_t, v: c_int);
}
