//! What was written to a delegated file and is not on the OSTs yet.
//!
//! Written ranges are kept as extents that do not overlap. An extent stays within one window of
//! [`WINDOW`] bytes of the file, so that each becomes one request to each object it touches, and
//! writes that follow each other grow into full windows.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use weft_model::FsError;
use weft_model::layout::INLINE_MAX;
use weft_rpc::pb::mds::Place;

/// Largest extent, bytes; windows begin at multiples of it.
pub(crate) const WINDOW: u64 = 1 << 20;

/// Extents by their offset.
pub(crate) type Extents = BTreeMap<u64, Vec<u8>>;

/// The written ranges of one file.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    /// The file is delegated to this client.
    pub(crate) delegated: bool,
    /// Where the file's bytes are, apart from those here. It becomes Objects at some time, and stays so
    /// while the file is open here.
    pub(crate) place: Place,
    /// Some of it may have been synced.
    pub(crate) synced: bool,
    /// Why data could not be stored, until somebody is told.
    pub(crate) failure: Option<FsError>,
    extents: Extents,
    bytes: usize,
    /// Taken out, on the way to the OSTs. What was written since is newer.
    in_flight: Arc<Extents>,
    /// What is in flight counts no more: everything was dropped since.
    is_void: bool,
    /// When the oldest extent was begun.
    since: Option<Duration>,
    /// End of the last write.
    last: u64,
    /// Counts how often everything was dropped.
    generation: u64,
}

impl Buffer {
    /// Nothing waits yet.
    pub(crate) fn of(place: Place) -> Buffer {
        Buffer { place, synced: place != Place::Empty, ..Buffer::default() }
    }

    /// Whether the MDT takes what is written, as far as is known.
    pub(crate) fn is_inline(&self) -> bool {
        self.place != Place::Objects
    }

    /// Bytes that wait.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether everything is on the OSTs.
    pub(crate) fn is_clean(&self) -> bool {
        self.extents.is_empty() && self.in_flight.is_empty()
    }

    /// Whether the MDT would take everything that waits.
    pub(crate) fn fits_inline(&self) -> bool {
        let last = self.extents.last_key_value();
        last.is_none_or(|(&start, data)| start + data.len() as u64 <= INLINE_MAX)
    }

    /// Counts how often everything was dropped.
    pub(crate) const fn generation(&self) -> u64 {
        self.generation
    }

    /// When the oldest waiting write was made.
    pub(crate) const fn since(&self) -> Option<Duration> {
        self.since
    }

    /// Whether any of a range is not on the OSTs.
    pub(crate) fn overlaps(&self, range: &Range<u64>) -> bool {
        let touches = |extents: &Extents| {
            let before = extents.range(..range.end).next_back();
            before.is_some_and(|(&start, data)| start + data.len() as u64 > range.start)
        };
        touches(&self.extents) || touches(&self.in_flight)
    }

    /// Fills `out` with what was written at `offset`. Whether all of it is here; if not, `out` may hold anything.
    pub(crate) fn read(&self, mut offset: u64, mut out: &mut [u8]) -> bool {
        while !out.is_empty() {
            let newer =
                self.extents.range(offset + 1..).next().map_or(u64::MAX, |(&start, _)| start);
            let waiting = at(&self.extents, offset);
            let found = waiting.or_else(|| {
                if self.is_void {
                    return None;
                }
                let room = (newer - offset).min(usize::MAX as u64) as usize;
                at(&self.in_flight, offset).map(|data| &data[..data.len().min(room)])
            });
            let Some(found) = found else { return false };
            let count = found.len().min(out.len());
            let (filled, rest) = out.split_at_mut(count);
            filled.copy_from_slice(&found[..count]);
            (offset, out) = (offset + count as u64, rest);
        }
        true
    }

    /// Takes a write. The newest data of a place counts.
    pub(crate) fn put(&mut self, mut offset: u64, mut data: &[u8], now: Duration) {
        self.since.get_or_insert(now);
        self.last = offset + data.len() as u64;
        while !data.is_empty() {
            let room = WINDOW - offset % WINDOW;
            let (part, rest) = data.split_at(data.len().min(room as usize));
            self.put_in_window(offset, part);
            offset += part.len() as u64;
            data = rest;
        }
    }

    fn put_in_window(&mut self, offset: u64, data: &[u8]) {
        let end = offset + data.len() as u64;
        if let Some((&start, known)) = self.extents.range_mut(..=offset).next_back() {
            let known_end = start + known.len() as u64;
            let at = (offset - start) as usize;
            if end <= known_end {
                known[at..at + data.len()].copy_from_slice(data);
                return;
            }
            if offset <= known_end && !offset.is_multiple_of(WINDOW) {
                let kept = known.len() - at;
                let (over, more) = data.split_at(kept);
                self.carve(known_end..end);
                let Some(known) = self.extents.get_mut(&start) else { return };
                known[at..].copy_from_slice(over);
                known.extend_from_slice(more);
                self.bytes += more.len();
                return;
            }
        }
        self.carve(offset..end);
        self.bytes += data.len();
        self.extents.insert(offset, data.to_vec());
    }

    /// Forgets a range.
    fn carve(&mut self, range: Range<u64>) {
        let before = self.extents.range(..range.start).next_back().map(|(&start, _)| start);
        let inside = self.extents.range(range.clone()).map(|(&start, _)| start);
        for start in before.into_iter().chain(inside).collect::<Vec<u64>>() {
            let Some(mut data) = self.extents.remove(&start) else { continue };
            self.bytes -= data.len();
            let end = start + data.len() as u64;
            if end > range.end {
                let behind = data.split_off((range.end.max(start) - start) as usize);
                self.bytes += behind.len();
                self.extents.insert(range.end.max(start), behind);
            }
            if start < range.start {
                data.truncate((range.start.min(end) - start) as usize);
                self.bytes += data.len();
                self.extents.insert(start, data);
            }
        }
    }

    /// Takes extents out, in order, until about `most` bytes; they are in flight until
    /// [`Self::landed`] or [`Self::put_back`]. With `steady`, the window that is still being filled stays.
    pub(crate) fn take(&mut self, most: usize, steady: bool) -> Arc<Extents> {
        let growing =
            (steady && !self.last.is_multiple_of(WINDOW)).then(|| (self.last - 1) / WINDOW);
        let (mut taken, mut bytes) = (Extents::new(), 0);
        let mut from = 0;
        while bytes < most
            && let Some((&start, _)) = self.extents.range(from..).next()
        {
            from = start + 1;
            if growing == Some(start / WINDOW) {
                continue;
            }
            let Some(data) = self.extents.remove(&start) else { break };
            bytes += data.len();
            taken.insert(start, data);
        }
        self.bytes -= bytes;
        if self.extents.is_empty() {
            self.since = None;
        }
        self.in_flight = Arc::new(taken);
        self.is_void = false;
        self.in_flight.clone()
    }

    /// What was taken is on the OSTs, or is lost.
    pub(crate) fn landed(&mut self) {
        self.in_flight = Arc::default();
    }

    /// What was taken could not be brought there now. What was written since is newer.
    pub(crate) fn put_back(&mut self, now: Duration) {
        let taken = Arc::unwrap_or_clone(std::mem::take(&mut self.in_flight));
        let last = self.last;
        self.bytes = taken.values().map(Vec::len).sum();
        let newer = std::mem::replace(&mut self.extents, taken);
        self.since = Some(now);
        for (offset, data) in newer {
            self.put(offset, &data, now);
        }
        self.last = last;
    }

    /// Drops everything, and says how many bytes that was.
    pub(crate) fn clear(&mut self) -> usize {
        self.generation += 1;
        self.is_void = true;
        self.extents.clear();
        self.since = None;
        std::mem::take(&mut self.bytes)
    }
}

/// The bytes from `offset` to the end of the extent that has it.
fn at(extents: &Extents, offset: u64) -> Option<&[u8]> {
    let (&start, data) = extents.range(..=offset).next_back()?;
    data.get((offset - start) as usize..).filter(|data| !data.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng, rngs::SmallRng};

    const NOW: Duration = Duration::from_secs(1);

    /// Everything that is kept, laid over `file`.
    fn lay(extents: &Extents, file: &mut [u8]) {
        for (&start, data) in extents {
            file[start as usize..][..data.len()].copy_from_slice(data);
        }
    }

    #[test]
    fn writes_that_follow_each_other_become_full_windows() {
        let mut buffer = Buffer::default();
        let piece = vec![7; 47_008];
        for number in 0..100 {
            buffer.put(number * 47_008, &piece, NOW);
        }
        let steady = buffer.take(usize::MAX, true);
        assert!(steady.len() == 4 && steady.values().all(|data| data.len() as u64 == WINDOW));
        assert!(buffer.overlaps(&(0..1)), "in flight");
        buffer.landed();
        assert!(!buffer.overlaps(&(0..4 * WINDOW)) && !buffer.is_clean());
        assert_eq!(buffer.take(usize::MAX, false).len(), 1);
        buffer.landed();
        assert!(buffer.is_clean() && buffer.bytes() == 0);
    }

    #[test]
    fn the_newest_data_counts_whatever_overlaps() {
        let mut rng = SmallRng::seed_from_u64(7);
        let mut read = 0;
        for _ in 0..200 {
            let (mut buffer, mut stored) = (Buffer::default(), vec![0u8; 3 << 20]);
            let mut wanted = stored.clone();
            for step in 0..60u32 {
                let offset = rng.random_range(0..(2 << 20) + 1000) as usize;
                let most = [64, 5000, 700_000][rng.random_range(0..3)];
                let len = rng.random_range(1..most);
                let data = vec![step as u8 + 1; len];
                wanted[offset..offset + len].copy_from_slice(&data);
                buffer.put(offset as u64, &data, NOW);
                let probe = rng.random_range(0..2 << 20);
                if !buffer.overlaps(&(probe..probe + 1)) {
                    assert_eq!(stored[probe as usize], wanted[probe as usize]);
                }
                if rng.random_range(0..10) == 0 {
                    let taken = buffer.take(rng.random_range(1..2 << 20), rng.random());
                    if rng.random() {
                        lay(&taken, &mut stored);
                        buffer.landed();
                    } else {
                        let offset = rng.random_range(0..1 << 20) as usize;
                        wanted[offset..offset + 3000].fill(step as u8 + 1);
                        buffer.put(offset as u64, &wanted[offset..offset + 3000], NOW);
                        drop(taken);
                        buffer.put_back(NOW);
                    }
                }
                let (from, mut found) = (rng.random_range(0..2 << 20), vec![0; 2000]);
                if buffer.read(from as u64, &mut found) {
                    assert!(found == wanted[from..from + 2000]);
                    read += 1;
                }
                let bytes: usize = buffer.extents.values().map(Vec::len).sum();
                assert_eq!(bytes, buffer.bytes());
            }
            let rest = buffer.take(usize::MAX, false);
            lay(&rest, &mut stored);
            assert!(stored == wanted);
        }
        assert!(read > 1000, "{read}");
    }

    #[test]
    fn what_is_on_its_way_can_be_read() {
        let (mut buffer, mut out) = (Buffer::default(), [0; 6]);
        buffer.put(10, b"abcdef", NOW);
        drop(buffer.take(usize::MAX, false));
        buffer.put(12, b"XY", NOW);
        assert!(buffer.read(10, &mut out) && out == *b"abXYef");
        assert!(!buffer.read(11, &mut out) && !buffer.read(9, &mut out));
        buffer.clear();
        assert!(!buffer.read(10, &mut out[..1]) && buffer.overlaps(&(10..11)));
        buffer.landed();
        assert!(!buffer.overlaps(&(10..11)));
    }

    #[test]
    fn what_is_dropped_is_told() {
        let mut buffer = Buffer::default();
        buffer.put(10, b"hello", NOW);
        assert_eq!(buffer.since(), Some(NOW));
        assert_eq!((buffer.clear(), buffer.since(), buffer.is_clean()), (5, None, true));
    }
}
