//! What is done: one phase of a workload, as one of its members does it.

use crate::target::Target;
use std::fmt;
use std::io::{self, ErrorKind};
use std::str::FromStr;

/// What is done, in the order in which phases make sense.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Make empty files.
    Create,
    /// Ask for their attributes.
    Stat,
    /// Open and close them.
    Open,
    /// Remove them.
    Unlink,
    /// Make small files, with an fsync each.
    SmallSync,
    /// Write one large file, in requests of a given size, without fsync.
    Write,
    /// Write one large file, then fsync.
    WriteSync,
    /// Read it.
    Read,
    /// Read 4 KiB pieces of it at random places.
    RandomRead,
    /// Overwrite 4 KiB pieces of it at random places.
    RandomWrite,
    /// Remove it.
    Remove,
}

/// Every phase and its name.
const NAMES: &[(&str, Phase)] = &[
    ("create", Phase::Create),
    ("stat", Phase::Stat),
    ("open", Phase::Open),
    ("unlink", Phase::Unlink),
    ("small-sync", Phase::SmallSync),
    ("write", Phase::Write),
    ("write-sync", Phase::WriteSync),
    ("read", Phase::Read),
    ("random-read", Phase::RandomRead),
    ("random-write", Phase::RandomWrite),
    ("remove", Phase::Remove),
];

impl FromStr for Phase {
    type Err = String;

    fn from_str(text: &str) -> Result<Phase, String> {
        let found = NAMES.iter().find(|(name, _)| *name == text);
        found.map(|(_, phase)| *phase).ok_or_else(|| {
            let names: Vec<_> = NAMES.iter().map(|(name, _)| *name).collect();
            format!("no phase {text:?}; there are {}", names.join(", "))
        })
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = NAMES.iter().find(|(_, phase)| phase == self);
        f.pad(found.map_or("", |(name, _)| name))
    }
}

impl Phase {
    /// Whether its rate is told in bytes.
    pub const fn is_bulk(self) -> bool {
        matches!(self, Phase::Write | Phase::WriteSync | Phase::Read)
    }

    /// Whether it reads data, which may lie in a cache.
    pub const fn reads(self) -> bool {
        matches!(self, Phase::Read | Phase::RandomRead)
    }
}

/// Sizes of a workload.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Small files per member.
    pub files: u64,
    /// Bytes of the large file of each member.
    pub bytes: u64,
    /// Bytes per request.
    pub request: u64,
    /// Random requests per member.
    pub random: u64,
    /// What is read must be what was written. Not so where nothing is stored.
    pub checked: bool,
}

/// Sizes that every benchmark can be told, the same for all members.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct SizeOptions {
    /// MiB of the large file of each process or thread.
    #[arg(long, default_value_t = 512)]
    mib: u64,
    /// KiB per request.
    #[arg(long, default_value_t = 1024)]
    pub request_kib: u64,
    /// Random requests of 4 KiB per process or thread.
    #[arg(long, default_value_t = 20_000)]
    random: u64,
}

impl SizeOptions {
    /// With so many small files, and reads that are checked or not.
    pub const fn sizes(&self, files: u64, checked: bool) -> Sizes {
        let (bytes, request) = (self.mib << 20, self.request_kib << 10);
        Sizes { files, bytes, request, random: self.random, checked }
    }
}

/// What a phase has done.
#[derive(Clone, Copy, Default, Debug)]
pub struct Done {
    /// Operations.
    pub operations: u64,
    /// Bytes moved.
    pub bytes: u64,
}

/// Size of a random request.
const RANDOM: u64 = 4096;

/// Name of the large file.
const LARGE: &str = "large";

/// Runs `phase` in a directory of its own.
///
/// # Errors
/// The first error of the target, or `InvalidData` for wrong contents.
pub fn run(phase: Phase, target: &dyn Target, sizes: &Sizes) -> io::Result<Done> {
    match phase {
        Phase::Create => each(sizes, |name| target.create(name)),
        Phase::Stat => each(sizes, |name| target.stat(name)),
        Phase::Open => each(sizes, |name| target.open_close(name)),
        Phase::Unlink => each(sizes, |name| target.unlink(name)),
        Phase::SmallSync => each(sizes, |name| {
            let file = target.open(name)?;
            file.write_at(&[0x5a; RANDOM as usize], 0)?;
            file.sync()
        }),
        Phase::Write => write(target, sizes, false),
        Phase::WriteSync => write(target, sizes, true),
        Phase::Read => read(target, sizes),
        Phase::RandomRead | Phase::RandomWrite => random(phase, target, sizes),
        Phase::Remove => target.unlink(LARGE).map(|()| Done { operations: 1, bytes: 0 }),
    }
}

fn each(sizes: &Sizes, mut operation: impl FnMut(&str) -> io::Result<()>) -> io::Result<Done> {
    (0..sizes.files).try_for_each(|i| operation(&format!("file.{i}")))?;
    Ok(Done { operations: sizes.files, bytes: 0 })
}

fn write(target: &dyn Target, sizes: &Sizes, sync: bool) -> io::Result<Done> {
    let file = target.open(LARGE)?;
    let mut buffer = vec![0x5au8; sizes.request as usize];
    let mut offset = 0;
    while offset < sizes.bytes {
        // Every request says where it belongs, so that a reader notices misplaced data.
        buffer[..8].copy_from_slice(&offset.to_le_bytes());
        file.write_at(&buffer, offset)?;
        offset += sizes.request;
    }
    if sync {
        file.sync()?;
    }
    Ok(Done { operations: offset / sizes.request, bytes: offset })
}

fn read(target: &dyn Target, sizes: &Sizes) -> io::Result<Done> {
    let file = target.open_read(LARGE)?;
    let mut buffer = vec![0u8; sizes.request as usize];
    let mut offset = 0;
    while offset < sizes.bytes {
        file.read_at(&mut buffer, offset)?;
        if sizes.checked && buffer[..8] != offset.to_le_bytes() {
            let wrong = format!("wrong data at offset {offset}");
            return Err(io::Error::new(ErrorKind::InvalidData, wrong));
        }
        offset += sizes.request;
    }
    Ok(Done { operations: offset / sizes.request, bytes: offset })
}

fn random(phase: Phase, target: &dyn Target, sizes: &Sizes) -> io::Result<Done> {
    let file = if phase.reads() { target.open_read(LARGE)? } else { target.open(LARGE)? };
    let blocks = file.size()? / RANDOM;
    if blocks == 0 {
        return Err(io::Error::new(ErrorKind::InvalidData, "the large file is empty"));
    }
    let mut buffer = vec![0u8; RANDOM as usize];
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for _ in 0..sizes.random {
        // xorshift64: any spread will do, the same for all who are compared.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let offset = state % blocks * RANDOM;
        match phase {
            Phase::RandomWrite => file.write_at(&buffer, offset)?,
            _ => file.read_at(&mut buffer, offset)?,
        }
    }
    Ok(Done { operations: sizes.random, bytes: sizes.random * RANDOM })
}
