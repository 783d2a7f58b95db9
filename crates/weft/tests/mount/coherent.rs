//! Mounts that cache never show what is not so any more.
//!
//! One test does random operations one after the other, each on another mount, and compares every answer
//! with a model. The other lets writers and readers run: what a reader sees must not be older than what
//! a writer had finished before the reader began.

use crate::cluster::{Cluster, Kind, Mount};
use crate::sys::{errno, remove_xattr, set_xattr};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};
use weft_fuse::door::DoorConfig;

/// What a file should be.
#[derive(Clone, Debug, Default)]
struct Expected {
    content: Vec<u8>,
    mode: u32,
    links: u64,
    /// An extended attribute.
    tag: Option<u8>,
}

/// All files by number, names, and handles held open for reading.
struct Model<'a> {
    mounts: &'a [Mount],
    rng: SmallRng,
    files: Vec<Expected>,
    names: BTreeMap<(usize, usize), usize>,
    held: Vec<(File, usize)>,
}

const DIRS: usize = 2;
const NAMES: usize = 4;
const HELD: usize = 6;
const TAG: &CStr = c"user.tag";

type Answer = Result<(), String>;

fn same<T: PartialEq + std::fmt::Debug>(what: &str, seen: T, expected: T) -> Answer {
    if seen == expected { Ok(()) } else { Err(format!("{what}: {seen:?} instead of {expected:?}")) }
}

fn told(what: &str, error: io::Error) -> String {
    format!("{what}: {error}")
}

impl<'a> Model<'a> {
    fn new(mounts: &'a [Mount], seed: u64) -> Model<'a> {
        for dir in 0..DIRS {
            fs::create_dir(mounts[0].path(&format!("d{dir}"))).unwrap();
        }
        let rng = SmallRng::seed_from_u64(seed);
        Model { mounts, rng, files: Vec::new(), names: BTreeMap::new(), held: Vec::new() }
    }

    fn below(&mut self, count: usize) -> usize {
        self.rng.random_range(0..count)
    }

    fn any_name(&mut self) -> (usize, usize) {
        (self.below(DIRS), self.below(NAMES))
    }

    /// A name as some mount has it.
    fn path(&mut self, (dir, name): (usize, usize)) -> PathBuf {
        let mount = self.below(self.mounts.len());
        self.mounts[mount].path(&format!("d{dir}/n{name}"))
    }

    fn step(&mut self) -> Answer {
        match self.below(14) {
            0 | 1 => self.write(),
            2 => self.resize(),
            3 => self.rename(),
            4 => self.unlink(),
            5 => self.chmod(),
            6 => self.link(),
            7 => self.list(),
            8 => self.hold(),
            9 => self.read_held(),
            10 => self.tag(),
            11 => self.new_dir(),
            _ => {
                let name = self.any_name();
                self.look(name)
            }
        }
    }

    /// Writes somewhere in a file, which is made if there is none.
    fn write(&mut self) -> Answer {
        let name = self.any_name();
        let path = self.path(name);
        let (at, len) = (self.below(20_000), 1 + self.below(9_000));
        let byte = self.rng.random::<u8>();
        let options = File::options().write(true).create(true).truncate(false).open(path);
        let file = options.map_err(|error| told("open", error))?;
        file.write_all_at(&vec![byte; len], at as u64).map_err(|error| told("write", error))?;
        let number = *self.names.entry(name).or_insert_with(|| {
            self.files.push(Expected { links: 1, mode: 0o644, ..Expected::default() });
            self.files.len() - 1
        });
        let content = &mut self.files[number].content;
        content.resize(content.len().max(at + len), 0);
        content[at..at + len].fill(byte);
        // Also while it is open for writing.
        self.look(name)?;
        drop(file);
        self.look(name)
    }

    fn resize(&mut self) -> Answer {
        let name = self.any_name();
        let (path, size) = (self.path(name), self.below(30_000));
        let Some(&number) = self.names.get(&name) else { return Ok(()) };
        let file = File::options().write(true).open(path).map_err(|error| told("open", error))?;
        file.set_len(size as u64).map_err(|error| told("truncate", error))?;
        self.files[number].content.resize(size, 0);
        self.look(name)
    }

    fn rename(&mut self) -> Answer {
        let (from, to) = (self.any_name(), self.any_name());
        let mount = self.below(self.mounts.len());
        let path = |(dir, name)| self.mounts[mount].path(&format!("d{dir}/n{name}"));
        let renamed = fs::rename(path(from), path(to));
        let Some(&number) = self.names.get(&from) else {
            return same("rename", errno(renamed), libc::ENOENT);
        };
        renamed.map_err(|error| told("rename", error))?;
        if self.names.get(&to) != Some(&number) {
            self.names.remove(&from);
            if let Some(replaced) = self.names.insert(to, number) {
                self.files[replaced].links -= 1;
            }
        }
        self.look(from)?;
        self.look(to)
    }

    fn unlink(&mut self) -> Answer {
        let name = self.any_name();
        let removed = fs::remove_file(self.path(name));
        let Some(number) = self.names.remove(&name) else {
            return same("unlink", errno(removed), libc::ENOENT);
        };
        removed.map_err(|error| told("unlink", error))?;
        self.files[number].links -= 1;
        self.look(name)
    }

    fn chmod(&mut self) -> Answer {
        let name = self.any_name();
        let (path, mode) = (self.path(name), 0o600 | self.rng.random_range(0..0o100));
        let Some(&number) = self.names.get(&name) else { return Ok(()) };
        let changed = fs::set_permissions(path, fs::Permissions::from_mode(mode));
        changed.map_err(|error| told("chmod", error))?;
        self.files[number].mode = mode;
        self.look(name)
    }

    fn link(&mut self) -> Answer {
        let (from, to) = (self.any_name(), self.any_name());
        let mount = self.below(self.mounts.len());
        let path = |(dir, name)| self.mounts[mount].path(&format!("d{dir}/n{name}"));
        let linked = fs::hard_link(path(from), path(to));
        match (self.names.get(&from).copied(), self.names.contains_key(&to)) {
            (None, _) => return same("link", errno(linked), libc::ENOENT),
            (_, true) => return same("link", errno(linked), libc::EEXIST),
            (Some(number), false) => {
                linked.map_err(|error| told("link", error))?;
                self.names.insert(to, number);
                self.files[number].links += 1;
            }
        }
        self.look(to)
    }

    fn list(&mut self) -> Answer {
        let (dir, mount) = (self.below(DIRS), self.below(self.mounts.len()));
        let entries = fs::read_dir(self.mounts[mount].path(&format!("d{dir}")));
        let mut seen = BTreeSet::new();
        for entry in entries.map_err(|error| told("list", error))? {
            let entry = entry.map_err(|error| told("list", error))?;
            let size = entry.metadata().map_err(|error| told("stat entry", error))?.len();
            seen.insert((entry.file_name().into_string().unwrap_or_default(), size));
        }
        let here = self.names.iter().filter(|((at, _), _)| *at == dir);
        let size = |number: &usize| self.files[*number].content.len() as u64;
        let expected = here.map(|((_, name), number)| (format!("n{name}"), size(number)));
        same("entries", seen, expected.collect())
    }

    /// Sets or removes an extended attribute.
    fn tag(&mut self) -> Answer {
        let name = self.any_name();
        let path = self.path(name);
        let Some(&number) = self.names.get(&name) else { return Ok(()) };
        let tag = (self.below(2) == 0).then(|| self.rng.random::<u8>());
        match tag {
            Some(tag) => set_xattr(&path, TAG, &[tag], 0)
                .map(drop)
                .map_err(|error| told("set tag", error))?,
            None if self.files[number].tag.is_none() => {
                let removed = remove_xattr(&path, TAG);
                return same("remove tag", errno(removed), libc::ENODATA);
            }
            None => {
                remove_xattr(&path, TAG).map(drop).map_err(|error| told("remove tag", error))?
            }
        }
        self.files[number].tag = tag;
        self.look(name)
    }

    /// Makes a directory, names in it from two mounts, and removes all of it.
    fn new_dir(&mut self) -> Answer {
        let (maker, other) = (self.below(self.mounts.len()), self.below(self.mounts.len()));
        let at = |mount: usize, name: &str| self.mounts[mount].path(&format!("new/{name}"));
        fs::create_dir(at(maker, "")).map_err(|error| told("mkdir", error))?;
        let mut made = Vec::new();
        for (mount, name) in [(maker, "a"), (other, "b"), (maker, "c")] {
            // Looked for by both, so that it is known to be missing.
            for looker in [maker, other] {
                same("missing", errno(fs::metadata(at(looker, name))), libc::ENOENT)?;
            }
            File::create_new(at(mount, name)).map_err(|error| told("create", error))?;
            made.push(name);
            for looker in [other, maker] {
                fs::metadata(at(looker, name)).map_err(|error| told("look for made", error))?;
                let dir = fs::metadata(at(looker, "")).map_err(|error| told("stat dir", error))?;
                same("entries of dir", dir.len(), made.len() as u64)?;
            }
        }
        for name in made {
            fs::remove_file(at(other, name)).map_err(|error| told("unlink", error))?;
            same("removed", errno(fs::metadata(at(maker, name))), libc::ENOENT)?;
        }
        same("empty", fs::metadata(at(maker, "")).map_or(9, |dir| dir.len()), 0)?;
        fs::remove_dir(at(other, "")).map_err(|error| told("rmdir", error))
    }

    /// Opens a file for reading and keeps it open.
    fn hold(&mut self) -> Answer {
        let name = self.any_name();
        let path = self.path(name);
        let Some(&number) = self.names.get(&name) else { return Ok(()) };
        let file = File::open(path).map_err(|error| told("open", error))?;
        if self.held.len() == HELD {
            self.held.swap_remove(0);
        }
        self.held.push((file, number));
        self.read_held()
    }

    fn read_held(&mut self) -> Answer {
        if self.held.is_empty() {
            return Ok(());
        }
        let which = self.below(self.held.len());
        let (file, number) = &self.held[which];
        compare(file, &self.files[*number])
    }

    /// Looks at a name from some mount.
    fn look(&mut self, name: (usize, usize)) -> Answer {
        let path = self.path(name);
        let Some(&number) = self.names.get(&name) else {
            return same("look", errno(fs::metadata(path)), libc::ENOENT);
        };
        let file = File::open(path).map_err(|error| told("open", error))?;
        compare(&file, &self.files[number])
    }
}

fn tag_of(file: &File) -> Result<Option<u8>, String> {
    let mut value = [0];
    match rustix::fs::fgetxattr(file, TAG, &mut value) {
        Ok(_) => Ok(Some(value[0])),
        Err(rustix::io::Errno::NODATA) => Ok(None),
        Err(error) => Err(told("get tag", error.into())),
    }
}

fn compare(file: &File, expected: &Expected) -> Answer {
    let seen = file.metadata().map_err(|error| told("stat", error))?;
    same("size", seen.len(), expected.content.len() as u64)?;
    same("mode", seen.mode() & 0o7777, expected.mode)?;
    same("links", seen.nlink(), expected.links)?;
    same("tag", tag_of(file)?, expected.tag)?;
    let mut content = vec![0; expected.content.len() + 1];
    let mut got = 0;
    while got < content.len() {
        match file.read_at(&mut content[got..], got as u64) {
            Ok(0) => break,
            Ok(more) => got += more,
            Err(error) => return Err(told("read", error)),
        }
    }
    let differs = (0..got).find(|&at| expected.content.get(at) != Some(&content[at]));
    same("bytes read", got, expected.content.len())?;
    same("first byte that differs", differs, None)
}

fn run(mounts: &[Mount], seed: u64, steps: usize) -> Result<(), String> {
    let mut model = Model::new(mounts, seed);
    (0..steps).try_for_each(|step| {
        model.step().map_err(|found| format!("seed {seed}, step {step}: {found}"))
    })
}

#[test]
fn every_mount_shows_what_is() {
    use Kind::{Straight, WritesBehind, WritesThrough};
    let kinds: [&[Kind]; 5] = [
        &[Straight, Straight],
        &[WritesThrough, WritesThrough],
        &[WritesBehind, WritesBehind],
        &[Straight, WritesThrough, WritesBehind],
        &[WritesBehind; 4],
    ];
    for (seed, kinds) in (1..).zip(kinds) {
        let cluster = Cluster::start();
        let mount = |kind: &Kind| cluster.mount_as(*kind, DoorConfig::default());
        let mounts: Vec<Mount> = kinds.iter().map(mount).collect();
        if let Err(found) = run(&mounts, seed, 1000) {
            panic!("{kinds:?}: {found}");
        }
    }
}

/// The test above would notice if recalls were not carried out: with lifetimes that nobody cuts short it
/// fails.
#[test]
fn what_is_kept_without_recalls_is_noticed() {
    let cluster = Cluster::start();
    let ttl = Duration::from_secs(1);
    let config = DoorConfig { entry_ttl: ttl, attr_ttl: ttl, ..DoorConfig::default() };
    let mounts = [cluster.mount_with(config.clone()), cluster.mount_with(config)];
    assert!(run(&mounts, 1, 1500).is_err());
}

/// Counts up in some way, and reads the count.
struct Counter {
    name: &'static str,
    set: fn(&Mount, u64),
    get: fn(&Mount) -> u64,
}

fn made(mount: &Mount, name: &str) -> File {
    let path = mount.path(name);
    File::options().write(true).create(true).truncate(false).open(path).unwrap()
}

const COUNTERS: [Counter; 4] = [
    Counter {
        name: "data",
        set: |mount, count| {
            made(mount, "data").write_all_at(&count.to_le_bytes(), 0).unwrap();
        },
        get: |mount| {
            let Ok(data) = fs::read(mount.path("data")) else { return 0 };
            data.try_into().map_or(0, u64::from_le_bytes)
        },
    },
    Counter {
        name: "size",
        set: |mount, count| made(mount, "size").set_len(count).unwrap(),
        get: |mount| fs::metadata(mount.path("size")).map_or(0, |found| found.len()),
    },
    Counter {
        name: "names",
        set: |mount, count| {
            fs::create_dir_all(mount.path("names")).unwrap();
            fs::write(mount.path(&format!("names/{count}")), "").unwrap();
        },
        get: |mount| fs::read_dir(mount.path("names")).map_or(0, |entries| entries.count() as u64),
    },
    Counter {
        name: "replaced",
        set: |mount, count| {
            fs::write(mount.path("new"), count.to_string()).unwrap();
            fs::rename(mount.path("new"), mount.path("replaced")).unwrap();
        },
        get: |mount| match fs::read_to_string(mount.path("replaced")) {
            Ok(text) => text.parse().unwrap(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(error) => panic!("{error}"),
        },
    },
];

#[test]
fn nobody_sees_less_than_was_finished() {
    let cluster = Cluster::start();
    let kinds = [Kind::WritesBehind, Kind::WritesThrough, Kind::Straight];
    let mounts = kinds.map(|kind| cluster.mount_as(kind, DoorConfig::default()));
    for Counter { name, set, get } in COUNTERS {
        let (finished, over) = (AtomicU64::new(0), AtomicBool::new(false));
        thread::scope(|scope| {
            for mount in &mounts {
                scope.spawn(|| {
                    while !over.load(SeqCst) {
                        let before = finished.load(SeqCst);
                        let seen = get(mount);
                        assert!(seen >= before, "{name}: {seen} after {before} was finished");
                    }
                });
            }
            let start = Instant::now();
            for count in 1.. {
                set(&mounts[count as usize % 2], count);
                finished.store(count, SeqCst);
                // Long enough for the others to be granted something.
                thread::sleep(Duration::from_millis(if count % 3 == 0 { 5 } else { 0 }));
                if start.elapsed() > Duration::from_secs(2) {
                    break;
                }
            }
            over.store(true, SeqCst);
        });
        assert!(finished.load(SeqCst) > 20, "{name}");
    }
}
