//! Which 64 MiB regions of which objects may differ between data and checksums after a power cut:
//! a set of keys in the target's key-value store.
//!
//! A mark is there before its region changes and until some seconds after the change is durable.

use crate::kv::{Batch, Kv, RESERVED_PREFIX, prefix_end};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use weft_model::{Fid, ObjectId, Result};

/// Bytes of a region.
pub const REGION: u64 = 64 << 20;

const PREFIX: [u8; 2] = [RESERVED_PREFIX, b'm'];
const KEY_LEN: usize = 18;

/// The set of marks.
pub struct Marks {
    kv: Arc<dyn Kv>,
    /// Log sequence number of the last mark set, and the one that is known durable.
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
            batch.put(&key(id, region), &[]);
        }
        let lsn = self.kv.write(&batch)?;
        self.written.fetch_max(lsn, Ordering::AcqRel);
        Ok(())
    }

    /// Makes all marks set so far durable. Free when they are.
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
            batch.delete(&key(id, region));
        }
        self.kv.write(&batch).map(drop)
    }

    /// Removes all marks.
    pub fn clear_all(&self) -> Result<()> {
        let mut batch = Batch::new();
        for (id, region) in self.all()? {
            batch.delete(&key(id, region));
        }
        self.kv.write(&batch).map(drop)
    }

    /// All marks, in order.
    pub fn all(&self) -> Result<Vec<(ObjectId, u32)>> {
        let mut marks = Vec::new();
        self.kv.scan(&PREFIX, &prefix_end(&PREFIX), &mut |key, _| {
            marks.extend(parse(key));
            ControlFlow::Continue(())
        })?;
        Ok(marks)
    }
}

/// The regions that `[offset, offset + len)` touches; that of `offset` when the range is empty.
pub fn regions(offset: u64, len: u64) -> std::ops::RangeInclusive<u32> {
    let last = offset + len.max(1) - 1;
    (offset / REGION) as u32..=(last / REGION) as u32
}

fn key(id: ObjectId, region: u32) -> [u8; KEY_LEN] {
    let mut key = [0; KEY_LEN];
    key[..2].copy_from_slice(&PREFIX);
    key[2..10].copy_from_slice(&id.fid.0.to_be_bytes());
    key[10..14].copy_from_slice(&id.index.to_be_bytes());
    key[14..].copy_from_slice(&region.to_be_bytes());
    key
}

fn parse(key: &[u8]) -> Option<(ObjectId, u32)> {
    let (fid, rest) = key.get(2..)?.split_first_chunk()?;
    let (index, rest) = rest.split_first_chunk()?;
    let region = u32::from_be_bytes(rest.try_into().ok()?);
    let id = ObjectId { fid: Fid(u64::from_be_bytes(*fid)), index: u32::from_be_bytes(*index) };
    Some((id, region))
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
        marks.clear_all().unwrap();
        assert!(marks.all().unwrap().is_empty());
    }
}
