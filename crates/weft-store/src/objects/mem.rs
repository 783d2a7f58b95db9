//! The object store of the simulation and of tests: it knows what a power cut would take, and can
//! be damaged.

use super::sums::{self, BLOCK_LEN, block_count};
use super::{Check, MAX_SIZE, ObjectStat, ObjectStore, ScrubReport, Seek, StatFs};
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use weft_model::checksum::{self, BLOCK, crc32c, pieces};
use weft_model::{ErrorKind, FsError, ObjectId, Result, Timespec};

/// An [`ObjectStore`] in memory.
///
/// It checks as the one on disk does. After [`MemObjects::crash_power`] each block that was not
/// synced is old, new or torn at 512-byte sectors, with a checksum that fits (what the start of the
/// store on disk sees to), and sizes and existence are old or new.
#[derive(Default)]
pub struct MemObjects {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    objects: BTreeMap<ObjectId, Entry>,
    /// Counts changes; also the clock for `mtime`.
    changes: u64,
    /// Bytes that may be allocated.
    capacity: Option<u64>,
    fault: Option<ErrorKind>,
    poisoned: bool,
}

#[derive(Default)]
struct Entry {
    now: Option<Image>,
    durable: Option<Image>,
}

#[derive(Clone, Default)]
struct Image {
    size: u64,
    changed: u64,
    /// Blocks that are not holes. Bytes behind the end of the object are zeros.
    blocks: BTreeMap<u64, Arc<Block>>,
}

#[derive(Clone)]
struct Block {
    bytes: [u8; BLOCK_LEN],
    stored: u32,
}

impl Block {
    fn new(bytes: [u8; BLOCK_LEN]) -> Arc<Block> {
        Arc::new(Block { bytes, stored: sums::encode(crc32c(&bytes)) })
    }
}

impl MemObjects {
    /// An empty store without limit.
    pub fn new() -> MemObjects {
        MemObjects::default()
    }

    /// Limits the bytes that all objects may have allocated.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.state.lock().capacity = bytes;
    }

    /// Makes changes and syncs fail with `fault` until told otherwise; all but `NoSpace` poison.
    pub fn set_fault(&self, fault: Option<ErrorKind>) {
        self.state.lock().fault = fault;
    }

    /// What `kill -9` and a new start leave: all that was written.
    pub fn crash_process(&self) {
        self.state.lock().poisoned = false;
    }

    /// What a power cut and a new start leave, chosen by `random`.
    pub fn crash_power(&self, random: &mut dyn FnMut() -> u64) {
        let mut state = self.state.lock();
        for entry in state.objects.values_mut() {
            entry.now = match (entry.durable.take(), entry.now.take()) {
                (Some(old), Some(new)) => Some(tear(&old, &new, random)),
                (None, Some(new)) if random() & 1 == 0 => {
                    Some(tear(&Image::default(), &new, random))
                }
                (Some(old), None) if random() & 1 == 0 => Some(old),
                _ => None,
            };
            entry.durable = entry.now.clone();
        }
        state.objects.retain(|_, entry| entry.now.is_some());
        state.poisoned = false;
    }

    /// Flips one bit of the stored data; false when there is none at `offset`.
    pub fn flip_data(&self, id: ObjectId, offset: u64) -> bool {
        self.damage(id, offset / BLOCK, |block| block.bytes[(offset % BLOCK) as usize] ^= 1)
    }

    /// Flips one bit of the stored checksum of the block at `offset`; false when it is a hole.
    pub fn flip_sum(&self, id: ObjectId, offset: u64) -> bool {
        self.damage(id, offset / BLOCK, |block| block.stored ^= 0x0100_0000)
    }

    fn damage(&self, id: ObjectId, block: u64, change: impl Fn(&mut Block)) -> bool {
        let mut state = self.state.lock();
        let Some(entry) = state.objects.get_mut(&id) else { return false };
        let mut hit = false;
        for image in [&mut entry.now, &mut entry.durable].into_iter().flatten() {
            if let Some(block) = image.blocks.get_mut(&block) {
                change(Arc::make_mut(block));
                hit = true;
            }
        }
        hit
    }

    /// Changes an object, which is made when missing if `create`.
    fn change(
        &self,
        op: &'static str,
        id: ObjectId,
        create: bool,
        change: impl FnOnce(&mut Image) -> Result<()>,
    ) -> Result<()> {
        let mut state = self.admit(op)?;
        let old = state.objects.get(&id).and_then(|entry| entry.now.clone());
        if old.is_none() && !create {
            return Ok(());
        }
        let mut image = old.unwrap_or_default();
        let before = image.blocks.len() as u64;
        change(&mut image)?;
        state.changes += 1;
        image.changed = state.changes;
        let grown = (image.blocks.len() as u64).saturating_sub(before) * BLOCK;
        if grown > 0 && state.capacity.is_some_and(|bytes| state.used() + grown > bytes) {
            return Err(FsError::new(ErrorKind::NoSpace, op).on(format!("object={id}")));
        }
        state.objects.entry(id).or_default().now = Some(image);
        Ok(())
    }

    fn view<T>(&self, id: ObjectId, look: impl FnOnce(&Image) -> Result<T>) -> Result<Option<T>> {
        let state = self.state.lock();
        state.objects.get(&id).and_then(|entry| entry.now.as_ref()).map(look).transpose()
    }

    fn admit(&self, op: &'static str) -> Result<MutexGuard<'_, State>> {
        let mut state = self.state.lock();
        if state.poisoned {
            return Err(FsError::new(ErrorKind::Poisoned, op));
        }
        if let Some(kind) = state.fault {
            state.poisoned = kind != ErrorKind::NoSpace;
            return Err(FsError::new(kind, op).because("injected fault"));
        }
        Ok(state)
    }
}

impl State {
    fn used(&self) -> u64 {
        let images = self.objects.values().filter_map(|entry| entry.now.as_ref());
        images.map(|image| image.blocks.len() as u64 * BLOCK).sum()
    }
}

/// One of the images that a power cut between `old` and `new` may leave.
fn tear(old: &Image, new: &Image, random: &mut dyn FnMut() -> u64) -> Image {
    let size = if random() & 1 == 0 { old.size } else { new.size };
    let mut torn = Image { size, changed: new.changed, blocks: BTreeMap::new() };
    let numbers: std::collections::BTreeSet<u64> =
        old.blocks.keys().chain(new.blocks.keys()).copied().collect();
    for number in numbers.into_iter().filter(|&number| number < block_count(size)) {
        let (before, after) = (old.blocks.get(&number), new.blocks.get(&number));
        let unchanged = matches!((before, after), (Some(a), Some(b)) if Arc::ptr_eq(a, b));
        let whole = (number + 1) * BLOCK <= size.min(old.size).min(new.size);
        if let (true, true, Some(block)) = (unchanged, whole, after) {
            torn.blocks.insert(number, block.clone());
            continue;
        }
        let sides = [before, after].map(|b| b.map_or([0; BLOCK_LEN], |block| block.bytes));
        let mut bytes = [0; BLOCK_LEN];
        for start in (0..BLOCK_LEN).step_by(512) {
            let side = &sides[(random() & 1) as usize];
            bytes[start..start + 512].copy_from_slice(&side[start..start + 512]);
        }
        bytes[(size - number * BLOCK).min(BLOCK) as usize..].fill(0);
        torn.blocks.insert(number, Block::new(bytes));
    }
    torn
}

impl Image {
    fn checked(&self, op: &'static str, id: ObjectId, number: u64) -> Result<[u8; BLOCK_LEN]> {
        match self.blocks.get(&number) {
            None => Ok([0; BLOCK_LEN]),
            Some(block) if sums::holds(block.stored, crc32c(&block.bytes)) => Ok(block.bytes),
            Some(_) => Err(sums::damaged(op, id, number * BLOCK)),
        }
    }

    fn write(&mut self, id: ObjectId, offset: u64, piece_sums: &[u32], data: &[u8]) -> Result<()> {
        for (range, &sum) in pieces(offset, data.len()).zip(piece_sums) {
            let at = offset + range.start as u64;
            let (number, start) = (at / BLOCK, (at % BLOCK) as usize);
            let piece = &data[range];
            let mut bytes = [0; BLOCK_LEN];
            if piece.len() < BLOCK_LEN {
                if crc32c(piece) != sum {
                    return Err(sums::damaged("write", id, at).because("data came damaged"));
                }
                let exists = self.size.saturating_sub(number * BLOCK).min(BLOCK) as usize;
                if start > 0 || piece.len() < exists {
                    bytes = self.checked("write", id, number)?;
                }
            }
            bytes[start..start + piece.len()].copy_from_slice(piece);
            let sum = if piece.len() < BLOCK_LEN { crc32c(&bytes) } else { sum };
            let stored = sums::encode(sum);
            self.blocks.insert(number, Arc::new(Block { bytes, stored }));
        }
        self.size = self.size.max(offset + data.len() as u64);
        Ok(())
    }

    fn read(
        &self,
        id: ObjectId,
        offset: u64,
        buffer: &mut [u8],
        out: &mut Vec<u32>,
        check: Check,
    ) -> Result<usize> {
        let len = self.size.saturating_sub(offset).min(buffer.len() as u64) as usize;
        for range in pieces(offset, len) {
            let at = offset + range.start as u64;
            let (number, start) = (at / BLOCK, (at % BLOCK) as usize);
            let piece = &mut buffer[range];
            let block = self.blocks.get(&number);
            if piece.len() == BLOCK_LEN && check == Check::Trust {
                piece.copy_from_slice(block.map_or(&sums::ZEROS, |block| &block.bytes));
                let known = sums::decode(block.map_or(0, |block| block.stored));
                out.push(known.unwrap_or_else(|| crc32c(piece)));
                continue;
            }
            let bytes = self.checked("read", id, number)?;
            piece.copy_from_slice(&bytes[start..start + piece.len()]);
            out.push(crc32c(piece));
        }
        Ok(len)
    }

    fn resize(&mut self, id: ObjectId, size: u64) -> Result<()> {
        if size < self.size {
            self.clear("truncate", id, size, self.size)?;
        }
        self.size = size;
        Ok(())
    }

    /// Zeros a range within the object; whole blocks become holes.
    fn clear(&mut self, op: &'static str, id: ObjectId, offset: u64, end: u64) -> Result<()> {
        let numbers = offset / BLOCK..block_count(end);
        let touched: Vec<u64> = self.blocks.range(numbers).map(|(&number, _)| number).collect();
        for number in touched {
            let start = offset.saturating_sub(number * BLOCK) as usize;
            let stop = (end - number * BLOCK).min(BLOCK) as usize;
            let exists = (self.size - number * BLOCK).min(BLOCK) as usize;
            if start == 0 && stop >= exists {
                self.blocks.remove(&number);
                continue;
            }
            let mut bytes = self.checked(op, id, number)?;
            bytes[start..stop].fill(0);
            self.blocks.insert(number, Block::new(bytes));
        }
        Ok(())
    }
}

fn check_end(op: &'static str, offset: u64, len: u64) -> Result<()> {
    match offset.checked_add(len) {
        Some(end) if end <= MAX_SIZE => Ok(()),
        _ => Err(FsError::new(ErrorKind::FileTooBig, op)),
    }
}

impl ObjectStore for MemObjects {
    fn write(
        &self,
        id: ObjectId,
        offset: u64,
        piece_sums: &[u32],
        data: &[u8],
        check: Check,
    ) -> Result<()> {
        check_end("write", offset, data.len() as u64)?;
        if piece_sums.len() != checksum::piece_count(offset, data.len() as u64) {
            return Err(FsError::new(ErrorKind::Invalid, "write").because("number of checksums"));
        }
        if check == Check::Verify {
            checksum::verify(offset, data, piece_sums)
                .map_err(|at| sums::damaged("write", id, at).because("data came damaged"))?;
        }
        if data.is_empty() {
            return Ok(());
        }
        self.change("write", id, true, |image| image.write(id, offset, piece_sums, data))
    }

    fn read(
        &self,
        id: ObjectId,
        offset: u64,
        buffer: &mut [u8],
        out: &mut Vec<u32>,
        check: Check,
    ) -> Result<usize> {
        out.clear();
        let read = self.view(id, |image| image.read(id, offset, buffer, out, check));
        Ok(read?.unwrap_or(0))
    }

    fn truncate(&self, id: ObjectId, size: u64) -> Result<()> {
        check_end("truncate", size, 0)?;
        self.change("truncate", id, size > 0, |image| image.resize(id, size))?;
        let mut state = self.state.lock();
        let durable = state.objects.get_mut(&id).and_then(|entry| entry.durable.as_mut());
        match durable.filter(|durable| durable.size > size) {
            Some(durable) => durable.resize(id, size),
            None => Ok(()),
        }
    }

    fn punch(&self, id: ObjectId, offset: u64, len: u64) -> Result<()> {
        self.change("punch", id, false, |image| {
            let end = offset.saturating_add(len).min(image.size);
            if offset < end { image.clear("punch", id, offset, end) } else { Ok(()) }
        })
    }

    /// Space is only counted where there are blocks, so this merely sets the size.
    fn allocate(&self, id: ObjectId, offset: u64, len: u64, keep_size: bool) -> Result<()> {
        check_end("allocate", offset, len)?;
        if len == 0 {
            return Err(FsError::new(ErrorKind::Invalid, "allocate").because("no length"));
        }
        self.change("allocate", id, true, |image| {
            if !keep_size {
                image.size = image.size.max(offset + len);
            }
            Ok(())
        })
    }

    fn seek(&self, id: ObjectId, offset: u64, what: Seek) -> Result<u64> {
        let nothing = || FsError::new(ErrorKind::NoSuchOffset, "seek");
        let found = self.view(id, |image| {
            let mut at = offset;
            while at < image.size {
                if image.blocks.contains_key(&(at / BLOCK)) == (what == Seek::Data) {
                    return Ok(at);
                }
                at = (at / BLOCK + 1) * BLOCK;
            }
            match what {
                Seek::Hole if offset < image.size => Ok(image.size),
                _ => Err(nothing()),
            }
        })?;
        found.ok_or_else(nothing)
    }

    fn stat(&self, id: ObjectId) -> Result<Option<ObjectStat>> {
        self.view(id, |image| {
            let mtime = Timespec { secs: 0, nanos: (image.changed % 1_000_000_000) as u32 };
            Ok(ObjectStat { size: image.size, blocks: image.blocks.len() as u64 * 8, mtime })
        })
    }

    fn sync(&self, ids: &[ObjectId]) -> Result<()> {
        let mut state = self.admit("sync")?;
        for id in ids {
            if let Some(entry) = state.objects.get_mut(id) {
                entry.durable.clone_from(&entry.now);
            }
        }
        Ok(())
    }

    fn sync_all(&self) -> Result<()> {
        let mut state = self.admit("sync")?;
        state.objects.values_mut().for_each(|entry| entry.durable.clone_from(&entry.now));
        state.objects.retain(|_, entry| entry.now.is_some());
        Ok(())
    }

    fn destroy(&self, id: ObjectId) -> Result<()> {
        let mut state = self.admit("destroy")?;
        if let Some(entry) = state.objects.get_mut(&id) {
            entry.now = None;
        }
        Ok(())
    }

    fn list(&self, after: Option<ObjectId>, limit: usize) -> Result<Vec<ObjectId>> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let state = self.state.lock();
        let present = state.objects.range((from, Bound::Unbounded));
        let ids = present.filter(|(_, entry)| entry.now.is_some()).map(|(&id, _)| id);
        Ok(ids.take(limit.max(1)).collect())
    }

    fn statfs(&self) -> Result<StatFs> {
        let state = self.state.lock();
        let total = state.capacity.unwrap_or(1 << 50);
        let available = total.saturating_sub(state.used());
        Ok(StatFs { total, available, ..StatFs::default() })
    }

    fn scrub(
        &self,
        id: ObjectId,
        pace: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<ScrubReport> {
        let report = self.view(id, |image| {
            let bad = image.blocks.keys().filter(|&&n| image.checked("scrub", id, n).is_err());
            let damaged = bad.map(|number| number * BLOCK).collect();
            Ok(ScrubReport { bytes: image.size, damaged })
        })?;
        let report = report.unwrap_or_default();
        let _ = pace(report.bytes);
        Ok(report)
    }
}
