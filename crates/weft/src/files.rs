//! Small files: written as a whole, read with their name in every error.

use anyhow::Context;
use serde::de::DeserializeOwned;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Replaces a file; a crash leaves the old or the new one.
///
/// # Errors
/// Naming the file.
pub fn replace(path: &Path, bytes: &[u8], mode: u32) -> anyhow::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".new-{}", std::process::id()));
    let temporary = PathBuf::from(temporary);
    let write = || -> std::io::Result<()> {
        let mut options = OpenOptions::new();
        let mut file =
            options.write(true).create(true).truncate(true).mode(mode).open(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    };
    write().with_context(|| format!("cannot write file={}", path.display()))
}

/// Makes a directory and those above it.
///
/// # Errors
/// Naming the directory.
pub fn make_dir(path: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(path).with_context(|| format!("cannot make directory={}", path.display()))
}

/// Every `*.json` in a directory that can be read as a `T`, by file name. A file that vanishes or
/// is something else is passed over; a directory that does not exist has none.
///
/// # Errors
/// Those of the directory.
pub fn read_json_files<T: DeserializeOwned>(dir: &Path) -> anyhow::Result<Vec<T>> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.with_context(|| format!("cannot read directory={}", dir.display()))?,
    };
    let mut paths: Vec<PathBuf> = entries.filter_map(|e| e.ok().map(|e| e.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    let read = |path: PathBuf| serde_json::from_slice(&fs::read(path).ok()?).ok();
    Ok(paths.into_iter().filter_map(read).collect())
}
