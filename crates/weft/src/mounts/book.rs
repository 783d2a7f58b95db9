//! The mounts of this machine, so that commands find the cluster behind a path: one JSON file each
//! in `/run/weft/mounts` (root), `$XDG_RUNTIME_DIR/weft/mounts` or, for users without one,
//! `~/.local/state/weft/mounts`; `WEFT_RUN_DIR` replaces the part before `/mounts`.

use crate::process::ProcessId;
use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Where root keeps what is valid until the next start of the machine.
const ROOTS: &str = "/run/weft";

/// A mount.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// Where it is.
    pub mountpoint: PathBuf,
    /// The process that serves it.
    pub process: ProcessId,
    /// Addresses of the cluster's managers.
    pub managers: Vec<String>,
    /// File with the key that the mount used.
    pub key: Option<PathBuf>,
    /// What of the volume is mounted.
    pub subtree: String,
}

impl Record {
    /// Writes it down; it is removed again when what is returned is dropped.
    ///
    /// # Errors
    /// Those of the directory.
    pub fn store(self) -> anyhow::Result<Kept> {
        let dir = directory()?;
        crate::files::make_dir(&dir)?;
        let path = dir.join(file_name(&self.mountpoint));
        crate::files::replace(&path, serde_json::to_string_pretty(&self)?.as_bytes(), 0o644)?;
        Ok(Kept { path, process: self.process })
    }

    /// Whether it is the mount on `dir`.
    pub fn is_at(&self, dir: &Path) -> bool {
        self.mountpoint == dir
    }
}

/// A record that lasts as long as this.
pub struct Kept {
    path: PathBuf,
    process: ProcessId,
}

impl Drop for Kept {
    fn drop(&mut self) {
        let text = std::fs::read(&self.path).unwrap_or_default();
        let ours = serde_json::from_slice::<Record>(&text)
            .is_ok_and(|record| record.process == self.process);
        if ours {
            // Left behind, it names a process that is gone, and is passed over.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Mounts whose processes are alive: this user's, then those of root.
///
/// # Errors
/// Those of the directory, unless there is none.
pub fn all() -> anyhow::Result<Vec<Record>> {
    let mut records = own()?;
    if directory()? != Path::new(ROOTS).join("mounts") && std::env::var_os("WEFT_RUN_DIR").is_none()
    {
        // What root keeps from users is not theirs to find.
        records.extend(alive(&Path::new(ROOTS).join("mounts")).unwrap_or_default());
    }
    Ok(records)
}

/// Those of this user alone.
///
/// # Errors
/// As [`all`].
pub fn own() -> anyhow::Result<Vec<Record>> {
    alive(&directory()?)
}

fn alive(dir: &Path) -> anyhow::Result<Vec<Record>> {
    let records: Vec<Record> = crate::files::read_json_files(dir)?;
    Ok(records.into_iter().filter(|record| record.process.is_alive()).collect())
}

/// Where a user without root's rights keeps logs: `$XDG_STATE_HOME/weft` or `~/.local/state/weft`.
///
/// # Errors
/// When neither is known.
pub fn state_dir() -> anyhow::Result<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".local/state"));
    Ok(state.or_else(home).context("neither HOME nor XDG_STATE_HOME is set")?.join("weft"))
}

fn directory() -> anyhow::Result<PathBuf> {
    let runtime = || std::env::var_os("XDG_RUNTIME_DIR").map(|dir| Path::new(&dir).join("weft"));
    let run = match std::env::var_os("WEFT_RUN_DIR") {
        Some(dir) => dir.into(),
        None if rustix::process::geteuid().is_root() => ROOTS.into(),
        // Who has come by su or cron has none; what is noted of a mount is true only while it lives.
        None => runtime().map_or_else(state_dir, Ok)?,
    };
    Ok(run.join("mounts"))
}

/// `/mnt/a-b` becomes `mnt-a%2db.json`; no two paths share a name.
fn file_name(mountpoint: &Path) -> String {
    let path = mountpoint.to_string_lossy();
    let escaped = path.trim_matches('/').replace('%', "%25").replace('-', "%2d").replace('/', "-");
    format!("{escaped}.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ_where_paths_do() {
        assert_eq!(file_name(Path::new("/mnt/a-b")), "mnt-a%2db.json");
        assert_ne!(file_name(Path::new("/mnt/a/b")), file_name(Path::new("/mnt/a-b")));
    }
}
