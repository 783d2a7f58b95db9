//! The mounts of this machine, so that commands find the cluster behind a path: one JSON file each
//! in `/run/weft/mounts` (root) or `$XDG_RUNTIME_DIR/weft/mounts`; `WEFT_RUN_DIR` replaces the
//! part before `/mounts`.

use crate::process::ProcessId;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// A mount.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// Where it is.
    pub mountpoint: PathBuf,
    /// The process that serves it, or that holds it.
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
        let dir = directory();
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

/// Mounts whose processes are alive.
///
/// # Errors
/// Those of the directory, unless there is none.
pub fn all() -> anyhow::Result<Vec<Record>> {
    let records: Vec<Record> = crate::files::read_json_files(&directory())?;
    Ok(records.into_iter().filter(|record| record.process.is_alive()).collect())
}

/// Where processes of this user keep what is valid until the next start of the machine.
pub fn run_dir() -> PathBuf {
    if let Some(dir) = std::env::var_os("WEFT_RUN_DIR") {
        return dir.into();
    }
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(dir) if !rustix::process::geteuid().is_root() => Path::new(&dir).join("weft"),
        _ => "/run/weft".into(),
    }
}

/// Removes this process's record of a mount, which the one that served it may have left.
pub fn forget(dir: &Path) {
    let path = directory().join(file_name(dir));
    drop(Kept { path, process: ProcessId::own() });
}

/// Where the holder of a mount listens.
pub fn holder_socket(dir: &Path) -> PathBuf {
    run_dir().join("holders").join(file_name(dir)).with_extension("sock")
}

fn directory() -> PathBuf {
    run_dir().join("mounts")
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
