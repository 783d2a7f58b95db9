//! What is kept of a run: everything needed to judge its figures and to do it again.
//!
//! One run of one tool makes one [`Record`], whatever the tool: phases, repetitions, units, and the
//! conditions they were measured under. Tables and plots are drawn from it alone.

mod machine;
mod place;
pub mod stats;

pub use machine::{Machine, load_average, memory};
pub use place::Place;
pub use stats::Stats;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// Version of the form of a [`Record`]; raised when a reader of the old form would misread it.
pub const FORMAT: u32 = 1;

/// One run of one tool.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Record {
    /// [`FORMAT`].
    pub format: u32,
    /// Name of the tool: `ior`, `mdtest`, `iozone`, `survey`, `io500`, `fio`.
    pub tool: String,
    /// What ran: `weft 0.1.0`, or the real tool's name and version.
    pub program: String,
    /// Commit it was built from, where the build knew.
    pub commit: Option<String>,
    /// The command line that does it again.
    pub command: Vec<String>,
    /// The tool's settings, with all defaults filled in, by the tool's own names.
    pub settings: Value,
    /// When it began, seconds since 1970.
    pub started: u64,
    /// Time of all of it, seconds.
    pub seconds: f64,
    /// The directories measured.
    pub places: Vec<Place>,
    /// The machine of the first rank.
    pub machine: Machine,
    /// Load average (1, 5 and 15 minutes) before the run.
    pub load_before: [f64; 3],
    /// Who did it.
    pub ranks: Ranks,
    /// What was done to caches.
    pub caches: Caches,
    /// Whether bringing data to stable storage is inside the times.
    pub fsync: Fsync,
    /// Every phase of every iteration, in order.
    pub samples: Vec<Sample>,
    /// By phase, in the order of first appearance.
    pub phases: Vec<Phase>,
    /// How far repeated figures lie apart, and what was done about it.
    pub noise: Noise,
    /// Anything a reader must know to judge the figures; one sentence each.
    pub notes: Vec<String>,
}

/// Who did it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Ranks {
    /// How many.
    pub count: u32,
    /// `processes`, `threads`, `hosts` or `mpi`.
    pub kind: String,
    /// Host of each, in order.
    pub hosts: Vec<String>,
}

/// What was done to caches before phases that read.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Caches {
    /// Whether the run was asked to empty them.
    pub asked: bool,
    /// Whether the page cache of this machine was emptied before every phase that reads.
    pub dropped: bool,
    /// What a reader has to know, as a sentence.
    pub note: String,
}

/// Whether stable storage is inside the times.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Fsync {
    /// Whether an fsync is inside the times of phases that write.
    pub included: bool,
    /// Which, as a sentence.
    pub note: String,
}

/// One phase of one iteration.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Sample {
    /// Name as the tool has it: `write`, `File creation`.
    pub phase: String,
    /// Number of the iteration, from 0. Those after the number asked for were added because of noise.
    pub iteration: u32,
    /// The figure that counts, in `unit`.
    pub rate: f64,
    /// `MiB/s`, `kB/s`, `GiB/s`, `ops/s`, `kIOPS`.
    pub unit: String,
    /// Operations done by all ranks.
    pub operations: u64,
    /// Bytes moved by all ranks.
    pub bytes: u64,
    /// From the common start to the last end, seconds.
    pub seconds: f64,
    /// Further figures by name, such as `open`, `latency` or `stonewall`; times in seconds.
    pub detail: BTreeMap<String, f64>,
    /// Processor time.
    pub cpu: Cpu,
    /// Too short to judge noise by, such as the removal of a few directories.
    #[serde(default)]
    pub minor: bool,
}

/// Processor time of a phase, seconds.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Cpu {
    /// Of the ranks, user and system.
    pub load: f64,
    /// Of the processes that serve the file system on the machine of the first rank, by name; those
    /// that were found. A client in FUSE is one of them. Empty where none were known.
    pub servers: BTreeMap<String, f64>,
}

impl Cpu {
    /// Of all servers.
    pub fn served(&self) -> f64 {
        self.servers.values().sum()
    }
}

/// All iterations of a phase.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Phase {
    /// Its name.
    pub phase: String,
    /// Unit of the rates.
    pub unit: String,
    /// Of the rates.
    pub rate: Stats,
    /// Processor seconds of ranks and of servers per GiB moved, where bytes moved.
    pub cpu_per_gib: Option<[f64; 2]>,
    /// Processor seconds of ranks and of servers per 1,000 operations.
    pub cpu_per_1000: Option<[f64; 2]>,
}

/// How far repeated figures lie apart.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Noise {
    /// Spread from which a run counts as noisy: (max - min) / mean.
    pub threshold: f64,
    /// The largest spread of any phase that counts; none with a single iteration.
    pub spread: Option<f64>,
    /// Iterations added because of it.
    pub repeated: u32,
}

impl Record {
    /// A record of a run that begins now, without results.
    pub fn begin(tool: &str, command: Vec<String>, settings: Value) -> Record {
        Record {
            format: FORMAT,
            tool: tool.into(),
            program: format!("weft {}", env!("CARGO_PKG_VERSION")),
            commit: None,
            command,
            settings,
            started: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs(),
            seconds: 0.0,
            places: Vec::new(),
            machine: Machine::here(),
            load_before: load_average(),
            ranks: Ranks::default(),
            caches: Caches::default(),
            fsync: Fsync::default(),
            samples: Vec::new(),
            phases: Vec::new(),
            noise: Noise::default(),
            notes: Vec::new(),
        }
    }

    /// Takes samples in and works out the phases and the spread.
    pub fn add(&mut self, samples: impl IntoIterator<Item = Sample>) {
        self.samples.extend(samples);
        let mut names: Vec<&str> = Vec::new();
        for sample in &self.samples {
            if !names.contains(&sample.phase.as_str()) {
                names.push(&sample.phase);
            }
        }
        self.phases = names.into_iter().map(|name| self.summary(name)).collect();
        let minor = |name: &str| self.of(name).any(|sample| sample.minor);
        let judged = self.phases.iter().filter(|phase| !minor(&phase.phase));
        let spreads = judged.filter_map(|phase| phase.rate.spread());
        self.noise.spread = spreads.reduce(f64::max);
    }

    /// The figures of a phase, in the order of iterations.
    pub fn of<'a>(&'a self, phase: &'a str) -> impl Iterator<Item = &'a Sample> + 'a {
        self.samples.iter().filter(move |sample| sample.phase == phase)
    }

    /// The summary of a phase.
    pub fn phase(&self, name: &str) -> Option<&Phase> {
        self.phases.iter().find(|phase| phase.phase == name)
    }

    fn summary(&self, name: &str) -> Phase {
        let all: Vec<&Sample> = self.of(name).collect();
        let (load, served) =
            all.iter().fold((0.0, 0.0), |(a, b), s| (a + s.cpu.load, b + s.cpu.served()));
        let per = |amount: f64| (amount > 0.0).then(|| [load / amount, served / amount]);
        let bytes: u64 = all.iter().map(|sample| sample.bytes).sum();
        let operations: u64 = all.iter().map(|sample| sample.operations).sum();
        Phase {
            phase: name.into(),
            unit: all.first().map(|sample| sample.unit.clone()).unwrap_or_default(),
            rate: Stats::of(all.iter().map(|sample| sample.rate)),
            cpu_per_gib: per(bytes as f64 / (1u64 << 30) as f64),
            cpu_per_1000: per(operations as f64 / 1000.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(phase: &str, iteration: u32, rate: f64) -> Sample {
        let cpu = Cpu { load: 1.0, servers: [("ost".to_string(), 3.0)].into() };
        let (unit, bytes, operations) = ("MiB/s".into(), 1 << 30, 500);
        let seconds = 1.0;
        Sample {
            phase: phase.into(),
            iteration,
            rate,
            unit,
            operations,
            bytes,
            seconds,
            cpu,
            ..Sample::default()
        }
    }

    #[test]
    fn sums_up_by_phase() {
        let mut record = Record::begin("ior", vec!["ior".into()], Value::Null);
        record.add([sample("write", 0, 100.0), sample("read", 0, 10.0), sample("write", 1, 300.0)]);
        assert_eq!(
            record.phases.iter().map(|p| p.phase.as_str()).collect::<Vec<_>>(),
            ["write", "read"]
        );
        let write = record.phase("write").unwrap();
        assert_eq!((write.rate.max, write.rate.min, write.rate.mean), (300.0, 100.0, 200.0));
        assert_eq!(write.cpu_per_gib, Some([1.0, 3.0]));
        assert_eq!(write.cpu_per_1000, Some([2.0, 6.0]));
        assert_eq!(record.noise.spread, Some(1.0));
    }

    #[test]
    fn survives_json() {
        let mut record = Record::begin("ior", vec!["ior".into()], serde_json::json!({"b": 1}));
        record.add([sample("write", 0, 100.0)]);
        let text = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), record);
    }
}
