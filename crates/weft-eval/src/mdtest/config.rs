//! Options of mdtest.

use crate::driver::Iterations;
use crate::options;
use clap::Args;
use serde::{Deserialize, Serialize};
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use weft_model::units::parse_size;

/// Most directories of a tree.
const MAX_DIRS: u64 = 100_000_000;

/// What is to be done, by mdtest's letters.
#[derive(Clone, PartialEq, Debug, Args, Serialize, Deserialize)]
pub struct Config {
    /// How files are reached: POSIX or WEFT (the client library).
    #[arg(short = 'a', default_value = "POSIX")]
    pub api: String,
    /// Branching factor of the directory tree.
    #[arg(short = 'b', default_value_t = 1)]
    pub branch: u64,
    /// No barriers between phases.
    #[arg(short = 'B')]
    pub no_barriers: bool,
    /// The first rank makes and removes the files and directories of all.
    #[arg(short = 'c')]
    pub collective: bool,
    /// Only make files and directories.
    #[arg(short = 'C')]
    pub create: bool,
    /// Where; several separated by @ are taken in turn by the ranks.
    #[arg(short = 'd', default_value = "./out")]
    pub dirs: String,
    /// Only directories, no files.
    #[arg(short = 'D')]
    pub dirs_only: bool,
    /// Bytes to read of each file.
    #[arg(short = 'e', default_value = "0", value_parser = parse_size)]
    pub read_bytes: u64,
    /// Only read files.
    #[arg(short = 'E')]
    pub read: bool,
    /// Only files, no directories.
    #[arg(short = 'F')]
    pub files_only: bool,
    /// Iterations.
    #[arg(short = 'i', default_value_t = 1)]
    pub iterations: u32,
    /// Files and directories of each rank in each directory of the tree.
    #[arg(short = 'I', default_value_t = 0)]
    pub per_dir: u64,
    /// Files and directories only in the leaves of the tree.
    #[arg(short = 'L')]
    pub leaf_only: bool,
    /// Files and directories of each rank.
    #[arg(short = 'n', default_value_t = 0)]
    pub items: u64,
    /// Ranks look at, read and remove what the rank so many further has made.
    #[arg(short = 'N', default_value_t = 0)]
    pub stride: u32,
    /// Seconds to wait before each iteration.
    #[arg(short = 'p', default_value_t = 0)]
    pub delay: u64,
    /// Only remove files and directories.
    #[arg(short = 'r')]
    pub remove: bool,
    /// Look at files in random order, with this seed.
    #[arg(short = 'R', num_args = 0..=1, default_missing_value = "1")]
    pub random: Option<u64>,
    /// All ranks work on the same files, which the first of each place removes; only files.
    #[arg(short = 'S')]
    pub shared: bool,
    /// Count the making of each rank's own directory (it is always a phase of its own).
    #[arg(short = 't')]
    pub time_unique: bool,
    /// Only look at files and directories.
    #[arg(short = 'T')]
    pub stat: bool,
    /// A tree for each rank.
    #[arg(short = 'u')]
    pub unique: bool,
    /// Tell more.
    #[arg(short = 'v', action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Bytes to write to each file.
    #[arg(short = 'w', default_value = "0", value_parser = parse_size)]
    pub write_bytes: u64,
    /// Seconds after which making files stops.
    #[arg(short = 'W', default_value_t = 0)]
    pub stonewall: u64,
    /// File that keeps how far the stonewall let it come, for later phases in a run of their own.
    #[arg(short = 'x')]
    pub status_file: Option<PathBuf>,
    /// Check what is read.
    #[arg(short = 'X')]
    pub verify: bool,
    /// Fsync each file after it was written.
    #[arg(short = 'y')]
    pub sync_file: bool,
    /// Sync after each phase.
    #[arg(short = 'Y')]
    pub call_sync: bool,
    /// Depth of the tree.
    #[arg(short = 'z', default_value_t = 0)]
    pub depth: u32,
    /// Print times instead of rates.
    #[arg(short = 'Z')]
    pub print_time: bool,
    /// Files and directories of each rank that there are, where a stonewall has left fewer than all.
    #[arg(skip)]
    pub made: Option<u64>,
    /// The iterations to run, where they are not all.
    #[arg(skip)]
    pub range: Option<Iterations>,
}

impl Config {
    /// From a command line, without the program's name.
    ///
    /// # Errors
    /// `InvalidInput` with the usage.
    pub fn parse<'a>(line: impl IntoIterator<Item = &'a str>) -> io::Result<Config> {
        options::parse::<Config>("mdtest", line)?.checked()
    }

    /// With phases and numbers filled in and everything looked at.
    ///
    /// # Errors
    /// `InvalidInput` naming the option.
    pub fn checked(&self) -> io::Result<Config> {
        let mut config = self.clone();
        config.api.make_ascii_uppercase();
        config.files_only |= config.shared;
        if !(config.create || config.stat || config.read || config.remove) {
            (config.create, config.stat, config.read, config.remove) = (true, true, true, true);
        }
        config.object().map_or(Ok(()), |why| Err(io::Error::new(ErrorKind::InvalidInput, why)))?;
        let holders = if config.leaf_only { config.leaves() } else { config.tree_dirs() };
        if config.items > 0 && config.per_dir > 0 && config.items != config.per_dir * holders {
            let why = "-n and -I exclude each other";
            return Err(io::Error::new(ErrorKind::InvalidInput, why));
        }
        if config.per_dir == 0 {
            config.per_dir = config.items / holders;
        }
        config.items = config.per_dir * holders;
        match config.items {
            0 => Err(io::Error::new(
                ErrorKind::InvalidInput,
                format!("-n or -I: at least one for each of the {holders} directories"),
            )),
            _ => Ok(config),
        }
    }

    /// What is wrong with it.
    fn object(&self) -> Option<String> {
        if !["POSIX", "WEFT"].contains(&self.api.as_str()) {
            return Some(format!("-a {}: there are POSIX and WEFT", self.api));
        }
        if self.dirs_only && (self.files_only || self.shared) {
            return Some("-D and -F or -S exclude each other".into());
        }
        if self.unique && self.shared {
            return Some("-S and -u exclude each other".into());
        }
        if self.collective && self.stonewall > 0 {
            return Some("-c and -W exclude each other".into());
        }
        if self.branch == 0 || self.iterations == 0 {
            return Some("-b and -i must be at least 1".into());
        }
        if self.depth > 64 || self.tree_dirs() > MAX_DIRS {
            return Some(format!("-b and -z make more than {MAX_DIRS} directories"));
        }
        None
    }

    /// The iterations to run.
    pub fn iterations(&self) -> std::ops::Range<u32> {
        let all = Iterations { first: 0, count: self.iterations };
        let range = self.range.unwrap_or(all);
        range.first..range.first + range.count
    }

    /// Directories of the deepest level of a tree.
    pub fn leaves(&self) -> u64 {
        self.branch.saturating_pow(self.depth)
    }

    /// Directories of a tree.
    pub fn tree_dirs(&self) -> u64 {
        let level = |level| self.branch.saturating_pow(level);
        (0..=self.depth).map(level).fold(0, u64::saturating_add)
    }
}
