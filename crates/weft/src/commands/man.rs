//! `weft man DIR`.

use crate::cli::Cli;
use crate::files;
use crate::outcome::Outcome;
use anyhow::Context;
use clap::{Args, CommandFactory};
use std::path::PathBuf;

/// Write the manual pages, one for each command.
#[derive(Args)]
pub struct Man {
    /// Where to, such as /usr/local/share/man/man1.
    dir: PathBuf,
}

impl Man {
    /// Writes them.
    ///
    /// # Errors
    /// Those of the directory.
    pub fn run(self) -> anyhow::Result<Outcome> {
        files::make_dir(&self.dir)?;
        clap_mangen::generate_to(Cli::command(), &self.dir)
            .with_context(|| format!("cannot write manual pages to dir={}", self.dir.display()))?;
        Ok(Outcome::Done)
    }
}
