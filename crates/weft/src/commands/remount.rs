//! `weft remount DIR`.

use crate::mounts::{self, holder};
use crate::outcome::Outcome;
use anyhow::Context;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// Longest wait for the first answer of the new process.
const ANSWER_PATIENCE: Duration = Duration::from_secs(30);

/// Have the program that is on disk now serve a mount; open files go on.
#[derive(Args)]
#[command(after_help = "\
What was written is brought to the servers first, then the process that serves the mount is replaced.
Operations under way wait and are carried out once; nothing fails. Only mounts in the background over the
network can be remounted, and not those with transport=uring or noholder.")]
pub struct Remount {
    /// Where it is mounted.
    #[arg(required_unless_present = "state_version")]
    dir: Option<PathBuf>,
    /// Options that replace those in force: hard, soft, timeo, key.
    #[arg(short, value_name = "LIST", action = clap::ArgAction::Append, value_delimiter = ',')]
    options: Vec<String>,
    /// Print which version of a mount's state this program knows; for holders of mounts.
    #[arg(long, hide = true)]
    state_version: bool,
}

impl Remount {
    /// Replaces the process; the mount answers when this returns.
    ///
    /// # Errors
    /// When the mount has no holder, or its state is of a version that this program does not know; the
    /// old process goes on then.
    pub fn run(self) -> anyhow::Result<Outcome> {
        if self.state_version {
            crate::output::put(&format!("{}\n", weft_fuse::journal::VERSION))?;
            return Ok(Outcome::Done);
        }
        let dir = mounts::resolve(&self.dir.unwrap_or_default())?;
        let remount = holder::Remount { options: self.options.join(",") };
        holder::ask(&dir, &remount, holder::REMOUNT_PATIENCE)
            .with_context(|| format!("cannot remount dir={}", dir.display()))?;
        mounts::wait_until_answering(&dir, ANSWER_PATIENCE)?;
        Ok(Outcome::Done)
    }
}
