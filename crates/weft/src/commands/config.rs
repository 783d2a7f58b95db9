//! `weft config check|default`.

use crate::node::NodeConfig;
use crate::outcome::Outcome;
use crate::output;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Commands on configurations of nodes.
#[derive(Subcommand)]
pub enum Command {
    /// Check a configuration without running it.
    Check(Check),
    /// Print an example with every setting and its default.
    Default,
}

/// Check a configuration without running it.
#[derive(Args)]
pub struct Check {
    /// The file.
    file: PathBuf,
}

impl Command {
    /// Does it.
    ///
    /// # Errors
    /// What is wrong, with its place in the file.
    pub fn run(self) -> anyhow::Result<Outcome> {
        match self {
            Command::Check(Check { file }) => {
                NodeConfig::load(&file)?;
                output::put(&format!("{}: good\n", file.display()))?;
            }
            Command::Default => output::put(&toml::to_string(&NodeConfig::example())?)?,
        }
        Ok(Outcome::Done)
    }
}
