//! `syncfs(2)` on a lossy mount: the kernel does not forward it to FUSE, so a preloaded library turns it
//! into an `ioctl`, which it does forward.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The number of that `ioctl`, `_IO('W', 1)`.
pub const SYNC_ALL: u32 = 0x5701;

const SOURCE: &str = "#include <sys/ioctl.h>\nint syncfs(int fd) { return ioctl(fd, SYNC_ALL); }\n";

/// Makes the library in `dir`, to be named in `LD_PRELOAD` of programs that use lossy mounts only.
///
/// # Errors
/// When the C compiler that Rust links with cannot be run.
pub fn syncfs_shim(dir: &Path) -> io::Result<PathBuf> {
    let (source, library) = (dir.join("syncfs.c"), dir.join("syncfs.so"));
    std::fs::write(&source, SOURCE)?;
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", &format!("-DSYNC_ALL={SYNC_ALL}"), "-o"]);
    let output = compiler.arg(&library).arg(&source).output()?;
    if output.status.success() {
        return Ok(library);
    }
    Err(io::Error::other(format!("cc: {}", String::from_utf8_lossy(&output.stderr))))
}
