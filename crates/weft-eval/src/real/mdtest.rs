//! The output of mdtest 1.9 to 4.

use super::{number, strange};
use crate::record::{Phase, Stats};
use std::io;

/// Name and version, as it says itself.
pub fn version(text: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with("mdtest-"))?;
    line.split(" was").next().map(String::from)
}

/// The table of rates: mdtest tells no single iterations, so phases are all there is.
///
/// # Errors
/// `InvalidData` where there is none.
pub fn parse(text: &str) -> io::Result<Vec<Phase>> {
    let mut lines = text.lines().skip_while(|line| !line.starts_with("SUMMARY rate"));
    let head = lines.next().ok_or_else(|| strange("mdtest"))?;
    let count = head.split("(of ").nth(1).and_then(number).unwrap_or(1.0) as u32;
    let phases: Vec<Phase> = lines.filter_map(|line| phase(line, count)).collect();
    if phases.is_empty() { Err(strange("mdtest")) } else { Ok(phases) }
}

fn phase(line: &str, count: u32) -> Option<Phase> {
    // Versions differ in whether a colon follows the name.
    let words: Vec<&str> = line.split_whitespace().filter(|word| *word != ":").collect();
    let [a, b, max, min, mean, stddev] = words[..] else { return None };
    let all: Vec<f64> =
        [max, min, mean, stddev].into_iter().map_while(|w| w.parse().ok()).collect();
    let [max, min, mean, stddev] = all[..] else { return None };
    // A phase that was not run stands there with zeros.
    (max > 0.0).then(|| Phase {
        phase: format!("{a} {b}"),
        unit: "ops/s".into(),
        rate: Stats { count, max, min, mean, median: mean, stddev },
        cpu_per_gib: None,
        cpu_per_1000: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
mdtest-4.1.0+dev was launched with 10 total task(s) on 1 node(s)
10 tasks, 33340 files

SUMMARY rate (in ops/sec): (of 3 iterations)
   Operation                     Max            Min           Mean        Std Dev
   ---------                     ---            ---           ----        -------
   File creation                7147.432       6789.531       6996.044        132.149
   File stat                       0.000          0.000          0.000          0.000
   Tree removal                   99.443         95.475         97.632          1.266
-- finished at 07/18/2025 16:11:49 --
";

    #[test]
    fn takes_the_table() {
        let phases = parse(OUTPUT).unwrap();
        assert_eq!(phases.len(), 2);
        assert_eq!((phases[0].phase.as_str(), phases[0].rate.mean), ("File creation", 6996.044));
        assert_eq!((phases[1].rate.stddev, phases[1].rate.count), (1.266, 3));
        assert_eq!(version(OUTPUT).as_deref(), Some("mdtest-4.1.0+dev"));
        assert!(parse("nothing").is_err());
    }

    #[test]
    fn takes_the_table_of_older_ones() {
        let text = "SUMMARY rate: (of 1 iterations)\n   File creation     :      10.000      9.000      9.500      0.500\n";
        assert_eq!(parse(text).unwrap()[0].rate.min, 9.0);
    }
}
