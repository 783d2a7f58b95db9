//! Small files of a target: replaced as a whole, locked, and the record of how it was last stopped.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::path::Path;
use weft_model::{ErrorKind, FsError, Result};

const LOCK: &str = "lock";
const STATE: &str = "state";

/// Turns an operating system error on `path` into ours.
pub(crate) fn fail(op: &'static str, path: &Path, error: &std::io::Error) -> FsError {
    FsError::from_io(op, error).on(format!("file={}", path.display()))
}

/// Replaces `dir/name`. On stable storage when it returns; a crash leaves the old or the new file.
pub(crate) fn replace(dir: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    let path = dir.join(name);
    let temporary = dir.join(format!("{name}.new"));
    let write = || -> std::io::Result<()> {
        let mut file = File::create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, &path)
    };
    write().map_err(|error| fail("write", &path, &error))?;
    sync_dir(dir)
}

/// Puts the entries of a directory on stable storage.
pub(crate) fn sync_dir(dir: &Path) -> Result<()> {
    let sync = File::open(dir).and_then(|file| file.sync_all());
    sync.map_err(|error| fail("sync directory", dir, &error))
}

/// The exclusive right to a target directory; given back when dropped or when the process ends.
#[derive(Debug)]
pub(crate) struct Lock(#[allow(dead_code, reason = "held open for its lock")] File);

impl Lock {
    /// Takes the lock of `dir`, making its file when missing.
    ///
    /// # Errors
    /// `Busy`, naming the process that has it.
    pub(crate) fn take(dir: &Path) -> Result<Lock> {
        let path = dir.join(LOCK);
        let io = |error: std::io::Error| fail("lock target", &path, &error);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(io)?;
        match native::try_lock(&file) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                let mut pid = String::new();
                let _ = file.read_to_string(&mut pid);
                return Err(FsError::new(ErrorKind::Busy, "lock target")
                    .on(format!("file={}", path.display()))
                    .because(format!("open in process {}", pid.trim())));
            }
            Err(error) => return Err(io(error)),
        }
        let mut write_pid = || {
            file.set_len(0)?;
            file.rewind()?;
            writeln!(file, "{}", std::process::id())
        };
        write_pid().map_err(io)?;
        Ok(Lock(file))
    }
}

/// How a target was left the last time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastStop {
    /// Closed; or formatted and never opened.
    Clean,
    /// The process ended without closing it; the operating system went on.
    ProcessCrash,
    /// The operating system ended, or may have.
    PowerLoss,
}

/// Reads how the target in `dir` was left. In doubt the worst is assumed.
pub(crate) fn last_stop(dir: &Path) -> Result<LastStop> {
    let boot = boot_id()?;
    let text = match fs::read_to_string(dir.join(STATE)) {
        Ok(text) => text,
        Err(_) => return Ok(LastStop::PowerLoss),
    };
    Ok(match text.split_whitespace().collect::<Vec<_>>()[..] {
        ["clean", _, "end"] => LastStop::Clean,
        ["open", then, "end"] if then == boot => LastStop::ProcessCrash,
        _ => LastStop::PowerLoss,
    })
}

/// Records durably that the target in `dir` is in use, or that it was closed.
pub(crate) fn record_state(dir: &Path, open: bool) -> Result<()> {
    let word = if open { "open" } else { "clean" };
    replace(dir, STATE, format!("{word} {} end\n", boot_id()?).as_bytes())
}

/// Names the time since the operating system was started; `WEFT_BOOT_ID` stands in for it where a test
/// cuts the power of a disk and not that of the machine.
fn boot_id() -> Result<String> {
    if let Ok(given) = std::env::var("WEFT_BOOT_ID") {
        return Ok(given);
    }
    let path = Path::new("/proc/sys/kernel/random/boot_id");
    let text = fs::read_to_string(path).map_err(|error| fail("read", path, &error))?;
    Ok(text.trim().to_owned())
}

mod native {
    #![allow(unsafe_code)] // `flock` is in std only from Rust 1.89 on.

    use super::File;
    use std::os::fd::AsRawFd;

    pub fn try_lock(file: &File) -> std::io::Result<()> {
        // SAFETY: plain system call on a descriptor that is open for the time of the borrow.
        let result = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
        if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_how_it_was_left() {
        let dir = tempfile::tempdir().unwrap();
        let left = || last_stop(dir.path()).unwrap();
        assert_eq!(left(), LastStop::PowerLoss);
        record_state(dir.path(), true).unwrap();
        assert_eq!(left(), LastStop::ProcessCrash);
        record_state(dir.path(), false).unwrap();
        assert_eq!(left(), LastStop::Clean);
        fs::write(dir.path().join(STATE), "open 00000000-other-boot end\n").unwrap();
        assert_eq!(left(), LastStop::PowerLoss);
        fs::write(dir.path().join(STATE), "clean 0000").unwrap();
        assert_eq!(left(), LastStop::PowerLoss);
    }

    #[test]
    fn only_one_has_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let lock = Lock::take(dir.path()).unwrap();
        let error = Lock::take(dir.path()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Busy);
        assert!(error.to_string().contains(&std::process::id().to_string()), "{error}");
        drop(lock);
        Lock::take(dir.path()).unwrap();
    }
}
