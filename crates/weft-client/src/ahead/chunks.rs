//! Ranges of a file that are being read ahead, and those that were.
//!
//! A range belongs to whoever asked for it under its number: one that was dropped meanwhile is not found
//! again, so what arrives late is not kept.

use super::Share;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug)]
enum State {
    /// Nobody has begun to fetch it.
    Queued,
    Fetching,
    Here(Arc<Vec<u8>>),
}

#[derive(Debug)]
struct Chunk {
    number: u64,
    end: u64,
    state: State,
    /// Bytes of it that were handed out.
    served: u64,
    /// When it was last touched.
    at: Duration,
    /// Of what all files may hold.
    _share: Share,
}

/// The ranges of one file, none of which overlap.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    chunks: BTreeMap<u64, Chunk>,
    bytes: u64,
    next: u64,
}

/// What there is of a range at its start.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Look {
    /// The bytes `range` of `data`.
    Here { data: Arc<Vec<u8>>, range: Range<usize> },
    /// Somebody is fetching it.
    Coming,
    /// Nothing.
    Nothing,
}

impl Chunks {
    /// Bytes of all ranges, here or not yet.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes note that a range is to be fetched, unless any of it is known already. Its number.
    pub(crate) fn queue(&mut self, range: &Range<u64>, share: Share, now: Duration) -> Option<u64> {
        if range.is_empty() || self.overlapping(range).next().is_some() {
            return None;
        }
        self.next += 1;
        let (number, end) = (self.next, range.end);
        let chunk = Chunk { number, end, state: State::Queued, served: 0, at: now, _share: share };
        self.chunks.insert(range.start, chunk);
        self.bytes += range.end - range.start;
        Some(number)
    }

    /// Somebody begins to fetch a queued range. `None`: it is not wanted any more.
    pub(crate) fn begin(&mut self, start: u64, number: u64) -> Option<Range<u64>> {
        let chunk = self.find(start, number)?;
        chunk.state = State::Fetching;
        Some(start..chunk.end)
    }

    /// A range was fetched. Whether it is kept.
    pub(crate) fn arrived(
        &mut self,
        start: u64,
        number: u64,
        data: Vec<u8>,
        now: Duration,
    ) -> bool {
        let Some(chunk) = self.find(start, number) else { return false };
        chunk.state = State::Here(Arc::new(data));
        chunk.at = now;
        true
    }

    /// A range could not be fetched.
    pub(crate) fn failed(&mut self, start: u64, number: u64) {
        if self.find(start, number).is_some() {
            self.remove(start);
        }
    }

    /// What there is of `range` at its start. What nobody has begun to fetch is the caller's to read, and
    /// what all of has been handed out is dropped.
    pub(crate) fn look(&mut self, range: &Range<u64>, now: Duration) -> Look {
        let found = self.chunks.range_mut(..=range.start).next_back();
        let Some((&start, chunk)) = found.filter(|(_, chunk)| chunk.end > range.start) else {
            return Look::Nothing;
        };
        chunk.at = now;
        match &chunk.state {
            State::Queued => {
                self.remove(start);
                Look::Nothing
            }
            State::Fetching => Look::Coming,
            State::Here(data) => {
                let end = chunk.end.min(range.end);
                let look = Look::Here {
                    data: data.clone(),
                    range: (range.start - start) as usize..(end - start) as usize,
                };
                chunk.served += end - range.start;
                if chunk.served >= chunk.end - start {
                    self.remove(start);
                }
                look
            }
        }
    }

    /// Drops what overlaps a range.
    pub(crate) fn drop_range(&mut self, range: &Range<u64>) {
        let starts: Vec<u64> = self.overlapping(range).collect();
        starts.into_iter().for_each(|start| self.remove(start));
    }

    /// Drops what nobody has touched since `before`.
    pub(crate) fn drop_unused(&mut self, before: Duration) {
        let unused = self.chunks.iter().filter(|(_, chunk)| chunk.at < before);
        let starts: Vec<u64> = unused.map(|(&start, _)| start).collect();
        starts.into_iter().for_each(|start| self.remove(start));
    }

    /// Drops everything.
    pub(crate) fn clear(&mut self) {
        self.chunks.clear();
        self.bytes = 0;
    }

    fn overlapping<'a>(&'a self, range: &Range<u64>) -> impl Iterator<Item = u64> + use<'a> {
        let (start, below) = (range.start, self.chunks.range(..range.end));
        below.rev().take_while(move |(_, chunk)| chunk.end > start).map(|(&start, _)| start)
    }

    fn find(&mut self, start: u64, number: u64) -> Option<&mut Chunk> {
        self.chunks.get_mut(&start).filter(|chunk| chunk.number == number)
    }

    fn remove(&mut self, start: u64) {
        if let Some(chunk) = self.chunks.remove(&start) {
            self.bytes -= chunk.end - start;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Room;
    use super::*;

    const NOW: Duration = Duration::from_secs(1);

    fn queue(chunks: &mut Chunks, range: Range<u64>) -> Option<u64> {
        let share = Room::default().share(range.end - range.start, u64::MAX)?;
        chunks.queue(&range, share, NOW)
    }

    #[test]
    fn from_queued_to_handed_out() {
        let mut chunks = Chunks::default();
        let number = queue(&mut chunks, 10..20).unwrap();
        assert_eq!(queue(&mut chunks, 19..30), None);
        assert_eq!(chunks.bytes(), 10);
        assert_eq!(chunks.begin(10, number), Some(10..20));
        assert_eq!(chunks.look(&(12..14), NOW), Look::Coming);
        assert!(chunks.arrived(10, number, vec![7; 10], NOW));
        let Look::Here { range, .. } = chunks.look(&(12..40), NOW) else { panic!("not here") };
        assert_eq!((range, chunks.bytes()), (2..10, 10));
        assert_eq!(chunks.look(&(20..40), NOW), Look::Nothing);
        assert!(matches!(chunks.look(&(10..12), NOW), Look::Here { .. }));
        assert_eq!(chunks.look(&(10..12), NOW), Look::Nothing);
        assert_eq!(chunks.bytes(), 0);
    }

    #[test]
    fn what_was_dropped_meanwhile_is_not_kept() {
        let mut chunks = Chunks::default();
        let old = queue(&mut chunks, 0..10).unwrap();
        chunks.begin(0, old).unwrap();
        chunks.drop_range(&(9..12));
        let new = queue(&mut chunks, 0..10).unwrap();
        assert!(!chunks.arrived(0, old, vec![1; 10], NOW));
        chunks.failed(0, old);
        assert!(chunks.begin(0, new).is_some() && chunks.arrived(0, new, vec![2; 10], NOW));
        chunks.drop_range(&(10..12));
        chunks.drop_unused(NOW);
        assert_eq!(chunks.bytes(), 10);
        chunks.drop_unused(NOW * 2);
        assert_eq!(chunks.bytes(), 0);
    }

    #[test]
    fn a_reader_takes_over_what_nobody_has_begun() {
        let mut chunks = Chunks::default();
        let number = queue(&mut chunks, 0..10).unwrap();
        assert_eq!(chunks.look(&(0..5), NOW), Look::Nothing);
        assert_eq!(chunks.begin(0, number), None);
    }
}
