//! Lines as iozone prints them.

use super::Config;
use crate::record::{Record, Sample};
use crate::text::clock;

/// Everything before the results.
pub fn heading(config: &Config, record: &Record) -> String {
    let mut text = format!(
        "\tIozone look-alike of {}, throughput mode\n\n\tRun began: {}\n\n",
        record.program,
        clock(record.started)
    );
    for (set, line) in [
        (config.close, "Include close in write timing"),
        (config.flush, "Include fsync in write timing"),
        (config.keep, "Setting no_unlink"),
        (config.no_retest, "No retest option selected"),
        (config.direct, "O_DIRECT feature enabled"),
    ] {
        if set {
            text += &format!("\t{line}\n");
        }
    }
    let (size, kb) = (config.size >> 10, config.record >> 10);
    let (ranks, what) = (config.ranks, if config.threads { "thread" } else { "process" });
    let several = match (ranks, config.threads) {
        (1, _) => "",
        (_, true) => "s",
        _ => "es",
    };
    text + &format!(
        "\tRecord Size {kb} kB\n\tFile size set to {size} kB\n\tCommand line used: {}\n\
         \tOutput is in kBytes/sec\n\tThroughput test with {ranks} {what}{several}\n\
         \tEach process writes a {size} kByte file in {kb} kByte records\n",
        record.command.join(" ")
    )
}

/// The lines of a pass.
pub fn block(config: &Config, sample: &Sample) -> String {
    let (ranks, name) = (config.ranks, &sample.phase);
    let detail = |name: &str| sample.detail.get(name).copied().unwrap_or(0.0);
    let line = |what: &str, value: f64, unit: &str| format!("\t{what:<47} = {value:10.2} {unit}\n");
    let mut text = String::from("\n");
    text += &line(&format!("Children see throughput for {ranks:2} {name}"), sample.rate, "kB/sec");
    text +=
        &line(&format!("Parent sees throughput for {ranks:2} {name}"), detail("parent"), "kB/sec");
    text += &line("Min throughput per process", detail("min"), "kB/sec");
    text += &line("Max throughput per process", detail("max"), "kB/sec");
    text += &line("Avg throughput per process", detail("avg"), "kB/sec");
    text + &line("Min xfer", detail("min_xfer"), "kB")
}
