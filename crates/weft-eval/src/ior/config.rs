//! Options of IOR.

use super::hog::Amount;
use crate::driver::Iterations;
use crate::options;
use clap::Args;
use serde::{Deserialize, Serialize};
use std::io::{self, ErrorKind};
use weft_model::units::parse_size;

/// Largest transfer, bytes.
const MAX_TRANSFER: u64 = 1 << 30;
/// The signature of data unless told otherwise.
const SIGNATURE: u64 = 0x5745_4654;

/// What is to be done, by IOR's letters.
#[derive(Clone, PartialEq, Debug, Args, Serialize, Deserialize)]
pub struct Config {
    /// How files are reached: POSIX, MMAP, WEFT (the client library), MPIIO (as POSIX).
    #[arg(short = 'a', long, default_value = "POSIX")]
    pub api: String,
    /// Number for the summary.
    #[arg(short = 'A', long = "refNum", default_value_t = 0)]
    pub reference: u32,
    /// Contiguous bytes of each rank in a segment.
    #[arg(short = 'b', long = "blockSize", default_value = "1m", value_parser = parse_size)]
    pub block: u64,
    /// Past the page cache (O_DIRECT).
    #[arg(short = 'B', long = "useO_DIRECT", visible_alias = "posix.odirect")]
    pub direct: bool,
    /// Ranks read what the rank of the next node has written.
    #[arg(short = 'C', long = "reorderTasksConstant")]
    pub reorder: bool,
    /// Seconds to wait before each phase.
    #[arg(short = 'd', long = "interTestDelay", default_value_t = 0)]
    pub delay: u64,
    /// Seconds after which writing or reading stops.
    #[arg(short = 'D', long = "deadlineForStonewalling", default_value_t = 0)]
    pub stonewall: u64,
    /// Fsync before close.
    #[arg(short = 'e', long)]
    pub fsync: bool,
    /// Do not remove the files before writing.
    #[arg(short = 'E', long = "useExistingTestFile")]
    pub existing: bool,
    /// File with directives, between lines IOR START and IOR STOP, each test ended by RUN.
    #[arg(short = 'f', long = "scriptFile")]
    #[serde(skip)]
    pub script: Option<std::path::PathBuf>,
    /// A file for each rank.
    #[arg(short = 'F', long = "filePerProc")]
    pub file_per_rank: bool,
    /// Barriers between open, write or read, and close.
    #[arg(short = 'g', long = "intraTestBarriers")]
    pub barriers: bool,
    /// Seed of the data.
    #[arg(short = 'G', long = "setTimeStampSignature", default_value_t = SIGNATURE)]
    pub signature: u64,
    /// Repetitions.
    #[arg(short = 'i', long = "repetitions", default_value_t = 1)]
    pub iterations: u32,
    /// Warn about ranks this many seconds away from the mean.
    #[arg(short = 'j', long = "outlierThreshold", default_value_t = 0)]
    pub outlier: u64,
    /// Keep the files.
    #[arg(short = 'k', long = "keepFile")]
    pub keep: bool,
    /// Keep files in which wrong data was found.
    #[arg(short = 'K', long = "keepFileWithError")]
    pub keep_wrong: bool,
    /// Kind of data; every kind is done as incompressible data that tells where it belongs.
    #[arg(short = 'l', long = "dataPacketType", default_value = "o")]
    pub packet: String,
    /// Memory that the ranks of each machine hold while the test runs: a size, or 75% of all of it.
    #[arg(short = 'M', long = "memoryPerNode", value_name = "SIZE|PERCENT%")]
    pub memory: Option<Amount>,
    /// New files for each repetition.
    #[arg(short = 'm', long = "multiFile")]
    pub multi_file: bool,
    /// Ranks.
    #[arg(short = 'N', long = "numTasks")]
    pub ranks: Option<u32>,
    /// The file; several separated by @ are taken in turn by the ranks (with -F).
    #[arg(short = 'o', long = "testFile", default_value = "testFile")]
    pub file: String,
    /// Directives, as NAME=VALUE[,NAME=VALUE...].
    #[arg(short = 'O', value_name = "DIRECTIVES")]
    #[serde(skip)]
    pub directives: Vec<String>,
    /// Reserve the space of each file when it is opened for writing.
    #[arg(short = 'p', long = "preallocate")]
    pub preallocate: bool,
    /// Stop at the first wrong data (it always does).
    #[arg(short = 'q', long = "quitOnError")]
    pub quit: bool,
    /// How many nodes on, with -C; at least how many, with -Z.
    #[arg(short = 'Q', long = "taskPerNodeOffset", default_value_t = 1)]
    pub node_offset: u32,
    /// Read.
    #[arg(short = 'r', long = "readFile")]
    pub read: bool,
    /// Read and check the data.
    #[arg(short = 'R', long = "checkRead")]
    pub check_read: bool,
    /// Segments: each holds a block of every rank.
    #[arg(short = 's', long = "segmentCount", default_value_t = 1)]
    pub segments: u64,
    /// Bytes per transfer.
    #[arg(short = 't', long = "transferSize", default_value = "256k", value_parser = parse_size)]
    pub transfer: u64,
    /// Minutes after which no new phase begins.
    #[arg(short = 'T', long = "maxTimeDuration", default_value_t = 0)]
    pub max_minutes: u64,
    /// A directory of its own for each file (with -F).
    #[arg(short = 'u', long = "uniqueDir")]
    pub unique_dir: bool,
    /// Tell more.
    #[arg(short = 'v', action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Write.
    #[arg(short = 'w', long = "writeFile")]
    pub write: bool,
    /// Check what was written, outside the times.
    #[arg(short = 'W', long = "checkWrite")]
    pub check_write: bool,
    /// Seed for -Z; a negative one changes with each repetition.
    #[arg(
        short = 'X',
        long = "reorderTasksRandomSeed",
        default_value_t = 0,
        allow_negative_numbers = true
    )]
    pub random_seed: i64,
    /// Fsync after every write.
    #[arg(short = 'Y', long = "fsyncPerWrite")]
    pub fsync_each: bool,
    /// Transfers in random order.
    #[arg(short = 'z', long = "randomOffset")]
    pub random: bool,
    /// Ranks read what random others have written.
    #[arg(short = 'Z', long = "reorderTasksRandom")]
    pub reorder_random: bool,
    /// After the stonewall all ranks go on until each has done as much as the fastest had.
    #[arg(skip)]
    pub wear_out: bool,
    /// Transfers of each rank that there are to be read, where a stonewall has left fewer than all.
    #[arg(skip)]
    pub written: Option<u64>,
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
        options::parse::<Config>("ior", line)?.checked()
    }

    /// With directives applied, phases filled in, and everything looked at.
    ///
    /// # Errors
    /// `InvalidInput` naming the option.
    pub fn checked(&self) -> io::Result<Config> {
        let mut config = self.clone();
        for list in std::mem::take(&mut config.directives) {
            config.direct_all(&list)?;
        }
        if !(config.write || config.read || config.check_write || config.check_read) {
            (config.write, config.read) = (true, true);
        }
        if config.file.ends_with('/') {
            config.file.push_str("testFile");
        }
        config.api.make_ascii_uppercase();
        config.object().map_or(Ok(config), |why| Err(io::Error::new(ErrorKind::InvalidInput, why)))
    }

    /// What is wrong with it.
    fn object(&self) -> Option<String> {
        let aligned = |size: u64| size.is_multiple_of(crate::api::ALIGNMENT as u64);
        if !["POSIX", "MMAP", "WEFT", "MPIIO"].contains(&self.api.as_str()) {
            return Some(format!("-a {}: there are POSIX, MMAP and WEFT", self.api));
        }
        if self.transfer == 0 || self.transfer > MAX_TRANSFER {
            return Some("-t must be between 1 byte and 1 GiB".into());
        }
        if self.block == 0 || !self.block.is_multiple_of(self.transfer) {
            let (block, transfer) = (self.block, self.transfer);
            return Some(format!("-b {block} must be a multiple of -t {transfer}"));
        }
        if self.segments == 0 || self.iterations == 0 || self.ranks == Some(0) {
            return Some("-s, -i and -N must be at least 1".into());
        }
        if self.direct && !(aligned(self.transfer) && aligned(self.block)) {
            return Some("-B needs -t and -b in multiples of 4096 bytes".into());
        }
        if self.stonewall > 0 && (self.check_read || self.check_write) && !self.wear_out {
            return Some("-D cannot be checked with -W or -R; -O stoneWallingWearOut=1 can".into());
        }
        if self.file.contains('@') && !self.file_per_rank {
            return Some("-o with several files separated by @ needs -F".into());
        }
        if self.reorder && self.reorder_random {
            return Some("-C and -Z exclude each other".into());
        }
        None
    }

    /// The iterations to run.
    pub fn iterations(&self) -> std::ops::Range<u32> {
        let all = Iterations { first: 0, count: self.iterations };
        let range = self.range.unwrap_or(all);
        range.first..range.first + range.count
    }

    /// Transfers of a rank.
    pub fn transfers(&self) -> u64 {
        self.block / self.transfer * self.segments
    }

    /// Bytes of all ranks.
    pub fn total(&self, ranks: u32) -> u64 {
        self.block * self.segments * u64::from(ranks)
    }
}
