//! Settings: a subset of the IO500's file, and options.

use serde::{Deserialize, Serialize};
use std::io::{self, ErrorKind};

/// Settings, with the IO500's defaults.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Config {
    /// Directory in which another one is made, filled, and removed.
    pub datadir: String,
    /// How files are reached.
    pub api: String,
    /// Seconds of each phase that writes.
    pub stonewall: u64,
    /// Transfer of ior-easy.
    pub easy_transfer: String,
    /// Most bytes of each rank in ior-easy.
    pub easy_block: String,
    /// Most segments in ior-hard.
    pub hard_segments: u64,
    /// Most files of each rank in mdtest-easy.
    pub easy_files: u64,
    /// Most files of each rank in mdtest-hard.
    pub hard_files: u64,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            datadir: "./datafiles".into(),
            api: "POSIX".into(),
            stonewall: 300,
            easy_transfer: "2m".into(),
            easy_block: "9920000m".into(),
            hard_segments: 10_000_000,
            easy_files: 1_000_000,
            hard_files: 1_000_000,
        }
    }
}

impl Config {
    /// Reads the text of a file of the IO500: sections and `name = value`.
    ///
    /// # Errors
    /// `InvalidData` naming a setting that is unknown here or has no sense.
    pub fn read(text: &str) -> io::Result<Config> {
        let (mut config, mut section) = (Config::default(), "");
        for line in text.lines() {
            let line = line.split(['#', ';']).next().unwrap_or_default().trim();
            if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                section = name;
            } else if let Some((name, value)) = line.split_once('=') {
                let (name, value) = (name.trim(), value.trim());
                let bad = || {
                    let why = format!("[{section}] {name} = {value}: not known here");
                    io::Error::new(ErrorKind::InvalidData, why)
                };
                config.set(section, name, value).ok_or_else(bad)?;
            }
        }
        Ok(config)
    }

    fn set(&mut self, section: &str, name: &str, value: &str) -> Option<()> {
        if value.is_empty() {
            return Some(());
        }
        let number = || value.parse::<u64>().ok();
        match (section, name) {
            ("global", "datadir") => self.datadir = value.into(),
            ("global", "api") => self.api = value.into(),
            ("debug", "stonewall-time") => self.stonewall = number()?,
            ("ior-easy", "transferSize") => self.easy_transfer = value.into(),
            ("ior-easy", "blockSize") => self.easy_block = value.into(),
            ("ior-hard", "segmentCount") => self.hard_segments = number()?,
            ("mdtest-easy", "n") => self.easy_files = number()?,
            ("mdtest-hard", "n") => self.hard_files = number()?,
            // Where results go and how much is told is said by options here.
            ("global", "resultdir" | "timestamp-datadir" | "timestamp-resultdir" | "verbosity") => {
            }
            _ => return None,
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_files_of_the_io500() {
        let text = "[global]\ndatadir = /mnt/d # here\n\n[debug]\nstonewall-time = 30\n[ior-easy]\nblockSize = 72m\n";
        let config = Config::read(text).unwrap();
        assert_eq!((config.datadir.as_str(), config.stonewall), ("/mnt/d", 30));
        assert_eq!((config.easy_block.as_str(), config.easy_transfer.as_str()), ("72m", "2m"));
        let error = Config::read("[ior-rnd4K]\nrun = TRUE").unwrap_err().to_string();
        assert_eq!(error, "[ior-rnd4K] run = TRUE: not known here");
    }
}
