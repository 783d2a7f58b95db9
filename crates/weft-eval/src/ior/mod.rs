//! As IOR: bandwidth of files that all ranks write and read together.
//!
//! Options, defaults, phases, units and tables are those of IOR 3 and 4. Differences: latency is that of
//! the operations that were done (IOR divides by those of one segment); the data is always a pattern
//! that tells where it belongs, so that every run can be checked.

pub mod config;
mod data;
mod directive;
mod hog;
pub(crate) mod plan;
pub mod rank;
mod table;
mod timing;

pub use config::Config;
pub use table::{heading, render, row};

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
    let paths: Vec<&str> = config.file.split('@').collect();
    let mut record = driver::begin(setup, "ior", serde_json::to_value(&config)?, &paths);
    record.fsync = fsync(&config);
    if config.api == "MPIIO" {
        record.notes.push("MPIIO was done as POSIX: independent access by system calls".into());
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
    let count = config.iterations;
    let work =
        |iterations| Work::Ior(Box::new(Config { range: Some(iterations), ..config.clone() }));
    driver::measure(setup, record, count, &work, told)
}

fn fsync(config: &Config) -> Fsync {
    let note = match (config.fsync, config.fsync_each) {
        (_, true) => "fsync after every write, inside the time (-Y)",
        (true, _) => "fsync of each file before it is closed, inside the time of close (-e)",
        _ => "no fsync: written data may not be on stable storage when the time ends",
    };
    Fsync { included: config.fsync || config.fsync_each, note: note.into() }
}

#[cfg(test)]
mod tests;
