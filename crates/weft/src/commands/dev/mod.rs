//! `weft dev`: a whole cluster in one directory.
//!
//! ```text
//! dev.toml           what it consists of      cluster.key  its key, mode 0600
//! mgt mdt0 ost0 ...  targets                  mnt          mounted here unless told otherwise
//! log/NAME.log       logs of processes        run/         NAME.toml NAME.json address weft.sock
//! ```
//!
//! A process of the cluster is an ordinary `weft server` with the configuration `run/NAME.toml`.

mod down;
mod home;
mod ports;
mod shape;
mod status;
mod up;

use crate::cli::Global;
use crate::outcome::Outcome;
use anyhow::Context;
use clap::{Args, Subcommand};
use std::path::{Path, PathBuf};

pub use home::Home;

/// Commands on a development cluster.
#[derive(Subcommand)]
pub enum Command {
    /// Make or restart a cluster and mount it.
    Up(up::Up),
    /// Show what runs.
    Status(status::Status),
    /// Unmount and stop; the data stays.
    Down(down::Down),
}

impl Command {
    /// Whether servers run in this process.
    pub const fn serves(&self) -> bool {
        matches!(self, Command::Up(up) if up.foreground)
    }

    /// Does it.
    ///
    /// # Errors
    /// Those of the command.
    pub fn run(self, global: Global) -> anyhow::Result<Outcome> {
        match self {
            Command::Up(command) => command.run(global),
            Command::Status(command) => command.run(global),
            Command::Down(command) => command.run(),
        }
    }
}

/// Which cluster.
#[derive(Args)]
pub struct Which {
    /// Directory of the cluster [default: $XDG_DATA_HOME/weft/dev or ~/.local/share/weft/dev].
    #[arg(long, env = "WEFT_DEV_DIR")]
    dir: Option<PathBuf>,
}

impl Which {
    /// The directory, which need not exist.
    ///
    /// # Errors
    /// When there is no home directory to find it in.
    pub fn dir(&self) -> anyhow::Result<PathBuf> {
        match &self.dir {
            Some(dir) => Ok(std::path::absolute(dir)?),
            None => default_dir(),
        }
    }
}

/// Where a development cluster is unless told otherwise.
///
/// # Errors
/// When there is no home directory to find it in.
pub fn default_dir() -> anyhow::Result<PathBuf> {
    let data = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".local/share"));
    let data = data.or_else(home).context("HOME is not set; say where with --dir")?;
    Ok(std::path::absolute(data.join("weft/dev"))?)
}
