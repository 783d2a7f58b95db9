//! From what each rank has measured to the figure of all. Pure.

use super::Config;
use crate::record::{Cpu, Sample};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a rank has done in a phase; times in seconds since the barrier before it.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct Timing {
    /// Begin and end of open, and of the phases after it.
    pub open: [f64; 2],
    /// As above.
    pub transfer: [f64; 2],
    /// As above.
    pub close: [f64; 2],
    /// Transfers made.
    pub operations: u64,
    /// Operations done when the stonewall came, and the time.
    pub stonewall: Option<(u64, f64)>,
    /// Of the rank, and with the first rank's of the servers.
    pub cpu: Cpu,
}

/// The figure of a phase: from the first open to the last close, as IOR has it.
pub fn sample(config: &Config, write: bool, iteration: u32, all: &[Timing]) -> Sample {
    let least = |time: &dyn Fn(&Timing) -> f64| all.iter().map(time).fold(f64::MAX, f64::min);
    let most = |time: &dyn Fn(&Timing) -> f64| all.iter().map(time).fold(0.0, f64::max);
    let operations: u64 = all.iter().map(|timing| timing.operations).sum();
    let bytes = operations * config.transfer;
    let seconds = most(&|t| t.close[1]) - least(&|t| t.open[0]);
    let moving = most(&|t| t.transfer[1]) - least(&|t| t.transfer[0]);
    let latency = |t: &Timing| (t.transfer[1] - t.transfer[0]) / (t.operations.max(1) as f64);
    let mut cpu = all.first().map(|timing| timing.cpu.clone()).unwrap_or_default();
    cpu.load = all.iter().map(|timing| timing.cpu.load).sum();
    let mut detail: BTreeMap<String, f64> = [
        ("iops", operations as f64 / moving),
        ("latency", least(&latency)),
        ("open", most(&|t| t.open[1]) - least(&|t| t.open[0])),
        ("transfer", moving),
        ("close", most(&|t| t.close[1]) - least(&|t| t.close[0])),
    ]
    .map(|(name, value)| (name.to_string(), value))
    .into();
    if all.iter().any(|timing| timing.stonewall.is_some()) {
        let at_wall = |t: &Timing| t.stonewall.map_or(t.operations, |(done, _)| done);
        let before: u64 = all.iter().map(at_wall).sum();
        detail.insert("stonewall".into(), most(&|t| t.stonewall.map_or(0.0, |(_, time)| time)));
        detail.insert("stonewall_mib".into(), mib(before * config.transfer));
    }
    Sample {
        phase: if write { "write" } else { "read" }.into(),
        iteration,
        rate: mib(bytes) / seconds,
        unit: "MiB/s".into(),
        operations,
        bytes,
        seconds,
        detail,
        cpu,
        minor: false,
    }
}

/// Sentences about ranks that ended too far from the others (`-j`).
pub fn outliers(config: &Config, all: &[Timing]) -> Vec<String> {
    let mean = all.iter().map(|t| t.close[1]).sum::<f64>() / all.len().max(1) as f64;
    let off = all.iter().map(|timing| timing.close[1] - mean).enumerate();
    off.filter(|(_, off)| config.outlier > 0 && off.abs() > config.outlier as f64)
        .map(|(rank, off)| format!("rank {rank} was {off:+.2} s from the mean"))
        .collect()
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(open: f64, close: f64, operations: u64) -> Timing {
        Timing {
            open: [open, open + 0.5],
            transfer: [open + 0.5, close - 0.5],
            close: [close - 0.5, close],
            operations,
            ..Timing::default()
        }
    }

    #[test]
    fn from_the_first_open_to_the_last_close() {
        let config = Config::parse(["-t", "1m", "-j", "1"]).unwrap();
        let all = [rank(0.0, 4.0, 6), rank(1.0, 10.0, 14)];
        let sample = sample(&config, true, 3, &all);
        assert_eq!((sample.rate, sample.seconds, sample.bytes), (2.0, 10.0, 20 << 20));
        assert_eq!((sample.detail["transfer"], sample.detail["iops"]), (9.0, 20.0 / 9.0));
        assert_eq!((sample.detail["open"], sample.detail["close"]), (1.5, 6.5));
        assert_eq!(sample.detail["latency"], 0.5);
        assert_eq!(
            outliers(&config, &all),
            ["rank 0 was -3.00 s from the mean", "rank 1 was +3.00 s from the mean"]
        );
    }

    #[test]
    fn what_was_done_before_the_stonewall() {
        let config = Config::parse(["-t", "1m"]).unwrap();
        let walled = Timing { stonewall: Some((3, 2.0)), ..rank(0.0, 4.0, 6) };
        let sample = sample(&config, true, 0, &[walled, rank(0.0, 4.0, 6)]);
        assert_eq!((sample.detail["stonewall"], sample.detail["stonewall_mib"]), (2.0, 9.0));
    }
}
