//! One phase of a workload, as one of its processes runs it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
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

/// Sizes of a workload.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Small files per process.
    pub files: u64,
    /// Bytes of the large file of each process.
    pub bytes: u64,
    /// Bytes per request.
    pub request: u64,
    /// Random requests per process.
    pub random: u64,
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

/// Runs `phase` in the process's own directory.
///
/// # Errors
/// The first error of the file system, or `InvalidData` for wrong contents.
pub fn run(phase: Phase, dir: &Path, sizes: &Sizes) -> io::Result<Done> {
    let small = |i: u64| dir.join(format!("file.{i}"));
    let large = dir.join("large");
    match phase {
        Phase::Create => each(sizes.files, |i| {
            OpenOptions::new().write(true).create_new(true).mode(0o644).open(small(i)).map(drop)
        }),
        Phase::Stat => each(sizes.files, |i| fs::symlink_metadata(small(i)).map(drop)),
        Phase::Open => each(sizes.files, |i| File::open(small(i)).map(drop)),
        Phase::Unlink => each(sizes.files, |i| fs::remove_file(small(i))),
        Phase::Write => write(&large, sizes, false),
        Phase::WriteSync => write(&large, sizes, true),
        Phase::Read => read(&large, sizes),
        Phase::RandomRead | Phase::RandomWrite => random(phase, &large, sizes),
        Phase::Remove => fs::remove_file(large).map(|()| Done { operations: 1, bytes: 0 }),
    }
}

fn each(count: u64, mut operation: impl FnMut(u64) -> io::Result<()>) -> io::Result<Done> {
    (0..count).try_for_each(&mut operation)?;
    Ok(Done { operations: count, bytes: 0 })
}

/// The first bytes of every request say where it belongs, so that a reader notices misplaced data.
fn stamp(buffer: &mut [u8], offset: u64) {
    buffer[..8].copy_from_slice(&offset.to_le_bytes());
}

fn write(path: &PathBuf, sizes: &Sizes, sync: bool) -> io::Result<Done> {
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
    let mut buffer = vec![0x5au8; sizes.request as usize];
    let mut offset = 0;
    while offset < sizes.bytes {
        stamp(&mut buffer, offset);
        file.write_all_at(&buffer, offset)?;
        offset += sizes.request;
    }
    if sync {
        file.sync_all()?;
    }
    Ok(Done { operations: offset / sizes.request, bytes: offset })
}

fn read(path: &PathBuf, sizes: &Sizes) -> io::Result<Done> {
    let file = File::open(path)?;
    let mut buffer = vec![0u8; sizes.request as usize];
    let mut offset = 0;
    while offset < sizes.bytes {
        file.read_exact_at(&mut buffer, offset)?;
        offset += sizes.request;
    }
    Ok(Done { operations: offset / sizes.request, bytes: offset })
}

fn random(phase: Phase, path: &PathBuf, sizes: &Sizes) -> io::Result<Done> {
    let file = OpenOptions::new().read(true).write(phase == Phase::RandomWrite).open(path)?;
    let blocks = file.metadata()?.len() / RANDOM;
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
            Phase::RandomWrite => file.write_all_at(&buffer, offset)?,
            _ => file.read_exact_at(&mut buffer, offset)?,
        }
    }
    Ok(Done { operations: sizes.random, bytes: sizes.random * RANDOM })
}
