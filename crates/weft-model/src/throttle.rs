//! The arithmetic of a device of fixed speed: when it is done with what it was given.
//!
//! A device serves one operation after another, each for as long as its bytes take at the bandwidth
//! plus its share of the operations per second, and answers after a latency during which it serves
//! others. Whoever waits until then sees that speed, however fast the disk below is.

use crate::units::{format_duration, format_size, parse_duration, parse_size};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Smallest bandwidth, bytes per second: a request of 4 MiB ends in time.
const MIN_BANDWIDTH: u64 = 1 << 20;

/// The speed of a device. What is zero is not limited.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Speed {
    /// Bytes per second, read and written together; at least 1 MiB.
    pub bandwidth: u64,
    /// Operations per second.
    pub operations: u64,
    /// From the end of an operation to its answer.
    pub latency: Duration,
}

impl Speed {
    /// For how long the device serves nobody else.
    fn service_time(&self, bytes: u64) -> Duration {
        let share = |part: u64, whole: u64| match whole {
            0 => Duration::ZERO,
            _ => Duration::from_secs_f64(part as f64 / whole as f64),
        };
        share(bytes, self.bandwidth) + share(1, self.operations)
    }
}

/// Reads `200M,5000ops,100us`: bandwidth in bytes per second, operations per second, latency; each may
/// be missing.
impl FromStr for Speed {
    type Err = String;

    fn from_str(text: &str) -> Result<Speed, String> {
        let bad = |part: &str| {
            format!(
                "not a speed: {part:?} in {text:?}; expected as 200M,5000ops,100us: bytes and operations per second, latency"
            )
        };
        let mut speed = Speed::default();
        for part in text.split(',').map(str::trim) {
            if let Some(operations) = part.strip_suffix("ops") {
                speed.operations = operations.trim().parse().map_err(|_| bad(part))?;
            } else if part.ends_with('s') {
                speed.latency = parse_duration(part).map_err(|_| bad(part))?;
            } else {
                speed.bandwidth = parse_size(part).map_err(|_| bad(part))?;
                if speed.bandwidth < MIN_BANDWIDTH {
                    return Err(format!("{part:?}: a bandwidth is at least 1M per second"));
                }
            }
        }
        if speed == Speed::default() {
            return Err(bad(text));
        }
        Ok(speed)
    }
}

impl TryFrom<String> for Speed {
    type Error = String;

    fn try_from(text: String) -> Result<Speed, String> {
        text.parse()
    }
}

impl From<Speed> for String {
    fn from(speed: Speed) -> String {
        speed.to_string()
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            (self.bandwidth > 0).then(|| format_size(self.bandwidth)),
            (self.operations > 0).then(|| format!("{}ops", self.operations)),
            (!self.latency.is_zero()).then(|| format_duration(self.latency)),
        ];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join(","))
    }
}

/// A device of fixed speed.
#[derive(Clone, Copy, Debug)]
pub struct Throttle {
    speed: Speed,
    /// When it has served all that it was given.
    free_at: Duration,
}

impl Throttle {
    /// An idle device.
    pub const fn new(speed: Speed) -> Throttle {
        Throttle { speed, free_at: Duration::ZERO }
    }

    /// How long what comes `now` would wait before it is served.
    pub const fn queue(&self, now: Duration) -> Duration {
        self.free_at.saturating_sub(now)
    }

    /// Gives it an operation that came at `now`. The time of the answer.
    pub fn answer_at(&mut self, now: Duration, bytes: u64) -> Duration {
        self.free_at = self.free_at.max(now) + self.speed.service_time(bytes);
        self.free_at + self.speed.latency
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Bytes of 1 MiB requests that `clients`, each with one under way, are served in `span`.
    fn served(speed: Speed, clients: usize, span: Duration) -> u64 {
        let mut device = Throttle::new(speed);
        let mut ready = vec![ms(1000); clients];
        let mut bytes = 0;
        loop {
            let next = (0..clients).min_by_key(|&i| ready[i]).unwrap();
            if ready[next] >= ms(1000) + span {
                return bytes;
            }
            ready[next] = device.answer_at(ready[next], 1 << 20);
            bytes += u64::from(ready[next] <= ms(1000) + span) << 20;
        }
    }

    fn close(a: f64, b: f64) -> bool {
        (a / b - 1.0).abs() < 0.03
    }

    #[test]
    fn the_bandwidth_is_shared_and_reached() {
        let speed = Speed { bandwidth: 200 << 20, ..Speed::default() };
        for clients in [1, 4, 32] {
            let got = served(speed, clients, ms(4000));
            assert!(close(got as f64, (800 << 20) as f64), "{clients} clients: {got}");
        }
    }

    #[test]
    fn latency_costs_a_single_client_only() {
        let speed = Speed { bandwidth: 200 << 20, latency: ms(5), ..Speed::default() };
        let alone = served(speed, 1, ms(4000)) >> 20;
        let many = served(speed, 8, ms(4000)) >> 20;
        assert!(close(alone as f64, 400.0) && close(many as f64, 800.0), "{alone} {many}");
    }

    #[test]
    fn operations_are_limited_besides_bytes() {
        let speed = Speed { operations: 500, ..Speed::default() };
        let mut device = Throttle::new(speed);
        let last = (0..1000).map(|_| device.answer_at(ms(1000), 1 << 30)).last().unwrap();
        assert!(close((last - ms(1000)).as_secs_f64(), 2.0), "{last:?}");
        assert!(device.queue(ms(1000)) > ms(1900));
        assert_eq!(device.queue(ms(9000)), Duration::ZERO);
    }

    #[test]
    fn an_idle_time_is_not_saved_up() {
        let mut device = Throttle::new(Speed { bandwidth: 100 << 20, ..Speed::default() });
        device.answer_at(ms(1000), 1 << 20);
        let burst = (0..100).map(|_| device.answer_at(ms(60_000), 1 << 20)).last().unwrap();
        assert!(burst >= ms(60_990), "{burst:?}");
    }

    #[test]
    fn speeds_are_read_as_they_are_written() {
        for text in ["200MiB,5000ops,100us", "1GiB", "40ops", "2ms"] {
            assert_eq!(text.parse::<Speed>().unwrap().to_string(), text);
        }
        assert_eq!("200M".parse::<Speed>().unwrap().bandwidth, 200 << 20);
        for bad in ["", "fast", "0", "100K", "xops", "1M,,"] {
            assert!(bad.parse::<Speed>().is_err(), "{bad}");
        }
    }
}
