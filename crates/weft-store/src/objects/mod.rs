//! The seam for file data: objects, each an array of bytes with a checksum per 4 KiB block.
//!
//! A *piece* is the part of a transfer that lies in one block (see [`weft_model::checksum`]). The
//! checksum of a piece that fills its block goes to rest and comes back without anybody reading
//! the data in between.

mod fs;
mod mem;
mod sums;

pub use fs::{FsObjects, ObjectsConfig};
pub use mem::MemObjects;

pub(crate) use fs::{DIR, INTENTS};

use std::ops::ControlFlow;
use weft_model::{ObjectId, Result, Timespec};

/// Largest object, bytes: what ext4 allows for a file, rounded down.
pub const MAX_SIZE: u64 = 15 << 40;

/// How far to trust that checksums and data belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// The other side is in this process, or checks itself: whole blocks are not read a second
    /// time.
    Trust,
    /// Every piece is checked here, before anything is written or returned.
    Verify,
}

/// What [`ObjectStore::seek`] looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seek {
    /// The next byte at or after the offset that is allocated.
    Data,
    /// The next byte at or after the offset that is not; the end counts.
    Hole,
}

/// Attributes of an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObjectStat {
    /// Bytes.
    pub size: u64,
    /// 512-byte units allocated, without the checksums.
    pub blocks: u64,
    /// Last change of the data.
    pub mtime: Timespec,
}

/// Space of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatFs {
    /// Bytes of the file system.
    pub total: u64,
    /// Bytes free for data: what the file system has, less the reserve.
    pub available: u64,
    /// Inodes of the file system; 0 when it does not count them.
    pub inodes: u64,
    /// Inodes free.
    pub inodes_free: u64,
    /// Which file system it is: the same for stores on the same one; 0 when it cannot be told.
    pub device: u64,
}

/// What [`ObjectStore::scrub`] found in one object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScrubReport {
    /// Bytes read.
    pub bytes: u64,
    /// Offsets of the blocks that do not match their checksum.
    pub damaged: Vec<u64>,
}

/// Objects and their checksums.
///
/// Objects appear at the first write, extending truncate or allocation; a missing one reads as
/// empty. All methods may be called from any thread; those that change one object exclude each
/// other and its reads, so data and checksums of a block never mix. What a method has done
/// survives `kill -9` when it returns, and a power cut after [`ObjectStore::sync`].
///
/// # Errors
/// All methods: `Checksum` when stored data does not match (subject: object and offset), `Io` for
/// what the disk says. Those that change something: `NoSpace` (nothing lost, works again when there
/// is space), `FileTooBig` beyond [`MAX_SIZE`], `Poisoned` from the first failed write or sync until
/// the store is opened again. Reads go on on a poisoned store.
pub trait ObjectStore: Send + Sync {
    /// Writes `data` at `offset`. `sums` are the CRC32C of its pieces.
    ///
    /// Pieces that do not fill their block are always checked, and so is the stored block that
    /// they change: damage is never covered up. With `NoSpace` a part may have been written.
    ///
    /// # Errors
    /// Also `Invalid` for a wrong number of checksums; `Checksum`, with nothing written, when a
    /// piece does not match.
    fn write(
        &self,
        id: ObjectId,
        offset: u64,
        sums: &[u32],
        data: &[u8],
        check: Check,
    ) -> Result<()>;

    /// Reads at `offset` into `buffer` and puts the CRC32C of the pieces read into `sums`, which
    /// is cleared first. Returns the number of bytes read: fewer than asked only at the end.
    fn read(
        &self,
        id: ObjectId,
        offset: u64,
        buffer: &mut [u8],
        sums: &mut Vec<u32>,
        check: Check,
    ) -> Result<usize>;

    /// Cuts the object, or extends it by a hole. What is cut off does not come back: that is on stable
    /// storage when this returns.
    fn truncate(&self, id: ObjectId, size: u64) -> Result<()>;

    /// Gives back the space of a range, which then reads as zeros. The size stays.
    fn punch(&self, id: ObjectId, offset: u64, len: u64) -> Result<()>;

    /// Makes a range read as zeros and have space; extends the object unless `keep_size`.
    fn zero(&self, id: ObjectId, offset: u64, len: u64, keep_size: bool) -> Result<()> {
        self.punch(id, offset, len)?;
        self.allocate(id, offset, len, keep_size)
    }

    /// Reserves space for a range; extends the object unless `keep_size`.
    fn allocate(&self, id: ObjectId, offset: u64, len: u64, keep_size: bool) -> Result<()>;

    /// The next offset, from `offset` on, that is data or a hole.
    ///
    /// # Errors
    /// Also `NoSuchOffset` at or beyond the end, and for data when only holes follow.
    fn seek(&self, id: ObjectId, offset: u64, what: Seek) -> Result<u64>;

    /// Attributes; none when the object does not exist.
    fn stat(&self, id: ObjectId) -> Result<Option<ObjectStat>>;

    /// Puts these objects on stable storage: data, checksums, sizes and existence, of everything
    /// that was done before the call, destruction included. Missing objects are skipped.
    fn sync(&self, ids: &[ObjectId]) -> Result<()>;

    /// Puts everything on stable storage that was done before the call.
    fn sync_all(&self) -> Result<()>;

    /// Removes the object; nothing happens when there is none.
    fn destroy(&self, id: ObjectId) -> Result<()>;

    /// Up to `limit` objects (at least one) in the store's own order, from behind `after` on;
    /// empty at the end. Objects that come and go meanwhile may or may not be there.
    fn list(&self, after: Option<ObjectId>, limit: usize) -> Result<Vec<ObjectId>>;

    /// Space.
    fn statfs(&self) -> Result<StatFs>;

    /// Reads the object and checks it all, in steps between which others get at it. `pace` gets
    /// the bytes of each step done: it may sleep, and break to stop. Damage is in the report.
    fn scrub(
        &self,
        id: ObjectId,
        pace: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<ScrubReport>;
}
