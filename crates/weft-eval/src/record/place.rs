//! The place a run was done in: which file system, mounted how.

use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// A place that was measured.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Place {
    /// The path as given.
    pub path: String,
    /// Type of its file system as the kernel has it: `xfs`, `ext4`, `fuse.weft`; or `weft library`.
    pub fs: String,
    /// What is mounted.
    pub source: String,
    /// Where.
    pub mountpoint: String,
    /// Options of the mount and of the file system.
    pub options: String,
    /// Size of the file system, bytes; 0 where it does not tell.
    pub size: u64,
    /// Bytes of it in use.
    pub used: u64,
    /// Inodes it may have; 0 where it does not tell.
    pub inodes: u64,
    /// Inodes in use.
    pub inodes_used: u64,
}

impl Place {
    /// The file system that `path`, or the nearest directory above it that exists, is on.
    pub fn of(path: &Path) -> Place {
        let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
        let there = whole.ancestors().find_map(|dir| dir.canonicalize().ok());
        let there = there.unwrap_or_else(|| PathBuf::from("/"));
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let mut place = nearest(&mounts, &there).unwrap_or_default();
        place.path = path.display().to_string();
        if let Ok(stat) = rustix::fs::statvfs(&there) {
            place.size = stat.f_blocks * stat.f_frsize;
            place.used = (stat.f_blocks - stat.f_bfree) * stat.f_frsize;
            place.inodes = stat.f_files;
            place.inodes_used = stat.f_files - stat.f_ffree;
        }
        place
    }
}

/// The mount that holds `path`: the last of those with the longest mount point.
fn nearest(mountinfo: &str, path: &Path) -> Option<Place> {
    let mounts = mountinfo.lines().filter_map(mount);
    let on = mounts.filter(|mount| path.starts_with(&mount.mountpoint));
    on.max_by_key(|mount| mount.mountpoint.len())
}

/// A line of `/proc/self/mountinfo`: see proc_pid_mountinfo(5).
fn mount(line: &str) -> Option<Place> {
    let (before, after) = line.split_once(" - ")?;
    let before: Vec<&str> = before.split(' ').collect();
    let mut after = after.splitn(3, ' ');
    let (fs, source) = (after.next()?, after.next()?);
    let options = format!("{},{}", before.get(5)?, after.next().unwrap_or_default());
    Some(Place {
        fs: fs.into(),
        source: unescape(source),
        mountpoint: unescape(before.get(4)?),
        options: options.trim_end_matches(',').into(),
        ..Place::default()
    })
}

/// Spaces and the like are written as `\040`.
fn unescape(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        match part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                out.push(byte.into());
                out.push_str(&part[3..]);
            }
            None => {
                out.push('\\');
                out.push_str(part);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/root rw,discard
30 22 0:40 / /mnt/a\\040b rw,nosuid - fuse.weft host:/ rw,user_id=0";

    #[test]
    fn finds_the_nearest_mount() {
        let place = nearest(MOUNTS, Path::new("/mnt/a b/dir")).unwrap();
        assert_eq!((place.fs.as_str(), place.mountpoint.as_str()), ("fuse.weft", "/mnt/a b"));
        assert_eq!(place.options, "rw,nosuid,rw,user_id=0");
        assert_eq!(nearest(MOUNTS, Path::new("/mnt/other")).unwrap().fs, "ext4");
    }

    #[test]
    fn of_a_file_that_is_not_there_yet() {
        let place = Place::of(&std::env::temp_dir().join("not/there"));
        assert!(!place.fs.is_empty() && place.size > 0);
    }
}
