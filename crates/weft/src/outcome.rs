//! How a command ends: its exit code.

use std::fmt;
use std::process::ExitCode;

/// The end of a command that did not fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// All done.
    Done,
    /// Some of several things failed; each has been named on standard error.
    Partly,
    /// Asked about health, and something is wrong.
    Unhealthy,
}

impl Outcome {
    /// As the shell sees it.
    pub const fn code(self) -> u8 {
        match self {
            Outcome::Done => 0,
            Outcome::Partly => 3,
            Outcome::Unhealthy => 4,
        }
    }
}

/// Exit code of a command that failed.
pub const FAILED: u8 = 1;
/// Exit code for a command line that makes no sense.
pub const USAGE: u8 = 2;

/// A command line that makes no sense, where only the command itself can tell.
#[derive(Debug)]
pub struct Usage(pub String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Names the failure on standard error and picks the exit code.
pub fn finish(result: anyhow::Result<Outcome>) -> ExitCode {
    let error = match result {
        Ok(outcome) => return ExitCode::from(outcome.code()),
        Err(error) => error,
    };
    if is_broken_pipe(&error) {
        // Whoever read our output has seen enough.
        return ExitCode::SUCCESS;
    }
    eprintln!("weft: {error:#}");
    ExitCode::from(if error.is::<Usage>() { USAGE } else { FAILED })
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<std::io::Error>()
        .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
