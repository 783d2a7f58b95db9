//! The output of iozone in throughput mode.

use super::{number, strange};
use crate::record::Sample;
use std::io;

/// The passes.
///
/// # Errors
/// `InvalidData` where there are none.
pub fn parse(text: &str) -> io::Result<Vec<Sample>> {
    let mut samples: Vec<Sample> = Vec::new();
    for (name, value) in text.lines().filter_map(|line| line.split_once('=')) {
        let Some(value) = number(value) else { continue };
        let name = name.trim();
        if let Some(rest) = name.strip_prefix("Children see throughput for") {
            let phase: Vec<&str> = rest.split_whitespace().skip(1).collect();
            let (phase, unit) = (phase.join(" "), "kB/s".to_string());
            samples.push(Sample { phase, rate: value, unit, ..Sample::default() });
        } else if let Some(sample) = samples.last_mut() {
            let detail = match name.split_whitespace().next() {
                Some("Parent") => "parent",
                Some("Min") if name.contains("xfer") => "min_xfer",
                Some("Min") => "min",
                Some("Max") => "max",
                Some("Avg") => "avg",
                _ => continue,
            };
            sample.detail.insert(detail.into(), value);
        }
    }
    if samples.is_empty() { Err(strange("iozone")) } else { Ok(samples) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "
\tCommand line used: iozone -c -t1 -s 2048m -r 128k -i0 -i1
\tThroughput test with 1 process

\tChildren see throughput for  4 initial writers \t=  109333.84 kB/sec
\tParent sees throughput for  4 initial writers \t=  109326.48 kB/sec
\tMin throughput per process \t\t\t=   27333.84 kB/sec
\tMax throughput per process \t\t\t=   27333.84 kB/sec
\tAvg throughput per process \t\t\t=   27333.84 kB/sec
\tMin xfer \t\t\t\t\t= 2097152.00 kB

\tChildren see throughput for 4 re-readers \t=  111377.63 kB/sec
";

    #[test]
    fn takes_the_passes() {
        let samples = parse(OUTPUT).unwrap();
        assert_eq!(samples[0].phase, "initial writers");
        assert_eq!((samples[0].rate, samples[0].detail["min_xfer"]), (109_333.84, 2_097_152.0));
        assert_eq!((samples[1].phase.as_str(), samples[1].rate), ("re-readers", 111_377.63));
        assert!(parse("iozone: no such file").is_err());
    }
}
