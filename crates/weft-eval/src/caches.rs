//! Emptying the page cache of this machine.

use std::io;
use std::process::Command;

/// How a note begins that tells of caches that could not be emptied.
pub const KEPT: &str = "caches were not emptied on ";

/// Writes everything to disk and empties the page cache, and the caches of names and inodes.
///
/// # Errors
/// `PermissionDenied` for everybody but root.
pub fn drop_all() -> io::Result<()> {
    Command::new("sync").status()?;
    std::fs::write("/proc/sys/vm/drop_caches", "3").map_err(|error| {
        io::Error::new(error.kind(), format!("/proc/sys/vm/drop_caches: {error} (needs root)"))
    })
}
