//! `weft setstripe`: layouts of new files, and what directories hand down.

use super::components::Components;
use crate::outcome::{Outcome, Usage};
use crate::xattr;
use anyhow::Context;
use clap::Args;
use rustix::fs::{CWD, FileType, Mode};
use rustix::io::Errno;
use std::path::{Path, PathBuf};
use weft_model::layout::LayoutSpec;

/// Set the layout of empty files, which are made if need be, and what directories hand down to new
/// files.
#[derive(Args)]
#[command(after_help = "\
Examples:
  weft setstripe -c 4 -S 1M DIR                      new files in DIR: 4 OSTs, units of 1 MiB
  weft setstripe -E 64M -c 1 -E -1 -c -1 FILE        first 64 MiB on one OST, the rest on all
  weft setstripe -d DIR                              back to the default")]
pub struct SetStripe {
    #[command(flatten)]
    components: Components,
    /// Back to the default of the file system (directories).
    #[arg(short, long)]
    delete: bool,
    /// Files and directories.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
}

impl SetStripe {
    /// Sets it on every path.
    ///
    /// # Errors
    /// [`Usage`], and the first path's when there is only one; else each is named.
    pub fn run(self) -> anyhow::Result<Outcome> {
        if self.delete && !self.components.is_empty() {
            return Err(Usage("-d goes without other options".into()).into());
        }
        let spec = if self.delete { LayoutSpec::default() } else { self.components.spec()? };
        super::for_each_path(&self.paths, |path| set(path, &spec, self.delete))
    }
}

fn set(path: &Path, spec: &LayoutSpec, delete: bool) -> anyhow::Result<()> {
    if path.is_dir() {
        return xattr::set_json(path, "weft.spec.set", spec);
    }
    if delete {
        return Err(Usage(format!("{}: -d is for directories", path.display())).into());
    }
    // Made without opening it: a file that is open for writing, or was a moment ago, keeps its layout.
    let mode = Mode::from_raw_mode(0o666);
    let made = match rustix::fs::mknodat(CWD, path, FileType::RegularFile, mode, 0) {
        Ok(()) => true,
        Err(Errno::EXIST) => false,
        Err(error) => return Err(error).with_context(|| path.display().to_string()),
    };
    let outcome = xattr::set_json(path, "weft.layout.set", spec);
    if outcome.is_err() && made {
        // What was asked for is not there; then neither should an empty file be.
        let _ = std::fs::remove_file(path);
    }
    outcome
}
