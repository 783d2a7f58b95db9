//! `weft stat PATH`: everything about an inode.

use crate::cli::Global;
use crate::outcome::Outcome;
use crate::output;
use crate::xattr;
use anyhow::Context;
use clap::Args;
use serde_json::Value;
use std::path::PathBuf;

/// Show everything about files and directories.
#[derive(Args)]
pub struct Stat {
    /// Files and directories.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
}

impl Stat {
    /// Shows them all.
    ///
    /// # Errors
    /// The path's when there is only one; else each is named.
    pub fn run(self, global: Global) -> anyhow::Result<Outcome> {
        let mut all = Vec::new();
        let outcome = super::for_each_path(&self.paths, |path| {
            let found: Option<Value> = xattr::get_json(path, "weft.stat")?;
            let mut found = found.with_context(|| format!("{}: nothing known", path.display()))?;
            found["path"] = path.to_string_lossy().into();
            all.push(found);
            Ok(())
        })?;
        let text = output::yaml(&all)?;
        output::print(global.output, || text, &all)?;
        Ok(outcome)
    }
}
