//! Options of iozone.

use crate::options;
use clap::Args;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use weft_model::units::parse_size;

/// What is to be done, by iozone's letters.
#[derive(Clone, PartialEq, Debug, Args, Serialize, Deserialize)]
pub struct Config {
    /// How files are reached: POSIX or WEFT (the client library); not an option of iozone.
    #[arg(long, default_value = "POSIX")]
    pub api: String,
    /// Tests: 0 write and rewrite, 1 read and re-read, 2 random read and write.
    #[arg(short = 'i')]
    pub tests: Vec<u32>,
    /// Count close in the times.
    #[arg(short = 'c')]
    pub close: bool,
    /// Count fsync in the times.
    #[arg(short = 'e')]
    pub flush: bool,
    /// Do not remove the files.
    #[arg(short = 'w')]
    pub keep: bool,
    /// Bytes per record; a plain number is in kB.
    #[arg(short = 'r', default_value = "4k", value_parser = kilobytes)]
    pub record: u64,
    /// Bytes per file; a plain number is in kB.
    #[arg(short = 's', default_value = "512k", value_parser = kilobytes)]
    pub size: u64,
    /// Processes, each with a file of its own.
    #[arg(short = 't', default_value_t = 1)]
    pub ranks: u32,
    /// Threads instead of processes.
    #[arg(short = 'T')]
    pub threads: bool,
    /// Past the page cache (O_DIRECT).
    #[arg(short = 'I')]
    pub direct: bool,
    /// All write and read to the end of their files, whoever is first.
    #[arg(short = 'x')]
    pub no_stonewall: bool,
    /// No retests: neither rewrite nor re-read (-+n).
    #[arg(long = "no-retest")]
    pub no_retest: bool,
    /// File with a line for each rank: HOST[:PORT] DIRECTORY [PROGRAM] (-+m).
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub clients: Option<PathBuf>,
    /// Files, one for each rank, instead of iozone.DUMMY.N here.
    #[arg(short = 'F', num_args = 1..)]
    pub files: Vec<String>,
    /// Directories for the files, taken in turn by the ranks; not an option of iozone.
    #[arg(long = "dir", value_name = "DIR")]
    pub dirs: Vec<String>,
}

/// A line of the list of clients.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Client {
    /// HOST or HOST:PORT.
    pub host: String,
    /// Where it works.
    pub dir: String,
}

fn kilobytes(text: &str) -> Result<u64, String> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    parse_size(&if plain { format!("{text}k") } else { text.into() })
}

/// Options that begin with `-+`, as the parser of options can read them.
pub fn readable(line: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let known = |word: OsString| match word.to_str() {
        Some("-+n") => "--no-retest".into(),
        Some("-+m") => "--clients".into(),
        _ => word,
    };
    line.into_iter().map(known).collect()
}

impl Config {
    /// From a command line, without the program's name.
    ///
    /// # Errors
    /// `InvalidInput` with the usage.
    pub fn parse<'a>(line: impl IntoIterator<Item = &'a str>) -> io::Result<Config> {
        let line = readable(line.into_iter().map(OsString::from));
        options::parse::<Config>("iozone", line)?.checked()
    }

    /// With everything looked at.
    ///
    /// # Errors
    /// `InvalidInput` naming the option.
    pub fn checked(&self) -> io::Result<Config> {
        let mut config = self.clone();
        config.api.make_ascii_uppercase();
        if config.tests.is_empty() {
            config.tests = vec![0, 1];
        }
        config.tests.sort_unstable();
        config.tests.dedup();
        let aligned = config.record.is_multiple_of(crate::api::ALIGNMENT as u64);
        let why = if config.tests.iter().any(|test| *test > 2) {
            "-i: there are 0 (write), 1 (read) and 2 (random)"
        } else if config.record == 0 || config.size < config.record {
            "-s must be at least one record (-r)"
        } else if config.ranks == 0 {
            "-t must be at least 1"
        } else if config.direct && !aligned {
            "-I needs -r in multiples of 4 kB"
        } else if !config.files.is_empty() && config.files.len() < config.ranks as usize {
            "-F needs a file for each process (-t)"
        } else {
            return Ok(config);
        };
        Err(io::Error::new(ErrorKind::InvalidInput, why))
    }

    /// The file of a rank.
    pub fn path(&self, rank: u32) -> String {
        let rank = rank as usize;
        let name = format!("iozone.DUMMY.{rank}");
        match (self.files.get(rank), self.dirs.is_empty()) {
            (Some(file), _) => file.clone(),
            (None, true) => name,
            (None, false) => format!("{}/{name}", self.dirs[rank % self.dirs.len()]),
        }
    }

    /// The directories of the files, each once.
    pub fn places(&self) -> Vec<String> {
        let mut dirs: Vec<String> = Vec::new();
        for rank in 0..self.ranks {
            let path = self.path(rank);
            let dir = path.rsplit_once('/').map_or(".", |(dir, _)| dir).to_string();
            if !dirs.contains(&dir) {
                dirs.push(dir);
            }
        }
        dirs
    }

    /// Records of a file.
    pub fn records(&self) -> u64 {
        self.size / self.record
    }
}

/// Reads a list of clients.
///
/// # Errors
/// `InvalidData` for a line without a directory.
pub fn clients(text: &str) -> io::Result<Vec<Client>> {
    let lines =
        text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let mut words = line.split_whitespace().map(String::from);
            let both = words.next().zip(words.next());
            let (host, dir) = both.ok_or_else(|| {
                let why = format!("line {line:?} of the list of clients: HOST DIRECTORY [PROGRAM]");
                io::Error::new(ErrorKind::InvalidData, why)
            })?;
            Ok(Client { host, dir })
        })
        .collect()
}
