//! What the target's key-value store says of objects for the case of a power cut.
//!
//! - *Marks*: which 64 MiB regions may differ between data and checksums. A mark is there before its
//!   region changes and until some seconds after the change is durable.
//! - *Cuts* and *graves*: objects that were cut or destroyed, which the local file system may forget.
//!   Durable with the next flush, so that many share one sync, and gone when it is durable there, too.

use crate::kv::{Batch, Kv, RESERVED_PREFIX, prefix_end};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use weft_model::{Fid, ObjectId, Result};

/// Bytes of a region.
pub const REGION: u64 = 64 << 20;

const MARK: [u8; 2] = [RESERVED_PREFIX, b'm'];
const CUT: [u8; 2] = [RESERVED_PREFIX, b'c'];
const GRAVE: [u8; 2] = [RESERVED_PREFIX, b'g'];
const NAME_LEN: usize = 14;
const MARK_LEN: usize = 18;

/// Marks, cuts and graves.
pub struct Marks {
    kv: Arc<dyn Kv>,
    /// Log sequence number of the last one set, and the one that is known durable.
    written: AtomicU64,
    durable: AtomicU64,
}

impl Marks {
    /// The marks kept in `kv`.
    pub fn new(kv: Arc<dyn Kv>) -> Marks {
        Marks { kv, written: AtomicU64::new(0), durable: AtomicU64::new(0) }
    }

    /// Marks regions of an object; they are durable after the next [`Marks::flush`].
    pub fn set(&self, id: ObjectId, regions: impl Iterator<Item = u32>) -> Result<()> {
        let mut batch = Batch::new();
        for region in regions {
            batch.put(&mark(id, region), &[]);
        }
        self.write(&batch)
    }

    /// Notes that an object is cut to `size`.
    pub fn set_cut(&self, id: ObjectId, size: u64) -> Result<()> {
        self.write(Batch::new().put(&name(CUT, id), &size.to_le_bytes()))
    }

    /// Notes that an object is destroyed, which makes an end of its cut.
    pub fn bury(&self, id: ObjectId) -> Result<()> {
        self.write(Batch::new().put(&name(GRAVE, id), &[]).delete(&name(CUT, id)))
    }

    /// An object of this name is made again.
    pub fn exhume(&self, id: ObjectId) -> Result<()> {
        self.write(Batch::new().delete(&name(GRAVE, id)))
    }

    /// The cut of an object is durable where it was made. A note that came back would cut off what is
    /// written from now on: flush before anything is promised.
    pub fn clear_cut(&self, id: ObjectId) -> Result<()> {
        self.write(Batch::new().delete(&name(CUT, id)))
    }

    fn write(&self, batch: &Batch) -> Result<()> {
        let lsn = self.kv.write(batch)?;
        self.written.fetch_max(lsn, Ordering::AcqRel);
        Ok(())
    }

    /// Makes everything set so far durable. Free when it is.
    pub fn flush(&self) -> Result<()> {
        if self.durable.load(Ordering::Acquire) < self.written.load(Ordering::Acquire) {
            let lsn = self.kv.sync()?;
            self.durable.fetch_max(lsn, Ordering::AcqRel);
        }
        Ok(())
    }

    /// Removes marks. A power cut may bring them back, which costs time and nothing else.
    pub fn clear(&self, id: ObjectId, regions: impl Iterator<Item = u32>) -> Result<()> {
        let mut batch = Batch::new();
        for region in regions {
            batch.delete(&mark(id, region));
        }
        self.kv.write(&batch).map(drop)
    }

    /// Removes a grave; as for marks, since no object gets the name of another one.
    pub fn clear_grave(&self, id: ObjectId) -> Result<()> {
        self.kv.write(Batch::new().delete(&name(GRAVE, id))).map(drop)
    }

    /// Removes everything.
    pub fn clear_all(&self) -> Result<()> {
        for prefix in [MARK, CUT, GRAVE] {
            let mut batch = Batch::new();
            self.each(&prefix, |key, _| {
                batch.delete(key);
            })?;
            self.kv.write(&batch)?;
        }
        Ok(())
    }

    /// All marks, in order.
    pub fn all(&self) -> Result<Vec<(ObjectId, u32)>> {
        let mut marks = Vec::new();
        self.each(&MARK, |key, _| marks.extend(parse_mark(key)))?;
        Ok(marks)
    }

    /// Objects that were cut, each with its size then.
    pub fn cuts(&self) -> Result<Vec<(ObjectId, u64)>> {
        let mut cuts = Vec::new();
        self.each(&CUT, |key, value| {
            let size = value.try_into().map(u64::from_le_bytes).ok();
            cuts.extend(parse_name(key).zip(size).map(|((id, _), size)| (id, size)));
        })?;
        Ok(cuts)
    }

    /// Objects that were destroyed.
    pub fn graves(&self) -> Result<Vec<ObjectId>> {
        let mut graves = Vec::new();
        self.each(&GRAVE, |key, _| graves.extend(parse_name(key).map(|(id, _)| id)))?;
        Ok(graves)
    }

    fn each(&self, prefix: &[u8], mut take: impl FnMut(&[u8], &[u8])) -> Result<()> {
        self.kv.scan(prefix, &prefix_end(prefix), &mut |key, value| {
            take(key, value);
            ControlFlow::Continue(())
        })
    }
}

/// The regions that `[offset, offset + len)` touches; that of `offset` when the range is empty.
pub fn regions(offset: u64, len: u64) -> std::ops::RangeInclusive<u32> {
    let last = offset + len.max(1) - 1;
    (offset / REGION) as u32..=(last / REGION) as u32
}

fn name(prefix: [u8; 2], id: ObjectId) -> [u8; NAME_LEN] {
    let mut key = [0; NAME_LEN];
    key[..2].copy_from_slice(&prefix);
    key[2..10].copy_from_slice(&id.fid.0.to_be_bytes());
    key[10..].copy_from_slice(&id.index.to_be_bytes());
    key
}

fn mark(id: ObjectId, region: u32) -> [u8; MARK_LEN] {
    let mut key = [0; MARK_LEN];
    key[..NAME_LEN].copy_from_slice(&name(MARK, id));
    key[NAME_LEN..].copy_from_slice(&region.to_be_bytes());
    key
}

/// The object of a key, and what follows.
fn parse_name(key: &[u8]) -> Option<(ObjectId, &[u8])> {
    let (fid, rest) = key.get(2..)?.split_first_chunk()?;
    let (index, rest) = rest.split_first_chunk()?;
    let id = ObjectId { fid: Fid(u64::from_be_bytes(*fid)), index: u32::from_be_bytes(*index) };
    Some((id, rest))
}

fn parse_mark(key: &[u8]) -> Option<(ObjectId, u32)> {
    let (id, rest) = parse_name(key)?;
    Some((id, u32::from_be_bytes(rest.try_into().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kv::MemKv;

    #[test]
    fn marks_are_durable_when_flushed() {
        let kv = Arc::new(MemKv::new());
        let marks = Marks::new(kv.clone());
        let id = ObjectId { fid: Fid::new(2, 5), index: 3 };
        marks.set(id, regions(REGION - 1, 2)).unwrap();
        marks.flush().unwrap();
        marks.set(id, regions(REGION * 7, 0)).unwrap();
        assert_eq!(marks.all().unwrap(), vec![(id, 0), (id, 1), (id, 7)]);
        kv.crash_power(|_| 0);
        assert_eq!(marks.all().unwrap(), vec![(id, 0), (id, 1)]);
        marks.clear(id, 0..=0).unwrap();
        assert_eq!(marks.all().unwrap(), vec![(id, 1)]);
        marks.set_cut(id, 77).unwrap();
        let other = ObjectId { index: 4, ..id };
        marks.set_cut(other, 78).unwrap();
        marks.bury(other).unwrap();
        assert_eq!((marks.cuts().unwrap(), marks.graves().unwrap()), (vec![(id, 77)], vec![other]));
        marks.clear_all().unwrap();
        assert!(marks.all().unwrap().is_empty());
        assert!(marks.cuts().unwrap().is_empty() && marks.graves().unwrap().is_empty());
    }
}
