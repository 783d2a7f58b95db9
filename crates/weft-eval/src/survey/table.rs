//! Lines as obdfilter-survey prints them, and the table of layers.

use super::sweep::Sweep;
use crate::record::{Record, Sample};

/// A line: a point with its phases.
pub fn row(point: &Sweep, targets: usize, samples: &[Sample]) -> String {
    let all = targets as u64 * point.size;
    let (objects, threads) = (u64::from(point.objects), u64::from(point.threads));
    let many = targets as u64;
    let mut line = format!(
        "ost {targets:2} sz {:8}K rsz {:4}K obj {:4} thr {:4}",
        all >> 10,
        point.record >> 10,
        objects * many,
        threads * many
    );
    for sample in samples {
        let detail = |name: &str| sample.detail.get(name).copied().unwrap_or(0.0);
        let (min, max) = (detail("min"), detail("max"));
        line += &format!(" {} {:7.2} [{min:7.2}, {max:7.2}]", sample.phase, sample.rate);
    }
    line + "\n"
}

/// A line: requests of so many threads to an MDT, each for so many files.
pub fn requests_row(threads: u32, files: u64, samples: &[Sample]) -> String {
    let mut line = format!("mdt  1 files {files:7} thr {threads:4}");
    for sample in samples {
        line += &format!(" {} {:8.0}", sample.phase, sample.rate);
    }
    line + "\n"
}

/// The layers of a record one below the other, by the phases whose rates are in `unit`: medians, and
/// what each loses to the one above it and to the first.
pub fn layers_table(record: &Record, unit: &str) -> String {
    let mut kinds: Vec<&str> = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    let phases = record.phases.iter().filter(|phase| phase.unit == unit);
    for (layer, kind) in phases.filter_map(|phase| phase.phase.split_once(": ")) {
        if !names.contains(&layer) {
            names.push(layer);
        }
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let mut text = format!("{:<34}", format!("layer ({unit})"));
    for kind in &kinds {
        text += &format!("{kind:>12}{:>9}{:>9}", "step", "of first");
    }
    text.push('\n');
    let rate = |layer: &str, kind: &str| {
        record.phase(&format!("{layer}: {kind}")).map(|phase| phase.rate.median)
    };
    for (number, layer) in names.iter().enumerate() {
        let mut line = format!("{layer:<34}");
        for kind in &kinds {
            let Some(own) = rate(layer, kind) else {
                line += &format!("{:>12}{:>9}{:>9}", "-", "-", "-");
                continue;
            };
            let above = names[..number].iter().rev().find_map(|name| rate(name, kind));
            let first = names.iter().find_map(|name| rate(name, kind)).unwrap_or(own);
            let step =
                above.map_or("-".into(), |above| format!("{:+.0}%", (own / above - 1.0) * 100.0));
            line += &format!("{own:>12.1}{step:>9}{:>8.0}%", own / first * 100.0);
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn lines_look_like_those_of_obdfilter_survey() {
        let point = Sweep { size: 1 << 30, record: 1 << 20, objects: 1, threads: 2, sync: false };
        let detail: BTreeMap<String, f64> =
            [("min".to_string(), 85.92), ("max".to_string(), 113.01)].into();
        let sample = Sample { phase: "write".into(), rate: 199.58, detail, ..Sample::default() };
        assert_eq!(
            row(&point, 2, &[sample]),
            "ost  2 sz  2097152K rsz 1024K obj    2 thr    4 write  199.58 [  85.92,  113.01]\n"
        );
    }

    #[test]
    fn lines_of_requests() {
        let sample =
            |phase: &str| Sample { phase: phase.into(), rate: 1234.5, ..Sample::default() };
        let line = requests_row(2, 100, &[sample("creation"), sample("stat")]);
        assert_eq!(line, "mdt  1 files     100 thr    2 creation     1234 stat     1234\n");
    }

    #[test]
    fn layers_tell_their_loss() {
        let mut record = Record::begin("survey", Vec::new(), serde_json::Value::Null);
        let unit = || "MiB/s".to_string();
        let sample = |phase: &str, rate| Sample {
            phase: phase.into(),
            rate,
            unit: unit(),
            ..Sample::default()
        };
        record.add([
            sample("disk: write", 100.0),
            sample("ost: write", 80.0),
            sample("fuse: write", 40.0),
        ]);
        let text = layers_table(&record, "MiB/s");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[2].split_whitespace().collect::<Vec<_>>(), ["ost", "80.0", "-20%", "80%"]);
        assert_eq!(
            lines[3].split_whitespace().collect::<Vec<_>>(),
            ["fuse", "40.0", "-50%", "40%"]
        );
    }
}
