//! Finds the streams among the reads of a file, and says what each will want next.
//!
//! A stream is a run of reads that follow each other, or of reads of one length at equal distances,
//! forwards or backwards. Reads that belong to no stream ask for nothing.

use std::collections::VecDeque;
use std::ops::Range;

/// Streams of a file; the one unused for the longest makes room.
const MAX_STREAMS: usize = 8;
/// Reads remembered that belong to no stream.
const REMEMBERED: usize = 12;
/// Reads that follow each other before anything is fetched; the first of a file counts as two.
const RUN: u32 = 3;
/// Reads at a distance that are wanted at once, at most.
const MAX_STRIDES: u64 = 32;
/// Reads of a stream may overtake each other by so many of their lengths.
const OVERTAKING: u64 = 4;

/// The streams of one file.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    /// The one used last comes last.
    streams: Vec<Stream>,
    strays: VecDeque<Range<u64>>,
}

/// One of them.
#[derive(Clone, Debug)]
struct Stream {
    last: Range<u64>,
    /// From one read's start to the next one's; `None` if each begins where the last one ended.
    stride: Option<i64>,
    /// Reads so far.
    reads: u32,
    /// Up to here everything was asked for. Strides: how many reads beyond the last one were.
    front: u64,
    /// Bytes that are asked for beyond the last read.
    window: u64,
}

/// How much may be wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Ranges are cut at multiples of this.
    pub(crate) chunk: u64,
    /// Bytes beyond the last read.
    pub(crate) window: u64,
    /// Nothing is wanted at or beyond this offset.
    pub(crate) end: u64,
}

impl Streams {
    /// Takes note of a read. Whether it belongs to a stream, so that [`Self::wanted`] tells more. `eager`:
    /// whoever reads has said that it will go on.
    pub(crate) fn step(&mut self, read: Range<u64>, eager: bool) -> bool {
        if let Some(at) = self.streams.iter().rposition(|stream| stream.follows(&read)) {
            let mut stream = self.streams.remove(at);
            stream.advance(read);
            let established = stream.is_established();
            self.streams.push(stream);
            return established;
        }
        let begun = || Stream::begun_by(read.clone(), eager);
        let stream = self.strided(&read).unwrap_or_else(begun);
        let established = stream.is_established();
        if established {
            self.strays.clear();
        } else {
            if self.strays.len() == REMEMBERED {
                self.strays.pop_front();
            }
            self.strays.push_back(read);
        }
        if self.streams.len() == MAX_STREAMS {
            self.streams.remove(0);
        }
        self.streams.push(stream);
        established
    }

    /// What the stream of the last read will want next and was not told before, in the order in which it will.
    pub(crate) fn wanted(&mut self, limits: Limits) -> Vec<Range<u64>> {
        match self.streams.last_mut() {
            Some(stream) if stream.is_established() => stream.wanted(limits),
            _ => Vec::new(),
        }
    }

    /// Nothing of what was asked for is there any more.
    pub(crate) fn restart(&mut self) {
        for stream in &mut self.streams {
            stream.front = if stream.stride.is_some() { 0 } else { stream.last.end };
        }
    }

    /// A stream that this read is the fourth of, at equal distances.
    fn strided(&self, read: &Range<u64>) -> Option<Stream> {
        let same = |range: &&Range<u64>| range.end - range.start == read.end - read.start;
        let starts: Vec<u64> = self.strays.iter().filter(same).map(|range| range.start).collect();
        let before = |at: usize, start: u64| starts[..at].iter().rposition(|&other| other == start);
        for (at, &third) in starts.iter().enumerate().rev() {
            let stride = read.start.wrapping_sub(third) as i64;
            if stride == 0 {
                continue;
            }
            let second = third.wrapping_sub(stride as u64);
            let first = second.wrapping_sub(stride as u64);
            if before(at, second).is_some_and(|at| before(at, first).is_some()) {
                let begun = Stream::begun_by(read.clone(), true);
                return Some(Stream { stride: Some(stride), front: 0, ..begun });
            }
        }
        None
    }
}

impl Stream {
    fn begun_by(read: Range<u64>, eager: bool) -> Stream {
        let reads = match read.start {
            _ if eager => RUN,
            0 => RUN - 1,
            _ => 1,
        };
        Stream { front: read.end, last: read, stride: None, reads, window: 0 }
    }

    const fn is_established(&self) -> bool {
        self.reads >= RUN
    }

    fn follows(&self, read: &Range<u64>) -> bool {
        if let Some(stride) = self.stride {
            let same = read.end - read.start == self.last.end - self.last.start;
            return same && read.start == self.last.start.wrapping_add(stride as u64);
        }
        let slack = OVERTAKING * (read.end - read.start);
        match self.is_established() {
            false => read.start == self.last.end,
            true => {
                let newest = self.front.max(self.last.end + slack);
                read.start <= newest && read.start + slack >= self.last.end
            }
        }
    }

    fn advance(&mut self, read: Range<u64>) {
        self.reads = self.reads.saturating_add(1);
        if self.stride.is_some() {
            self.front = self.front.saturating_sub(1);
            self.last = read;
        } else if read.end > self.last.end {
            self.last = read;
        }
    }

    fn wanted(&mut self, limits: Limits) -> Vec<Range<u64>> {
        match self.stride {
            Some(stride) => self.strides(stride, limits),
            None => self.run(limits),
        }
    }

    fn run(&mut self, Limits { chunk, window, end }: Limits) -> Vec<Range<u64>> {
        let next = self.last.end;
        self.window = if self.window == 0 { chunk.min(window) } else { self.window.min(window) };
        let limit = (next + self.window).min(end);
        let mut start = self.front.max(next);
        let mut wanted = Vec::new();
        while start < limit {
            let stop = ((start / chunk + 1) * chunk).min(end);
            if stop > limit && !wanted.is_empty() {
                break;
            }
            wanted.push(start..stop);
            start = stop;
        }
        if !wanted.is_empty() {
            self.front = start;
            self.window = (self.window * 2).min(window);
        }
        wanted
    }

    fn strides(&mut self, stride: i64, Limits { window, end, .. }: Limits) -> Vec<Range<u64>> {
        let len = self.last.end - self.last.start;
        self.window = (self.window * 2).max(len).min(window);
        let depth = (self.window / len.max(1)).clamp(1, MAX_STRIDES);
        let mut wanted = Vec::new();
        for number in self.front + 1..=depth {
            let far = stride.checked_mul(number as i64);
            let start = far.and_then(|far| self.last.start.checked_add_signed(far));
            match start.filter(|&start| start < end) {
                Some(start) => wanted.push(start..(start + len).min(end)),
                None => break,
            }
        }
        self.front += wanted.len() as u64;
        wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng, rngs::SmallRng};

    const K: u64 = 1 << 10;
    const LIMITS: Limits = Limits { chunk: 1 << 20, window: 8 << 20, end: 1 << 40 };

    /// Reads, and everything that is wanted after each.
    fn after(
        streams: &mut Streams,
        reads: impl IntoIterator<Item = Range<u64>>,
    ) -> Vec<Range<u64>> {
        let step = |read| match streams.step(read, false) {
            true => streams.wanted(LIMITS),
            false => Vec::new(),
        };
        reads.into_iter().flat_map(step).collect()
    }

    fn run(from: u64, len: u64, count: u64) -> impl Iterator<Item = Range<u64>> {
        (0..count).map(move |number| from + number * len..from + (number + 1) * len)
    }

    #[test]
    fn a_run_is_fetched_once_and_without_gaps() {
        let mut streams = Streams::default();
        let wanted = after(&mut streams, run(0, 64 * K, 400));
        assert!(wanted[0].start <= 192 * K);
        assert!(wanted.windows(2).all(|pair| pair[0].end == pair[1].start));
        let ahead = wanted.last().unwrap().end - 400 * 64 * K;
        assert!((6 << 20..=9 << 20).contains(&ahead), "{ahead}");
        assert!(wanted[1..].iter().all(|range| range.end % LIMITS.chunk == 0));
    }

    #[test]
    fn the_window_grows_from_one_chunk() {
        let mut streams = Streams::default();
        let counts: Vec<usize> =
            run(0, 1 << 20, 6).map(|read| after(&mut streams, [read]).len()).collect();
        assert_eq!(counts, [0, 1, 2, 3, 5, 1]);
    }

    #[test]
    fn random_reads_want_nothing() {
        let mut rng = SmallRng::seed_from_u64(3);
        for len in [4 * K, 64 * K, 1 << 20] {
            let mut streams = Streams::default();
            let reads = (0..20_000).map(|_| {
                let start = rng.random_range(0..16 << 30) / len * len;
                start..start + len
            });
            let wanted = after(&mut streams, reads.collect::<Vec<_>>());
            let bytes: u64 = wanted.iter().map(|range| range.end - range.start).sum();
            assert!(bytes < 20_000 * len / 1000, "{bytes} of {len}");
        }
    }

    #[test]
    fn several_streams_at_once_among_stray_reads() {
        let mut streams = Streams::default();
        let mut rng = SmallRng::seed_from_u64(4);
        let mut wanted = Vec::new();
        for number in 0..20 {
            for place in [0, 1 << 30, 2 << 30, 3 << 30] {
                let start = place + number * 128 * K;
                wanted.extend(after(&mut streams, std::iter::once(start..start + 128 * K)));
            }
            let stray = rng.random_range(1 << 32..1 << 38);
            assert!(after(&mut streams, std::iter::once(stray..stray + 4 * K)).is_empty());
        }
        for place in 0..4u64 {
            assert!(wanted.iter().any(|range| range.start >> 30 == place), "stream {place}");
        }
    }

    #[test]
    fn strides_forwards_and_backwards() {
        for (from, stride) in [(0i64, 1 << 20), (1 << 30, -(1 << 20)), (1 << 30, -64 * 1024)] {
            let mut streams = Streams::default();
            let at = |number: i64| (from + number * stride) as u64;
            let read = |number| at(number)..at(number) + 64 * K;
            let wanted = after(&mut streams, (0..40).map(read));
            let expected: Vec<_> = (4..4 + wanted.len() as i64).map(read).collect();
            assert_eq!(wanted, expected);
            assert!(wanted.len() > 60, "{}", wanted.len());
        }
    }

    #[test]
    fn nothing_beyond_the_end_and_reads_may_overtake_each_other() {
        let mut streams = Streams::default();
        let order = [0, 1, 2, 4, 3, 6, 5, 7];
        let mut wanted = Vec::new();
        for number in order {
            let read = number << 20..(number + 1) << 20;
            if streams.step(read, false) {
                wanted.extend(streams.wanted(Limits { end: 12_345_678, ..LIMITS }));
            }
        }
        assert!(wanted.windows(2).all(|pair| pair[0].end == pair[1].start));
        assert_eq!(wanted.last().unwrap().end, 12_345_678);
    }
}
