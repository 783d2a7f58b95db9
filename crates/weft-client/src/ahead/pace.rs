//! How far ahead is enough: what is on its way while one range is being fetched.

use std::time::Duration;

/// Time over which the speed of a stream is taken, at least.
const SAMPLE: Duration = Duration::from_millis(20);
/// A pause of the reader longer than this begins a new sample.
const BREAK: Duration = Duration::from_secs(1);
/// What handing a range from one thread to another costs, and copying each byte once more, about.
const HANDING_OVER: Duration = Duration::from_micros(100);
const COPYING: f64 = 0.4e-9;
/// Slow answers, less the quick ones, from which on they count as slow, and the most that are remembered.
const SLOW: (u32, u32) = (2, 4);

/// Speed of the reader, and time that fetching takes.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// Bytes per second.
    speed: f64,
    /// Least time of a fetch, lately; none before the first.
    latency: Option<Duration>,
    since: Duration,
    bytes: u64,
    slow: u32,
}

impl Pace {
    /// Bytes were read.
    pub(crate) fn read(&mut self, bytes: u64, now: Duration) {
        let passed = now.saturating_sub(self.since);
        if passed > BREAK {
            (self.since, self.bytes) = (now, 0);
        } else if passed >= SAMPLE {
            let speed = self.bytes as f64 / passed.as_secs_f64();
            // The best of late counts: a reader that computes for a while comes back.
            self.speed = speed.max(self.speed * 0.9);
            (self.since, self.bytes) = (now, 0);
        }
        self.bytes += bytes;
    }

    /// A reader had to wait so long for so many bytes, or would have had to.
    pub(crate) fn waited(&mut self, bytes: u64, took: Duration) {
        let bearable = HANDING_OVER + Duration::from_secs_f64(bytes as f64 * COPYING);
        let slow = if took > bearable { self.slow + 1 } else { self.slow.saturating_sub(1) };
        self.slow = slow.min(SLOW.1);
    }

    /// Whether reading ahead gains more than it costs: it does not where answers come about as fast as memory is
    /// copied.
    pub(crate) const fn pays(&self) -> bool {
        self.slow >= SLOW.0
    }

    /// A range was fetched.
    pub(crate) fn fetched(&mut self, bytes: u64, took: Duration) {
        self.waited(bytes, took);
        let risen = self.latency.map(|known| known + known / 16);
        self.latency = Some(risen.map_or(took, |known| known.min(took)));
    }

    /// Twice the bytes that are read while something is fetched, so that the window of a stream that waits for
    /// its data grows until it does not, and no further.
    pub(crate) fn window(&self) -> u64 {
        let latency = self.latency.unwrap_or_default().as_secs_f64();
        (2.0 * self.speed * latency) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The window that a reader without work of its own comes to, when fetching takes `latency` and no more
    /// than `most` bytes per second come.
    fn settled(latency: Duration, most: f64) -> u64 {
        let (mut pace, mut now) = (Pace::default(), Duration::from_secs(1));
        pace.fetched(1 << 20, latency);
        for _ in 0..200 {
            let window = pace.window().max(2 << 20);
            let speed = (window as f64 / latency.as_secs_f64()).min(most);
            pace.read(1 << 20, now);
            now += Duration::from_secs_f64((1 << 20) as f64 / speed);
        }
        pace.window()
    }

    #[test]
    fn twice_bandwidth_times_latency() {
        let near = settled(Duration::from_millis(10), 400e6);
        assert!((7_000_000..9_000_000).contains(&near), "{near}");
        let far = settled(Duration::from_millis(100), 200e6);
        assert!((35_000_000..45_000_000).contains(&far), "{far}");
    }

    #[test]
    fn it_does_not_pay_where_answers_are_quick() {
        let mut pace = Pace::default();
        (0..9).for_each(|_| pace.waited(64 << 10, Duration::from_micros(60)));
        assert!(!pace.pays());
        (0..2).for_each(|_| pace.waited(64 << 10, Duration::from_micros(200)));
        assert!(pace.pays());
        (0..9).for_each(|_| pace.waited(1 << 20, Duration::from_micros(400)));
        assert!(!pace.pays());
    }

    #[test]
    fn a_slow_reader_needs_little() {
        let (mut pace, mut now) = (Pace::default(), Duration::ZERO);
        pace.fetched(1 << 20, Duration::from_millis(10));
        for _ in 0..20 {
            pace.read(1 << 20, now);
            now += Duration::from_millis(100);
        }
        assert!(pace.window() < 300_000, "{}", pace.window());
    }
}
