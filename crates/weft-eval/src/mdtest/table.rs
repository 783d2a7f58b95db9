//! Tables as mdtest prints them.

use super::Config;
use crate::record::{Record, Stats};
use crate::text::clock;

/// Rows in the order in which mdtest prints them.
const ROWS: [&str; 9] = [
    "Directory creation",
    "Directory stat",
    "Directory removal",
    "File creation",
    "File stat",
    "File read",
    "File removal",
    "Tree creation",
    "Tree removal",
];

/// Everything before the results.
pub fn heading(config: &Config, record: &Record, ranks: u32) -> String {
    let all = config.items * u64::from(ranks);
    let what = match (config.dirs_only, config.files_only) {
        (true, _) => "directories",
        (_, true) => "files",
        _ => "files/directories",
    };
    format!(
        "-- started at {} --\n\n\
         mdtest look-alike of {} was launched with {ranks} total task(s)\n\
         Command line used: {}\n\
         Path                : {}\n\
         {ranks} tasks, {all} {what}\n",
        clock(record.started),
        record.program,
        record.command.join(" "),
        config.dirs,
    )
}

/// The results.
pub fn render(config: &Config, record: &Record) -> String {
    let (what, unit) =
        if config.print_time { ("time", "in ms/op") } else { ("rate", "in ops/sec") };
    let iterations = record.samples.iter().map(|sample| sample.iteration + 1).max().unwrap_or(0);
    let mut text = format!(
        "\nSUMMARY {what} ({unit}): (of {iterations} iterations)\n   \
         Operation                     Max            Min           Mean        Std Dev\n   \
         ---------                     ---            ---           ----        -------\n"
    );
    for row in ROWS {
        if record.phase(row).is_some() {
            let time = |rate: f64| if config.print_time { 1000.0 / rate } else { rate };
            let s = Stats::of(record.of(row).map(|sample| time(sample.rate)));
            text += &format!(
                "   {row:<22} {:14.3} {:14.3} {:14.3} {:14.3}\n",
                s.max, s.min, s.mean, s.stddev
            );
        }
    }
    text + &format!("-- finished at {} --\n", clock(record.started + record.seconds as u64))
}
