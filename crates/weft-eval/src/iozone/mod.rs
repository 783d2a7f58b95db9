//! As iozone in throughput mode (`-t`): each rank has a file of its own.
//!
//! Options, defaults, units (kB are 1,024 bytes) and lines are those of iozone 3. As there, all stop
//! when the first has come to the end of its file, and the sum of what each saw is the figure that
//! counts ("Children see throughput").

pub mod config;
pub mod rank;
mod table;

pub use config::Config;
pub use table::{block, heading};

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
    let places = config.places();
    let paths: Vec<&str> = places.iter().map(String::as_str).collect();
    let mut record = driver::begin(setup, "iozone", serde_json::to_value(&config)?, &paths);
    let note = match config.flush {
        true => "fsync at the end of each file, inside the time (-e)",
        false => "no fsync: written data may not be on stable storage when the time ends",
    };
    record.fsync = Fsync { included: config.flush, note: note.into() };
    Ok(record)
}

/// Runs it. `told` gets every figure as it comes.
///
/// # Errors
/// As [`begin`], and those of the ranks.
pub fn run(config: &Config, setup: &Setup, told: &mut dyn FnMut(&Sample)) -> io::Result<Record> {
    let config = config.checked()?;
    let record = begin(&config, setup)?;
    // iozone has no repetitions, so there is no spread to be judged.
    let work = |_| Work::Iozone(Box::new(config.clone()));
    driver::measure(setup, record, 1, &work, told)
}

#[cfg(test)]
mod tests;
