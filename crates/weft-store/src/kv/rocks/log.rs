//! Syncing the log past RocksDB: its own sync must not meet a write that just failed for lack of
//! space (it gives the store up, and with assertions, as Debian builds it, aborts the process).
//!
//! Each write goes to the newest log file before it returns. What is in no log file any more is in
//! sorted files, which RocksDB has synced before it removes a log.

use crate::files;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use weft_model::Result;

/// The log files of a store.
pub struct Logs {
    dir: PathBuf,
    /// By number, kept open so that no error of the disk goes by unseen. None for one that was
    /// synced after it had been replaced: it is complete.
    known: BTreeMap<u64, Option<File>>,
}

impl Logs {
    /// The logs in `dir`.
    pub fn new(dir: &Path) -> Logs {
        Logs { dir: dir.to_path_buf(), known: BTreeMap::new() }
    }

    /// Puts everything that is in the logs when this is called on stable storage.
    ///
    /// # Errors
    /// What the disk says; what was durable is then unknown.
    pub fn sync(&mut self) -> Result<()> {
        let present = self.present()?;
        let newest = present.last().copied();
        self.known.retain(|number, _| present.binary_search(number).is_ok());
        let mut dir_changed = false;
        // Older ones first, as a log may only end where no later one begins.
        for number in present {
            if !self.known.contains_key(&number) {
                match File::open(self.path(number)) {
                    Ok(file) => self.known.insert(number, Some(file)),
                    // Gone since: its contents are in sorted files.
                    Err(error) if error.kind() == ErrorKind::NotFound => continue,
                    Err(error) => {
                        return Err(files::fail("open log", &self.path(number), &error));
                    }
                };
                dir_changed = true;
            }
            let Some(Some(file)) = self.known.get(&number) else { continue };
            file.sync_data().map_err(|e| files::fail("sync log", &self.path(number), &e))?;
            if Some(number) != newest {
                self.known.insert(number, None);
            }
        }
        if dir_changed { files::sync_dir(&self.dir) } else { Ok(()) }
    }

    fn path(&self, number: u64) -> PathBuf {
        self.dir.join(format!("{number:06}.log"))
    }

    /// Numbers of the log files, ascending.
    fn present(&self) -> Result<Vec<u64>> {
        let io = |error| files::fail("list logs", &self.dir, &error);
        let mut numbers = Vec::new();
        for entry in fs::read_dir(&self.dir).map_err(io)? {
            let name = entry.map_err(io)?.file_name();
            let number = name.to_str().and_then(|name| name.strip_suffix(".log"));
            numbers.extend(number.and_then(|number| number.parse::<u64>().ok()));
        }
        numbers.sort_unstable();
        Ok(numbers)
    }
}
