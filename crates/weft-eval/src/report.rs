//! Tables: medians with their range, and ratios to the first place.

use crate::contest::Outcome;
use crate::workload::Phase;
use std::collections::BTreeMap;

const GIB: f64 = (1u64 << 30) as f64;

/// One run of one phase.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// What was done in which time.
    pub outcome: Outcome,
    /// Processor seconds of this process.
    pub own_cpu: f64,
    /// Processor seconds of the servers.
    pub server_cpu: f64,
}

impl Sample {
    /// MiB or operations per second.
    fn rate(&self, phase: Phase) -> f64 {
        let Outcome { done, seconds } = self.outcome;
        let mib = done.bytes as f64 / (1 << 20) as f64;
        if phase.is_bulk() { mib / seconds } else { done.operations as f64 / seconds }
    }

    /// GiB or thousands of operations.
    fn amount(&self, phase: Phase) -> f64 {
        let done = self.outcome.done;
        if phase.is_bulk() { done.bytes as f64 / GIB } else { done.operations as f64 / 1000.0 }
    }
}

/// Samples by phase and place.
pub struct Report {
    phases: Vec<Phase>,
    places: Vec<String>,
    samples: BTreeMap<(usize, usize), Vec<Sample>>,
}

impl Report {
    /// An empty one.
    pub fn new(phases: &[Phase], places: Vec<String>) -> Report {
        Report { phases: phases.to_vec(), places, samples: BTreeMap::new() }
    }

    /// Adds a sample. Where a phase is run several times, all count as one.
    pub fn add(&mut self, phase: Phase, place: usize, sample: Sample) {
        let row = self.phases.iter().position(|&p| p == phase).unwrap_or_default();
        self.samples.entry((row, place)).or_default().push(sample);
    }

    /// Rates: ops/s, or MiB/s for whole files.
    pub fn rates(&self) -> String {
        self.table(34, |phase, samples, base| {
            let mut rates: Vec<f64> = samples.iter().map(|sample| sample.rate(phase)).collect();
            rates.sort_by(f64::total_cmp);
            let middle = rates[rates.len() / 2];
            let base = *base.get_or_insert(middle);
            let range = format!("{middle:.0} ({:.0}-{:.0})", rates[0], rates[rates.len() - 1]);
            format!("{range:>27} {:>5.2}x", middle / base)
        })
    }

    /// Processor seconds per GiB, or per 1,000 operations: of this process + of the servers.
    pub fn cpu(&self) -> String {
        self.table(20, |phase, samples, _| {
            let amount: f64 = samples.iter().map(|sample| sample.amount(phase)).sum();
            let own: f64 = samples.iter().map(|sample| sample.own_cpu).sum();
            let theirs: f64 = samples.iter().map(|sample| sample.server_cpu).sum();
            let text = format!("{:.3} + {:.3}", own / amount, theirs / amount);
            format!("{text:>20}")
        })
    }

    /// `cell` may keep something of the row's first place for the others.
    fn table(
        &self,
        width: usize,
        cell: impl Fn(Phase, &[Sample], &mut Option<f64>) -> String,
    ) -> String {
        let heads: String = self.places.iter().map(|name| format!("{name:>width$}")).collect();
        let mut text = format!("{:<14}{heads}\n", "phase");
        for (row, &phase) in self.phases.iter().enumerate() {
            let mut base = None;
            let samples =
                (0..self.places.len()).filter_map(|place| self.samples.get(&(row, place)));
            let cells: String = samples.map(|samples| cell(phase, samples, &mut base)).collect();
            if !cells.is_empty() {
                text += &format!("{phase:<14}{cells}\n");
            }
        }
        text
    }
}
