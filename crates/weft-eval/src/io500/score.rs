//! The score: geometric means of bandwidths and of rates, and of both.

use crate::record::stats::geometric_mean;
use crate::record::{Record, Sample};
use serde::{Deserialize, Serialize};

/// The phases in their order.
pub const PHASES: [&str; 12] = [
    "ior-easy-write",
    "mdtest-easy-write",
    "ior-hard-write",
    "mdtest-hard-write",
    "find",
    "ior-easy-read",
    "mdtest-easy-stat",
    "ior-hard-read",
    "mdtest-hard-stat",
    "mdtest-easy-delete",
    "mdtest-hard-read",
    "mdtest-hard-delete",
];

/// The score.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Score {
    /// Geometric mean of the phases of ior, GiB/s.
    pub bandwidth: f64,
    /// Geometric mean of the others, kIOPS.
    pub metadata: f64,
    /// Square root of their product.
    pub total: f64,
}

impl Score {
    /// Of a record with all phases; none where one is missing.
    pub fn of(record: &Record) -> Option<Score> {
        let rates = |bandwidth: bool| -> Option<Vec<f64>> {
            let wanted = PHASES.iter().filter(|name| name.starts_with("ior") == bandwidth);
            wanted.map(|name| Some(record.phase(name)?.rate.mean)).collect()
        };
        let bandwidth = geometric_mean(&rates(true)?)?;
        let metadata = geometric_mean(&rates(false)?)?;
        Some(Score { bandwidth, metadata, total: (bandwidth * metadata).sqrt() })
    }
}

/// A line of the results.
pub fn result_line(sample: &Sample) -> String {
    let Sample { phase, rate, unit, seconds, .. } = sample;
    format!("[RESULT] {phase:>20} {rate:>15.6} {unit} : time {seconds:.3} seconds\n")
}

/// The last line.
pub fn score_line(score: &Score) -> String {
    let Score { bandwidth, metadata, total } = score;
    format!(
        "[SCORE ] Bandwidth {bandwidth:.6} GiB/s : IOPS {metadata:.6} kiops : TOTAL {total:.6} \
         (a look-alike of the IO500, not a submission)\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_formula() {
        let mut record = Record::begin("io500", Vec::new(), serde_json::Value::Null);
        assert_eq!(Score::of(&record), None);
        let rate = |name: &str| if name.starts_with("ior") { 2.0 } else { 8.0 };
        let sample =
            |name: &&str| Sample { phase: name.to_string(), rate: rate(name), ..Sample::default() };
        record.add(PHASES.iter().map(sample));
        let score = Score::of(&record).unwrap();
        assert!((score.bandwidth - 2.0).abs() < 1e-9 && (score.metadata - 8.0).abs() < 1e-9);
        assert!((score.total - 4.0).abs() < 1e-9);
    }

    #[test]
    fn lines_look_like_those_of_the_io500() {
        let sample = Sample {
            phase: "ior-easy-write".into(),
            rate: 0.146_316,
            unit: "GiB/s".into(),
            seconds: 300.331,
            ..Sample::default()
        };
        let line = "[RESULT]       ior-easy-write        0.146316 GiB/s : time 300.331 seconds\n";
        assert_eq!(result_line(&sample), line);
    }
}
