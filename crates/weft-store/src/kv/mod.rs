//! The seam for small structured state: an ordered map of byte strings with atomic batches.
//!
//! Keys that start with the byte 0 belong to this crate (see [`RESERVED_PREFIX`]); servers start
//! theirs with something else.

mod batch;
mod mem;
mod rocks;

pub use batch::{Batch, Op};
pub use mem::MemKv;
pub use rocks::{Profile, RocksKv};

use std::ops::ControlFlow;
use std::path::Path;
use weft_model::Result;

/// First byte of the keys that `weft-store` keeps for itself.
pub const RESERVED_PREFIX: u8 = 0;

/// In the store of an MDT: power was lost, and so perhaps the end of the log, since somebody last took
/// this key out.
pub const POWER_LOST: [u8; 2] = [RESERVED_PREFIX, b'p'];

/// What [`Kv::scan`] calls with each key and value; it breaks to stop.
pub type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'a;

/// An ordered, transactional key-value store that one process has to itself.
///
/// All methods may be called from any thread. A write is visible to every later read.
///
/// # Errors
/// All methods: `Checksum` or `Corrupt` when stored data is damaged (the subject names the file),
/// `Io` for anything else the disk says. `write` and `sync` also: `NoSpace` while the disk is full
/// (clears by itself some seconds after space has returned), `Poisoned` from the first failed
/// write or sync until the store is opened again.
pub trait Kv: Send + Sync {
    /// Hands the value of `key` to `read` without copying it; false when there is none.
    ///
    /// `read` must not call the store.
    fn get_with(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool>;

    /// The value of `key`.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut value = None;
        self.get_with(key, &mut |bytes| value = Some(bytes.to_vec()))?;
        Ok(value)
    }

    /// Visits the pairs with `from <= key < until` in ascending order of bytes, until `visit`
    /// breaks. An empty `until` means the end of the store; [`prefix_end`] gives that of a prefix.
    ///
    /// The pairs are those of one instant. `visit` may read from the store but not write to it.
    fn scan(&self, from: &[u8], until: &[u8], visit: &mut Visit<'_>) -> Result<()>;

    /// Carries out all of `batch` or, on any error, nothing of it.
    ///
    /// Returns a log sequence number: not lower than that of any write that finished before, and
    /// durable once [`Kv::sync`] returned a number not below it. On return the batch is in the log
    /// in the page cache: it survives `kill -9`, and a power cut only after a sync.
    fn write(&self, batch: &Batch) -> Result<u64>;

    /// Puts everything written before on stable storage and returns the sequence number covered.
    ///
    /// Other threads may write meanwhile.
    fn sync(&self) -> Result<u64>;

    /// Gives the space of what was deleted back to the disk, as far as that has not happened by itself.
    /// Takes as long as it takes to rewrite the store; reads and writes go on meanwhile.
    fn make_room(&self) {}

    /// Makes a consistent copy in the new directory `dir` (its parent exists, it does not), by
    /// hard links where the file system allows. The copy can be opened as a store.
    fn checkpoint(&self, dir: &Path) -> Result<()>;

    /// Reads everything from the key `from` on from disk and checks it. `progress` gets the bytes done
    /// so far and stops the walk by breaking; the report tells where to go on.
    ///
    /// Damage is not an error of this method; it is in the report, and ends the walk.
    fn verify(
        &self,
        from: &[u8],
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<VerifyReport>;

    /// Sizes and state, for metrics. Cheap enough for once a second.
    fn stats(&self) -> KvStats;
}

/// What [`Kv::verify`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// Bytes of their keys and values.
    pub bytes: u64,
    /// Keys found.
    pub keys: u64,
    /// One message for each damage, naming the file; empty when all is well.
    pub damaged: Vec<String>,
    /// The key to go on from; none at the end.
    pub next: Option<Vec<u8>>,
}

/// Sizes and state of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KvStats {
    /// Number of keys, estimated.
    pub keys: u64,
    /// Bytes on disk in sorted files, without the log.
    pub disk_bytes: u64,
    /// Bytes in memory that are only in the log on disk.
    pub memtable_bytes: u64,
    /// Bytes in the block cache that all stores of the process share.
    pub cache_bytes: u64,
    /// Log sequence number of the last write.
    pub written_lsn: u64,
    /// Log sequence number of the last sync.
    pub synced_lsn: u64,
    /// No writes are taken any more: see [`weft_model::ErrorKind::Poisoned`].
    pub poisoned: bool,
}

/// End of the range of keys that start with `prefix`, for [`Kv::scan`]: empty when there is none.
pub fn prefix_end(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < 0xff {
            end.push(last + 1);
            break;
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_prefixes() {
        assert_eq!(prefix_end(b"ab"), b"ac");
        assert_eq!(prefix_end(&[1, 0xff, 0xff]), &[2]);
        assert_eq!(prefix_end(&[0xff]), b"");
        assert_eq!(prefix_end(b""), b"");
    }
}
