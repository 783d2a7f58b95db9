//! When to start a process again.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// First pause after a process that has never served; doubles up to [`MAX_PAUSE`].
const MIN_PAUSE: Duration = Duration::from_millis(100);
/// Longest pause.
const MAX_PAUSE: Duration = Duration::from_secs(5);
/// Processes started within [`SPAN`]; further ones wait.
const MAX_STARTS: usize = 120;
/// A minute.
const SPAN: Duration = Duration::from_secs(60);

/// Processes started, and when the next one may be.
#[derive(Debug, Default)]
pub(super) struct Tries {
    starts: VecDeque<Instant>,
    /// Processes in a row that have never served.
    failures: u32,
    due: Option<Instant>,
}

impl Tries {
    /// A process has ended that has served, or not.
    pub(super) fn failed(&mut self, served: bool) {
        let now = Instant::now();
        if !served {
            self.failures += 1;
        }
        let pause = match self.failures {
            0 => Duration::ZERO,
            count => (MIN_PAUSE * 2u32.pow((count - 1).min(8))).min(MAX_PAUSE),
        };
        while self.starts.front().is_some_and(|&start| now > start + SPAN) {
            self.starts.pop_front();
        }
        let full = self.starts.len() >= MAX_STARTS;
        let room = self.starts.front().filter(|_| full).map_or(now, |&start| start + SPAN);
        self.due = Some(room.max(now + pause));
    }

    /// How long until a process is to be started; `None` if none is.
    pub(super) fn due(&self) -> Option<Duration> {
        self.due.map(|due| due.saturating_duration_since(Instant::now()))
    }

    /// A process is being started.
    pub(super) fn begin(&mut self) {
        self.due = None;
        self.starts.push_back(Instant::now());
    }

    /// It serves.
    pub(super) fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// Whether the next process is the second, fourth, ... in a row after one that has not served.
    pub(super) fn is_odd(&self) -> bool {
        self.failures % 2 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_served_is_followed_at_once_and_who_did_not_later_and_later() {
        let mut tries = Tries::default();
        assert_eq!(tries.due(), None);
        tries.failed(true);
        assert_eq!(tries.due(), Some(Duration::ZERO));
        let pauses: Vec<Duration> = (0..8)
            .map(|_| {
                tries.begin();
                tries.failed(false);
                tries.due().unwrap()
            })
            .collect();
        assert!(pauses[0] > Duration::ZERO && pauses[0] <= MIN_PAUSE);
        // Looked at a moment after they were begun.
        let begun = pauses.iter().map(|pause| pause.as_millis().next_multiple_of(50));
        assert!(begun.is_sorted() && pauses[7] > MAX_PAUSE / 2 && pauses[7] <= MAX_PAUSE);
        tries.succeeded();
        tries.failed(true);
        assert_eq!(tries.due(), Some(Duration::ZERO));
    }

    #[test]
    fn starts_are_bounded() {
        let mut tries = Tries::default();
        (0..MAX_STARTS).for_each(|_| tries.begin());
        tries.failed(true);
        assert!(tries.due().unwrap() > SPAN / 2);
    }
}
