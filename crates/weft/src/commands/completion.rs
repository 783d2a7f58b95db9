//! `weft completion SHELL`.

use crate::cli::Cli;
use crate::outcome::Outcome;
use crate::output;
use clap::{Args, CommandFactory};
use clap_complete::Shell;

/// Print the completions of a shell; put them where it looks for them.
#[derive(Args)]
pub struct Completion {
    /// The shell.
    shell: Shell,
}

impl Completion {
    /// Prints them.
    ///
    /// # Errors
    /// Those of standard output.
    pub fn run(self) -> anyhow::Result<Outcome> {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "weft", &mut text);
        output::put(&String::from_utf8_lossy(&text))?;
        Ok(Outcome::Done)
    }
}
