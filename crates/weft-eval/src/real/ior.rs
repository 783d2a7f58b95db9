//! The output of IOR 3 and 4.

use super::{number, strange};
use crate::record::Sample;
use std::collections::BTreeMap;
use std::io;

/// Name and version, as it says itself.
pub fn version(text: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with("IOR-"))?;
    line.split(':').next().map(String::from)
}

/// The lines of the results.
///
/// # Errors
/// `InvalidData` where there are none.
pub fn parse(text: &str) -> io::Result<Vec<Sample>> {
    // The columns differ between versions, so they are found by their names.
    let head =
        text.lines().find(|line| line.starts_with("access")).ok_or_else(|| strange("ior"))?;
    let columns: Vec<&str> = head.split_whitespace().collect();
    let samples: Vec<Sample> = text.lines().filter_map(|line| sample(&columns, line)).collect();
    if samples.is_empty() { Err(strange("ior")) } else { Ok(samples) }
}

fn sample(columns: &[&str], line: &str) -> Option<Sample> {
    let cells: Vec<&str> = line.split_whitespace().collect();
    let phase = *cells.first()?;
    if !["write", "read"].contains(&phase) || cells.len() != columns.len() {
        return None;
    }
    let cell = |name: &str| {
        let column = columns.iter().position(|column| column.starts_with(name))?;
        number(cells[column])
    };
    let (rate, seconds) = (cell("bw(MiB/s)")?, cell("total(s)")?);
    let bytes = (rate * seconds * f64::from(1 << 20)).round() as u64;
    let names = ["IOPS", "Latency", "open", "wr/rd", "close"];
    let ours = ["iops", "latency", "open", "transfer", "close"];
    let found =
        names.iter().zip(ours).filter_map(|(name, own)| Some((own.to_string(), cell(name)?)));
    let detail: BTreeMap<String, f64> = found.collect();
    let transfer = cell("xfer(KiB)")? * 1024.0;
    Some(Sample {
        phase: phase.into(),
        iteration: cell("iter")? as u32,
        rate,
        unit: "MiB/s".into(),
        operations: (bytes as f64 / transfer).round() as u64,
        bytes,
        seconds,
        detail,
        ..Sample::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
IOR-3.3.0: MPI Coordinated Test of Parallel I/O
Began               : Sat Mar 27 15:44:43 2021

Results:

access    bw(MiB/s)  IOPS       Latency(s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter
------    ---------  ----       ----------  ---------- ---------  --------   --------   --------   --------   ----
Commencing write performance test: Sat Mar 27 15:44:43 2021
write     912.40     4282       0.001868    1024.00    256.00     0.001203   0.007473   0.000973   0.008768   0
read      495.76     2259.33    0.000031    1024.00    256.00     0.015838   0.014163   0.014007   0.016137   0
remove    -          -          -           -          -          -          -          -          0.006066   0
Max Write: 912.40 MiB/sec (956.72 MB/sec)

Summary of all tests:
Operation   Max(MiB)   Min(MiB)  Mean(MiB)     StdDev
write         912.40     912.40     912.40       0.00
";

    #[test]
    fn takes_the_lines_of_results() {
        let samples = parse(OUTPUT).unwrap();
        assert_eq!(samples.len(), 2);
        assert_eq!((samples[0].rate, samples[0].bytes >> 20), (912.40, 7));
        assert_eq!((samples[1].phase.as_str(), samples[1].detail["open"]), ("read", 0.015_838));
        assert_eq!(samples[0].operations, 32);
        assert_eq!(version(OUTPUT).as_deref(), Some("IOR-3.3.0"));
        assert!(parse("Segmentation fault").is_err());
    }

    #[test]
    fn takes_its_own_look_alike() {
        let config = crate::ior::Config::parse(["-w"]).unwrap();
        let head = "access    bw(MiB/s)  IOPS       Latency(s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter\n";
        let detail = ["iops", "latency", "open", "transfer", "close"].map(|n| (n.to_string(), 2.0));
        let own = Sample {
            phase: "write".into(),
            rate: 100.0,
            seconds: 2.0,
            detail: detail.into(),
            ..Sample::default()
        };
        let parsed = parse(&format!("{head}{}", crate::ior::row(&config, &own))).unwrap();
        assert_eq!((parsed[0].rate, parsed[0].bytes), (100.0, 200 << 20));
    }
}
