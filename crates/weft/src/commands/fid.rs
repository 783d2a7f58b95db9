//! `weft fid PATH`.

use crate::outcome::Outcome;
use crate::{output, xattr};
use clap::Args;
use std::path::PathBuf;

/// Print the FIDs of paths, one a line.
#[derive(Args)]
pub struct FidOf {
    /// Files and directories.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
}

impl FidOf {
    /// Prints them.
    ///
    /// # Errors
    /// The path's when there is only one; else each is named.
    pub fn run(self) -> anyhow::Result<Outcome> {
        super::for_each_path(&self.paths, |path| {
            Ok(output::put(&format!("{}\n", xattr::get_text(path, "weft.fid")?))?)
        })
    }
}
