//! A database, batches, iterators.

use crate::error::{Error, check};
use crate::ffi;
use crate::options::{Cache, Env, Options};
use std::ffi::CString;
use std::marker::PhantomData;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

fn c_path(path: &Path) -> Result<CString, Error> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| Error::new("Invalid argument: the path contains a NUL byte"))
}

/// An open database. Calls from any thread.
pub struct DB {
    raw: *mut ffi::rocksdb_t,
    read_options: ReadOptions,
    /// What the database refers to lives as long as it does.
    _shared: (Option<Cache>, Option<Env>),
}

// SAFETY: a RocksDB database may be used from any thread, and from several at once.
unsafe impl Send for DB {}
// SAFETY: as above.
unsafe impl Sync for DB {}

impl Drop for DB {
    fn drop(&mut self) {
        // SAFETY: opened by `open`; iterators and slices borrow this value, so none is left.
        unsafe { ffi::rocksdb_close(self.raw) }
    }
}

impl DB {
    /// Opens the database in `path`.
    ///
    /// # Errors
    /// RocksDB's message.
    pub fn open(options: &Options, path: &Path) -> Result<DB, Error> {
        let name = c_path(path)?;
        // SAFETY: options and name live during the call.
        let raw = check(|err| unsafe { ffi::rocksdb_open(options.raw, name.as_ptr(), err) })?;
        Ok(DB { raw, read_options: ReadOptions::default(), _shared: options.shared.clone() })
    }

    /// The value of a key, without copying it.
    ///
    /// # Errors
    /// RocksDB's message.
    pub fn get_pinned(&self, key: &[u8]) -> Result<Option<DBPinnableSlice<'_>>, Error> {
        // SAFETY: the key lives during the call.
        let raw = check(|err| unsafe {
            let options = self.read_options.raw;
            ffi::rocksdb_get_pinned(self.raw, options, key.as_ptr().cast(), key.len(), err)
        })?;
        Ok((!raw.is_null()).then_some(DBPinnableSlice { raw, _db: PhantomData }))
    }

    /// An iterator.
    pub fn raw_iterator_opt(&self, options: ReadOptions) -> DBRawIterator<'_> {
        // SAFETY: the options are kept with the iterator, which borrows the database.
        let raw = unsafe { ffi::rocksdb_create_iterator(self.raw, options.raw) };
        DBRawIterator { raw, _options: options, _db: PhantomData }
    }

    /// Carries out a batch.
    ///
    /// # Errors
    /// RocksDB's message; nothing was carried out then.
    pub fn write_opt(&self, batch: WriteBatch, options: &WriteOptions) -> Result<(), Error> {
        // SAFETY: all three live during the call.
        check(|err| unsafe { ffi::rocksdb_write(self.raw, options.raw, batch.raw, err) })
    }

    /// Hands the log to the system, and with `sync` to stable storage.
    ///
    /// # Errors
    /// RocksDB's message.
    pub fn flush_wal(&self, sync: bool) -> Result<(), Error> {
        // SAFETY: the database is open.
        check(|err| unsafe { ffi::rocksdb_flush_wal(self.raw, sync.into(), err) })
    }

    /// Number of the last write.
    pub fn latest_sequence_number(&self) -> u64 {
        // SAFETY: the database is open.
        unsafe { ffi::rocksdb_get_latest_sequence_number(self.raw) }
    }

    /// Rewrites everything, so that what was deleted is gone from the disk. What prevents that shows in
    /// the next write.
    pub fn compact(&self) {
        // SAFETY: null keys of no length stand for the first and the last one.
        unsafe { ffi::rocksdb_compact_range(self.raw, ptr::null(), 0, ptr::null(), 0) }
    }

    /// A numeric property.
    pub fn property_int_value(&self, name: &str) -> Option<u64> {
        let name = CString::new(name).ok()?;
        let mut value = 0;
        // SAFETY: name and value live during the call.
        let missing = unsafe { ffi::rocksdb_property_int(self.raw, name.as_ptr(), &raw mut value) };
        (missing == 0).then_some(value)
    }

    /// Bytes of all sorted files.
    pub fn live_bytes(&self) -> u64 {
        // SAFETY: the list is ours until destroyed, and every index is below its count.
        unsafe {
            let files = ffi::rocksdb_livefiles(self.raw);
            let count = ffi::rocksdb_livefiles_count(files);
            let bytes = (0..count).map(|i| ffi::rocksdb_livefiles_size(files, i) as u64).sum();
            ffi::rocksdb_livefiles_destroy(files);
            bytes
        }
    }

    /// Makes a consistent copy in the new directory `dir`.
    ///
    /// # Errors
    /// RocksDB's message.
    pub fn create_checkpoint(&self, dir: &Path) -> Result<(), Error> {
        let dir = c_path(dir)?;
        // SAFETY: the checkpoint object is destroyed before the database can be.
        unsafe {
            let checkpoint = check(|err| ffi::rocksdb_checkpoint_object_create(self.raw, err))?;
            let made =
                check(|err| ffi::rocksdb_checkpoint_create(checkpoint, dir.as_ptr(), 0, err));
            ffi::rocksdb_checkpoint_object_destroy(checkpoint);
            made
        }
    }
}

/// A value inside the database's memory.
pub struct DBPinnableSlice<'a> {
    raw: *mut ffi::rocksdb_pinnableslice_t,
    _db: PhantomData<&'a DB>,
}

impl std::ops::Deref for DBPinnableSlice<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let mut len = 0;
        // SAFETY: the slice pins `len` bytes at the pointer until it is destroyed.
        unsafe {
            let start = ffi::rocksdb_pinnableslice_value(self.raw, &raw mut len);
            bytes(start.cast(), len)
        }
    }
}

impl Drop for DBPinnableSlice<'_> {
    fn drop(&mut self) {
        // SAFETY: owned by this value.
        unsafe { ffi::rocksdb_pinnableslice_destroy(self.raw) }
    }
}

/// Bytes of RocksDB's; an empty value may have no address.
///
/// # Safety
/// `start` must point to `len` bytes that live for `'a`.
unsafe fn bytes<'a>(start: *const u8, len: usize) -> &'a [u8] {
    if len == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(start, len) }
}

/// Options of reading.
pub struct ReadOptions {
    raw: *mut ffi::rocksdb_readoptions_t,
    upper_bound: Vec<u8>,
}

// SAFETY: plain data behind a pointer that only this value owns; shared use is read-only.
unsafe impl Send for ReadOptions {}
// SAFETY: as above.
unsafe impl Sync for ReadOptions {}

impl Default for ReadOptions {
    fn default() -> ReadOptions {
        // SAFETY: no preconditions.
        ReadOptions { raw: unsafe { ffi::rocksdb_readoptions_create() }, upper_bound: Vec::new() }
    }
}

impl Drop for ReadOptions {
    fn drop(&mut self) {
        // SAFETY: owned by this value.
        unsafe { ffi::rocksdb_readoptions_destroy(self.raw) }
    }
}

impl ReadOptions {
    /// First key that an iterator does not show.
    pub fn set_iterate_upper_bound(&mut self, key: &[u8]) {
        self.upper_bound = key.to_vec();
        let (start, len) = (self.upper_bound.as_ptr().cast(), self.upper_bound.len());
        // SAFETY: RocksDB keeps the pointer; the vector lives with the options and is not changed.
        unsafe { ffi::rocksdb_readoptions_set_iterate_upper_bound(self.raw, start, len) }
    }

    /// Whether blocks that are read go into the cache.
    pub fn set_fill_cache(&mut self, on: bool) {
        // SAFETY: the options are alive.
        unsafe { ffi::rocksdb_readoptions_set_fill_cache(self.raw, on.into()) }
    }
}

/// A position among the keys of one instant.
pub struct DBRawIterator<'a> {
    raw: *mut ffi::rocksdb_iterator_t,
    _options: ReadOptions,
    _db: PhantomData<&'a DB>,
}

impl Drop for DBRawIterator<'_> {
    fn drop(&mut self) {
        // SAFETY: owned by this value.
        unsafe { ffi::rocksdb_iter_destroy(self.raw) }
    }
}

impl DBRawIterator<'_> {
    /// Goes to the first key at or after `key`.
    pub fn seek(&mut self, key: &[u8]) {
        // SAFETY: the key lives during the call.
        unsafe { ffi::rocksdb_iter_seek(self.raw, key.as_ptr().cast(), key.len()) }
    }

    /// Goes to the next key. The position must be valid.
    pub fn next(&mut self) {
        // SAFETY: the iterator is alive; RocksDB's own assertion guards the position.
        unsafe { ffi::rocksdb_iter_next(self.raw) }
    }

    /// Key and value here; none at the end or after an error.
    pub fn item(&self) -> Option<(&[u8], &[u8])> {
        let (mut key_len, mut value_len) = (0, 0);
        // SAFETY: at a valid position both point to that many bytes until the iterator moves, which
        // needs it mutably.
        unsafe {
            if ffi::rocksdb_iter_valid(self.raw) == 0 {
                return None;
            }
            let key = ffi::rocksdb_iter_key(self.raw, &raw mut key_len);
            let value = ffi::rocksdb_iter_value(self.raw, &raw mut value_len);
            Some((bytes(key.cast(), key_len), bytes(value.cast(), value_len)))
        }
    }

    /// The error that ended the walk, if one did.
    ///
    /// # Errors
    /// RocksDB's message.
    pub fn status(&self) -> Result<(), Error> {
        // SAFETY: the iterator is alive.
        check(|err| unsafe { ffi::rocksdb_iter_get_error(self.raw, err) })
    }
}

/// Options of writing.
pub struct WriteOptions {
    raw: *mut ffi::rocksdb_writeoptions_t,
}

// SAFETY: plain data; shared use is read-only.
unsafe impl Send for WriteOptions {}
// SAFETY: as above.
unsafe impl Sync for WriteOptions {}

impl Default for WriteOptions {
    fn default() -> WriteOptions {
        WriteOptions::new()
    }
}

impl Drop for WriteOptions {
    fn drop(&mut self) {
        // SAFETY: owned by this value.
        unsafe { ffi::rocksdb_writeoptions_destroy(self.raw) }
    }
}

impl WriteOptions {
    /// The defaults.
    pub fn new() -> WriteOptions {
        // SAFETY: no preconditions.
        WriteOptions { raw: unsafe { ffi::rocksdb_writeoptions_create() } }
    }

    /// Whether a write ends only when it is on stable storage.
    pub fn set_sync(&mut self, on: bool) {
        // SAFETY: the options are alive.
        unsafe { ffi::rocksdb_writeoptions_set_sync(self.raw, on.into()) }
    }
}

/// Changes to be carried out together.
pub struct WriteBatch {
    raw: *mut ffi::rocksdb_writebatch_t,
}

impl Default for WriteBatch {
    fn default() -> WriteBatch {
        // SAFETY: no preconditions.
        WriteBatch { raw: unsafe { ffi::rocksdb_writebatch_create() } }
    }
}

impl Drop for WriteBatch {
    fn drop(&mut self) {
        // SAFETY: owned by this value.
        unsafe { ffi::rocksdb_writebatch_destroy(self.raw) }
    }
}

impl WriteBatch {
    /// An empty batch; the size is a hint that the C interface cannot pass on.
    pub fn with_capacity_bytes(_bytes: usize) -> WriteBatch {
        WriteBatch::default()
    }

    /// Sets a key.
    pub fn put(&mut self, key: &[u8], value: &[u8]) {
        // SAFETY: key and value live during the call, which copies them. (So for all of these.)
        unsafe {
            let (k, v) = (key.as_ptr().cast(), value.as_ptr().cast());
            ffi::rocksdb_writebatch_put(self.raw, k, key.len(), v, value.len());
        }
    }

    /// Removes a key.
    pub fn delete(&mut self, key: &[u8]) {
        // SAFETY: as above.
        unsafe { ffi::rocksdb_writebatch_delete(self.raw, key.as_ptr().cast(), key.len()) }
    }

    /// Removes the keys from `from` to before `until`.
    pub fn delete_range(&mut self, from: &[u8], until: &[u8]) {
        // SAFETY: as above.
        unsafe {
            let (f, u) = (from.as_ptr().cast(), until.as_ptr().cast());
            ffi::rocksdb_writebatch_delete_range(self.raw, f, from.len(), u, until.len());
        }
    }
}
