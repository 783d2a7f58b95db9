//! Counts of one operation of one target.

use super::FigureKind;
use super::render::{Family, Shown};
use crate::message::Request;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use weft_model::{ErrorKind, TargetId};

/// Binary logarithm of the lowest bound of a histogram, nanoseconds: 128 ns.
const FIRST_BOUND: u32 = 7;
/// Binary logarithm of the highest one: 34 s.
const LAST_BOUND: u32 = 35;
/// One bucket for each bound and one for what is above.
const BUCKETS: usize = (LAST_BOUND - FIRST_BOUND + 2) as usize;

/// A latency histogram with powers of two as bounds. The number of calls is the sum of the buckets,
/// so that a call costs two additions.
#[derive(Default)]
pub(super) struct Histogram {
    buckets: [AtomicU64; BUCKETS],
    sum_nanos: AtomicU64,
}

/// A histogram at one instant.
#[derive(Clone, Debug)]
pub(super) struct Distribution {
    /// Upper bound (seconds) and calls that took at most that long; the last bound is infinite.
    pub cumulative: Vec<(f64, u64)>,
    /// Seconds.
    pub sum: f64,
}

impl Histogram {
    pub(super) fn add(&self, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.buckets[bucket(nanos)].fetch_add(1, Relaxed);
        self.sum_nanos.fetch_add(nanos, Relaxed);
    }

    fn distribution(&self) -> Distribution {
        let mut calls = 0;
        let cumulative = self.buckets.iter().enumerate().map(|(i, bucket)| {
            calls += bucket.load(Relaxed);
            let last = i + 1 == BUCKETS;
            let bound =
                if last { f64::INFINITY } else { (1u64 << (FIRST_BOUND as usize + i)) as f64 };
            (bound / 1e9, calls)
        });
        Distribution {
            cumulative: cumulative.collect(),
            sum: self.sum_nanos.load(Relaxed) as f64 / 1e9,
        }
    }
}

impl Distribution {
    /// Number of calls.
    pub(super) fn count(&self) -> u64 {
        self.cumulative.last().map_or(0, |&(_, calls)| calls)
    }

    /// Upper bound of the time within which the given part of the calls ended, seconds.
    pub(super) fn quantile(&self, part: f64) -> f64 {
        let wanted = (self.count() as f64 * part).ceil() as u64;
        self.cumulative.iter().find(|&&(_, calls)| calls >= wanted).map_or(0.0, |&(bound, _)| bound)
    }
}

/// The bucket whose bound is the lowest not below `nanos`.
fn bucket(nanos: u64) -> usize {
    let log_up = u64::BITS - nanos.saturating_sub(1).leading_zeros();
    (log_up.saturating_sub(FIRST_BOUND) as usize).min(BUCKETS - 1)
}

/// Bytes of bulk data both ways.
#[derive(Default)]
pub(super) struct Bytes {
    received: AtomicU64,
    sent: AtomicU64,
}

impl Bytes {
    pub(super) fn add(&self, received: u64, sent: u64) {
        if received != 0 {
            self.received.fetch_add(received, Relaxed);
        }
        if sent != 0 {
            self.sent.fetch_add(sent, Relaxed);
        }
    }

    pub(super) fn received(&self) -> u64 {
        self.received.load(Relaxed)
    }

    pub(super) fn sent(&self) -> u64 {
        self.sent.load(Relaxed)
    }

    pub(super) fn reset(&self) {
        self.received.store(0, Relaxed);
        self.sent.store(0, Relaxed);
    }
}

/// Kinds of errors, grouped by who has to look at them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ErrorClass {
    /// An ordinary answer to what an application tried.
    Answer,
    /// Space or quota is used up.
    Space,
    /// The server has too much to do or is not ready.
    Busy,
    /// The asker had an old map.
    Routing,
    /// A session or a key is missing.
    Session,
    /// Two versions, or a bug.
    Protocol,
    /// Stored data is damaged.
    Damage,
    /// The disk or the network.
    Io,
}

impl ErrorClass {
    const NAMES: [&str; 8] =
        ["answer", "space", "busy", "routing", "session", "protocol", "damage", "io"];

    pub(super) fn of(kind: ErrorKind) -> ErrorClass {
        use ErrorKind::*;
        match kind {
            Perm | NotFound | Interrupted | NoSuchOffset | TooBig | BadHandle | WouldBlock
            | Access | Busy | Exists | CrossDevice | NotDir | IsDir | Invalid | FileTooBig
            | ReadOnly | TooManyLinks | Range | Deadlock | NameTooLong | NotEmpty | Loop
            | NoData | NotSupported | Stale | NeedGroups | NotInline => ErrorClass::Answer,
            NoSpace | Quota => ErrorClass::Space,
            NoMemory | TimedOut | NotReady | Overloaded => ErrorClass::Busy,
            StaleMap | WrongNode => ErrorClass::Routing,
            Denied | NoSession | Fenced => ErrorClass::Session,
            NotImplemented | Protocol | Version => ErrorClass::Protocol,
            Checksum | Corrupt => ErrorClass::Damage,
            Io | Disconnected | Poisoned => ErrorClass::Io,
        }
    }
}

/// Errors by class.
#[derive(Default)]
pub(super) struct ErrorCounts([AtomicU64; ErrorClass::NAMES.len()]);

impl ErrorCounts {
    pub(super) fn add(&self, class: ErrorClass) {
        self.0[class as usize].fetch_add(1, Relaxed);
    }

    /// Classes that occurred.
    fn seen(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = self.0.iter().map(|count| count.load(Relaxed));
        ErrorClass::NAMES.into_iter().zip(counts).filter(|&(_, count)| count > 0)
    }

    /// Those of requests that reached no target.
    pub(super) fn family(&self) -> Family {
        let mut family = Family::new(
            "weft_requests_refused_total",
            "Requests refused before they reached a target, by class of error.",
            FigureKind::Counter,
        );
        for (class, count) in self.seen() {
            family.add(vec![("class", class.into())], count as f64);
        }
        family
    }
}

/// Counts of one operation.
pub(super) struct OpMetrics {
    name: &'static str,
    pub(super) latency: Histogram,
    pub(super) bytes: Bytes,
    pub(super) errors: ErrorCounts,
}

/// Counts of one target. Operations take memory from their first call on.
pub(super) struct TargetMetrics([OnceLock<Box<OpMetrics>>; 256]);

impl Default for TargetMetrics {
    fn default() -> TargetMetrics {
        TargetMetrics([const { OnceLock::new() }; 256])
    }
}

impl TargetMetrics {
    /// The counts of a request. The lower byte of its number names it among those of its target.
    pub(super) fn op(&self, request: &Request) -> &OpMetrics {
        self.0[usize::from(request.number() as u8)].get_or_init(|| {
            Box::new(OpMetrics {
                name: request.name(),
                latency: Histogram::default(),
                bytes: Bytes::default(),
                errors: ErrorCounts::default(),
            })
        })
    }
}

/// The figures of all targets.
pub(super) fn families(targets: &[(TargetId, std::sync::Arc<TargetMetrics>)]) -> Vec<Family> {
    let counter = |name, help| Family::new(name, help, FigureKind::Counter);
    let mut latency = Family::histogram(
        "weft_request_duration_seconds",
        "Time from taking a request up to having its answer.",
    );
    let mut errors =
        counter("weft_request_errors_total", "Requests that failed, by class of error.");
    let mut received =
        counter("weft_received_bytes_total", "Bytes of file data that requests brought.");
    let mut sent = counter("weft_sent_bytes_total", "Bytes of file data that answers took along.");
    for (target, counts) in targets {
        for op in counts.0.iter().filter_map(OnceLock::get) {
            let labels = vec![("target", target.to_string()), ("op", op.name.to_string())];
            for (class, count) in op.errors.seen() {
                let mut labels = labels.clone();
                labels.push(("class", class.into()));
                errors.add(labels, count as f64);
            }
            for (family, bytes) in
                [(&mut received, op.bytes.received()), (&mut sent, op.bytes.sent())]
            {
                if bytes > 0 {
                    family.add(labels.clone(), bytes as f64);
                }
            }
            latency.samples.push((labels, Shown::Distribution(op.latency.distribution())));
        }
    }
    vec![latency, errors, received, sent]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::ALL;
    use std::collections::HashSet;

    #[test]
    fn bounds_are_inclusive() {
        assert_eq!((bucket(0), bucket(1), bucket(128), bucket(129)), (0, 0, 0, 1));
        assert_eq!((bucket(256), bucket(257)), (1, 2));
        assert_eq!((bucket(1 << 35), bucket((1 << 35) + 1)), (BUCKETS - 2, BUCKETS - 1));
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_are_upper_bounds() {
        let histogram = Histogram::default();
        for nanos in [100, 1000, 1000, 1_000_000] {
            histogram.add(Duration::from_nanos(nanos));
        }
        let distribution = histogram.distribution();
        assert_eq!(distribution.count(), 4);
        assert_eq!(distribution.quantile(0.5), 1024e-9);
        assert_eq!(distribution.quantile(0.99), 1048576e-9);
    }

    #[test]
    fn lower_bytes_name_the_operations_of_a_target() {
        let mut seen = HashSet::new();
        for &(number, name) in ALL {
            assert!(seen.insert((number >> 8, number as u8)), "{name}");
        }
    }
}
