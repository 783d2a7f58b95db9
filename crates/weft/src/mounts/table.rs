//! The kernel's list of mounts. Looking there touches no mount, so it never hangs.

use anyhow::{Context, bail};
use rustix::mount::{UnmountFlags, unmount as unmount_as_root};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

/// What is mounted on a directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mounted {
    /// The directory.
    pub mountpoint: PathBuf,
    /// Type of the file system.
    pub kind: String,
}

impl Mounted {
    /// Whether it is a mount of ours.
    pub fn is_weft(&self) -> bool {
        self.kind == "fuse.weft"
    }
}

/// Symbolic links followed before a path counts as a circle.
const MAX_LINKS: usize = 40;

/// A mount point as the kernel lists it: absolute, without symbolic links. What is mounted there is
/// not touched, since it may hang.
///
/// # Errors
/// When the current directory is gone, or links go in circles.
pub fn resolve(dir: &Path) -> anyhow::Result<PathBuf> {
    let mut path = std::path::absolute(dir)?;
    for _ in 0..MAX_LINKS {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(path) };
        let parent = parent.canonicalize().unwrap_or_else(|_| parent.to_path_buf());
        path = parent.join(name);
        match std::fs::read_link(&path) {
            Ok(target) => path = parent.join(target),
            Err(_) => return Ok(path),
        }
    }
    bail!("{}: too many symbolic links", dir.display())
}

/// What is mounted on `dir`; the topmost if there are several.
///
/// # Errors
/// When `/proc` is not there.
pub fn find_mounted(dir: &Path) -> anyhow::Result<Option<Mounted>> {
    Ok(read_all()?.into_iter().rev().find(|mounted| mounted.mountpoint == dir))
}

fn read_all() -> anyhow::Result<Vec<Mounted>> {
    let file = "/proc/self/mountinfo";
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read file={file}"))?;
    Ok(text.lines().filter_map(parse).collect())
}

/// `36 35 98:0 /root /mount/point options optional-fields - type source super-options`
fn parse(line: &str) -> Option<Mounted> {
    let (left, right) = line.split_once(" - ")?;
    let mountpoint = unescape(left.split(' ').nth(4)?);
    let kind = right.split(' ').next()?.to_string();
    Some(Mounted { mountpoint, kind })
}

/// Blanks and their like are written as three octal digits.
fn unescape(text: &str) -> PathBuf {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let octal = text.get(at + 1..at + 4).filter(|_| bytes[at] == b'\\');
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 4;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    OsString::from_vec(out).into()
}

/// Unmounts what is mounted on `dir`.
///
/// # Errors
/// Those of the system; `lazy` is not refused because of users.
pub fn unmount(dir: &Path, lazy: bool) -> anyhow::Result<()> {
    let named = || format!("cannot unmount dir={}", dir.display());
    if rustix::process::geteuid().is_root() {
        let flags = if lazy { UnmountFlags::DETACH } else { UnmountFlags::empty() };
        return unmount_as_root(dir, flags | UnmountFlags::NOFOLLOW).with_context(named);
    }
    let mut command = Command::new("fusermount3");
    let output = command.arg(if lazy { "-uz" } else { "-u" }).arg("--").arg(dir).output();
    let output = output.with_context(named)?;
    if !output.status.success() {
        bail!("{}: {}", named(), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

/// Waits until the mount answers.
///
/// # Errors
/// When it does not within `patience`, and those of [`answers_within`].
pub fn wait_until_answering(dir: &Path, patience: Duration) -> anyhow::Result<()> {
    match answers_within(dir, patience)? {
        true => Ok(()),
        false => bail!("the mount on dir={} does not answer within {patience:?}", dir.display()),
    }
}

/// Asks the mount for its space and its root directory, from a thread that may hang instead of
/// this one. Whether there is an answer within `patience`.
///
/// # Errors
/// When nothing of ours is mounted there, or the answer is an error.
pub fn answers_within(dir: &Path, patience: Duration) -> anyhow::Result<bool> {
    if !find_mounted(dir)?.is_some_and(|mounted| mounted.is_weft()) {
        bail!("dir={} is not mounted", dir.display());
    }
    let (tell, told) = mpsc::channel();
    let asked = dir.to_path_buf();
    std::thread::spawn(move || {
        let space = rustix::fs::statvfs(&asked).map_err(std::io::Error::from);
        // Nobody listens any more when it took too long.
        let _ = tell.send(space.and_then(|_| std::fs::metadata(&asked)));
    });
    let Ok(answer) = told.recv_timeout(patience) else { return Ok(false) };
    answer.with_context(|| format!("the mount on dir={} answers badly", dir.display()))?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_lines_of_the_kernel() {
        let line = "36 35 0:40 / /mnt/a\\040b rw,nosuid shared:1 - fuse.weft weft rw,user_id=0";
        let mounted = parse(line).unwrap();
        assert_eq!(mounted.mountpoint, Path::new("/mnt/a b"));
        assert!(mounted.is_weft());
        assert_eq!(find_mounted(Path::new("/proc")).unwrap().unwrap().kind, "proc");
        assert_eq!(find_mounted(Path::new("/nowhere")).unwrap(), None);
    }

    #[test]
    fn links_are_resolved_up_to_what_does_not_exist() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        std::fs::create_dir(top.join("real")).unwrap();
        std::os::unix::fs::symlink("real", top.join("link")).unwrap();
        std::os::unix::fs::symlink("circle", top.join("circle")).unwrap();
        assert_eq!(resolve(&top.join("link")).unwrap(), top.join("real"));
        assert_eq!(resolve(&top.join("link/new")).unwrap(), top.join("real/new"));
        assert!(resolve(&top.join("circle")).is_err());
        assert_eq!(resolve(Path::new("/")).unwrap(), Path::new("/"));
    }

    #[test]
    fn a_plain_directory_is_not_mounted() {
        let dir = tempfile::tempdir().unwrap();
        assert!(wait_until_answering(dir.path(), Duration::from_secs(5)).is_err());
    }
}
