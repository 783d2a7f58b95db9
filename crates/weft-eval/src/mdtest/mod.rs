//! As mdtest: how many files and directories are made, looked at and removed per second.
//!
//! Options, defaults, phases and tables are those of mdtest 1.9 to 4. Ranks run through a phase
//! together; with a stonewall (`-W`) all go on until each has made as many as the fastest had.

pub mod config;
pub mod rank;
mod table;
mod tree;

pub use config::Config;
pub use table::{heading, render};

use crate::driver::{self, Setup};
use crate::ranks::Work;
use crate::record::{Fsync, Record, Sample};
use std::io;

/// What is known before it runs.
///
/// # Errors
/// `InvalidInput` for settings that make no sense.
pub fn begin(config: &Config, setup: &Setup) -> io::Result<Record> {
    let config = config.checked()?;
    let paths: Vec<&str> = config.dirs.split('@').collect();
    let mut record = driver::begin(setup, "mdtest", serde_json::to_value(&config)?, &paths);
    record.fsync = fsync(&config);
    if config.read_bytes == 0 && config.read {
        record.notes.push("-e was not given: File read is open and close".into());
    }
    Ok(record)
}

/// Runs it. `told` gets every figure as it comes.
///
/// # Errors
/// As [`begin`], and those of the ranks.
pub fn run(config: &Config, setup: &Setup, told: &mut dyn FnMut(&Sample)) -> io::Result<Record> {
    let config = config.checked()?;
    let record = begin(&config, setup)?;
    let work =
        |iterations| Work::Mdtest(Box::new(Config { range: Some(iterations), ..config.clone() }));
    driver::measure(setup, record, config.iterations, &work, told)
}

fn fsync(config: &Config) -> Fsync {
    let note = match (config.sync_file, config.call_sync) {
        (true, _) => "fsync of each file after it was written, inside the time (-y)",
        (_, true) => "sync after each phase, inside the time (-Y)",
        _ => "no fsync: what was made may not be on stable storage when the time ends",
    };
    Fsync { included: config.sync_file || config.call_sync, note: note.into() }
}

#[cfg(test)]
mod tests;
