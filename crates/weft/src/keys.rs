//! Key files.

use anyhow::{Context, bail};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use weft_rpc::ClusterKey;

/// Permission bits that a key file must not have.
const OTHERS: u32 = 0o077;

/// Reads a key file, which nobody but its owner may read.
///
/// # Errors
/// Naming the file.
pub fn read(path: &Path) -> anyhow::Result<ClusterKey> {
    let named = || format!("key file={}", path.display());
    let mode = std::fs::metadata(path).with_context(named)?.mode();
    if mode & OTHERS != 0 {
        bail!("{} can be read by others; chmod 600 {}", named(), path.display());
    }
    let text = std::fs::read_to_string(path).with_context(named)?;
    ClusterKey::parse(&text).with_context(named)
}

/// Writes a key file.
///
/// # Errors
/// Naming the file.
pub fn write(path: &Path, key: &ClusterKey) -> anyhow::Result<()> {
    crate::files::replace(path, key.to_text().as_bytes(), 0o600)
}
