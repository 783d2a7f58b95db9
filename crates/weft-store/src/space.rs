//! Free space of a target, and the part of it that is kept back so that a full file system still
//! works.

use crate::files;
use crate::objects::StatFs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use weft_model::{ErrorKind, FsError, Result};

/// Least reserve by default, bytes.
pub const MIN_RESERVE: u64 = 64 << 20;
/// The same on an MDT, whose store needs room to write its log and to merge its files while names are
/// being removed.
pub const MIN_RESERVE_MDT: u64 = 256 << 20;
/// Space that may be handed out before the file system is asked again.
const GRANT: u64 = 16 << 20;
/// What tells this machine, since it was started, from others.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Watches the free space of the file system that holds a target.
#[derive(Debug)]
pub struct Gauge {
    dir: PathBuf,
    reserve: u64,
    device: u64,
    /// Bytes that may still be used before the next look.
    grant: AtomicI64,
}

impl Gauge {
    /// Watches `dir`, keeping back `reserve` bytes.
    ///
    /// # Errors
    /// What the file system says.
    pub fn new(dir: &Path, reserve: u64) -> Result<Gauge> {
        let (dir, device) = (dir.to_path_buf(), device(dir)?);
        Ok(Gauge { dir, reserve, device, grant: AtomicI64::new(0) })
    }

    /// Asks for `bytes` more. Costs a system call only every [`GRANT`] bytes.
    ///
    /// # Errors
    /// `NoSpace` when that would eat into the reserve.
    pub fn admit(&self, bytes: u64) -> Result<()> {
        let wanted = bytes.min(i64::MAX as u64) as i64;
        if self.grant.fetch_sub(wanted, Ordering::Relaxed) >= wanted {
            return Ok(());
        }
        let available = self.statfs()?.available;
        if bytes > available {
            return Err(FsError::new(ErrorKind::NoSpace, "reserve space").on(format!(
                "dir={} available={available} wanted={bytes} reserve={}",
                self.dir.display(),
                self.reserve
            )));
        }
        let grant = (available - bytes).min(GRANT) as i64;
        self.grant.store(grant, Ordering::Relaxed);
        Ok(())
    }

    /// Space of the file system; what is available is less the reserve.
    ///
    /// # Errors
    /// What the file system says.
    pub fn statfs(&self) -> Result<StatFs> {
        let mut stat = native::statvfs(&self.dir)?;
        stat.available = stat.available.saturating_sub(self.reserve);
        stat.device = self.device;
        Ok(stat)
    }
}

/// What to keep back by default: 1 % of the file system, at least `least`.
///
/// # Errors
/// What the file system says.
pub fn default_reserve(dir: &Path, least: u64) -> Result<u64> {
    Ok((native::statvfs(dir)?.total / 100).max(least))
}

/// A number for the file system of `dir` that no other machine has: device numbers are the same everywhere.
fn device(dir: &Path) -> Result<u64> {
    let number = std::fs::metadata(dir).map_err(|e| files::fail("stat", dir, &e))?.dev();
    // Without /proc a machine cannot be told from others, and nothing is divided.
    let boot = std::fs::read(BOOT_ID).unwrap_or_default();
    Ok(if boot.is_empty() {
        0
    } else {
        u64::from(weft_model::checksum::crc32c(&boot)) << 32 | number & 0xffff_ffff
    })
}

mod native {
    #![allow(unsafe_code)]

    use super::{Path, Result, StatFs, files};
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;

    pub fn statvfs(dir: &Path) -> Result<StatFs> {
        let path = CString::new(dir.as_os_str().as_bytes()).unwrap_or_default();
        // SAFETY: all-zero bytes are a valid `statvfs`; the path is NUL-terminated and outlives
        // the call.
        let (result, raw) = unsafe {
            let mut raw: libc::statvfs = std::mem::zeroed();
            (libc::statvfs(path.as_ptr(), &mut raw), raw)
        };
        if result != 0 {
            return Err(files::fail("statfs", dir, &std::io::Error::last_os_error()));
        }
        Ok(StatFs {
            total: raw.f_blocks * raw.f_frsize,
            available: raw.f_bavail * raw.f_frsize,
            inodes: raw.f_files,
            inodes_free: raw.f_favail,
            device: 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_reserve_back() {
        let dir = tempfile::tempdir().unwrap();
        let gauge = Gauge::new(dir.path(), 0).unwrap();
        let all = gauge.statfs().unwrap().available;
        gauge.admit(4096).unwrap();
        assert_eq!(gauge.admit(all * 2).unwrap_err().kind, ErrorKind::NoSpace);
        let gauge = Gauge::new(dir.path(), u64::MAX).unwrap();
        assert_eq!(gauge.admit(1).unwrap_err().kind, ErrorKind::NoSpace);
        assert!(default_reserve(dir.path(), MIN_RESERVE).unwrap() >= MIN_RESERVE);
    }
}
