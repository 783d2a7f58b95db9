//! What one rank does.

use super::Config;
use super::tree::Kind;
use crate::api::{Api, How};
use crate::ior::plan::{mix, shuffled};
use crate::ranks::job::Member;
use crate::record::{Cpu, Sample};
use serde::{Deserialize, Serialize};
use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

/// What a rank has done in a phase.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Timing {
    /// Seconds since the barrier before it.
    start: f64,
    /// As above.
    end: f64,
    operations: u64,
    bytes: u64,
    /// Items made when the stonewall came, and the time.
    stonewall: Option<(u64, f64)>,
    cpu: Cpu,
}

/// What is done to items that are there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Act {
    Stat,
    Read,
    Remove,
}

/// A rank at work.
struct Worker<'a> {
    member: &'a Member<'a>,
    config: &'a Config,
    api: Box<dyn Api>,
    iteration: u32,
    /// Items of each kind that there are, of each rank.
    items: u64,
}

/// Runs the iterations.
///
/// # Errors
/// Those of the file system and of other ranks, and `InvalidData` for wrong data.
pub fn run(member: &Member<'_>, config: &Config) -> io::Result<()> {
    let api = member.api(&config.api)?;
    let items = config.made.unwrap_or(config.items).min(config.items);
    let mut worker = Worker { member, config, api, iteration: 0, items };
    if !config.create
        && let Some(file) = &config.status_file
    {
        let text = std::fs::read_to_string(file).map_err(named(file))?;
        worker.items = text.trim().parse().map_err(io::Error::other).map_err(named(file))?;
    }
    for iteration in config.iterations() {
        std::thread::sleep(Duration::from_secs(config.delay));
        worker.iteration = iteration;
        worker.iterate()?;
    }
    Ok(())
}

fn named(file: &std::path::Path) -> impl Fn(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("-x {}: {error}", file.display()))
}

/// Removes what is left after a failure, if this run has made it.
pub fn clean(member: &Member<'_>, config: &Config) {
    let Ok(api) = member.api(&config.api) else { return };
    if !config.create {
        return;
    }
    let places = config.dirs.split('@').count() as u32;
    for iteration in config.iterations() {
        for rank in 0..places {
            api.remove_all(&config.test_dir(rank, iteration));
        }
    }
}

impl Worker<'_> {
    fn iterate(&mut self) -> io::Result<()> {
        let config = self.config;
        if config.create {
            self.items = config.items;
            let places = config.dirs.split('@').count() as u32;
            if self.member.comm.rank() < places {
                self.api.mkdir_all(&config.test_dir(self.member.comm.rank(), self.iteration))?;
            }
            self.phase("Tree creation", true, |worker| worker.make_tree())?;
        }
        let kinds =
            [(Kind::Dir, "Directory", config.files_only), (Kind::File, "File", config.dirs_only)];
        for (kind, name, skipped) in kinds {
            if !skipped {
                self.all_of(kind, name)?;
            }
        }
        if config.remove {
            self.phase("Tree removal", true, |worker| worker.remove_tree())?;
            self.member.comm.barrier()?;
            if config.makes_tree(self.member.comm.rank()) {
                // That of a place goes with the last tree in it.
                let _ = self.api.rmdir(&config.test_dir(self.member.comm.rank(), self.iteration));
            }
        }
        Ok(())
    }

    fn all_of(&mut self, kind: Kind, name: &str) -> io::Result<()> {
        let config = self.config;
        if config.create {
            self.create(kind, name)?;
        }
        if config.stat {
            self.act(kind, &format!("{name} stat"), Act::Stat, 1)?;
        }
        if config.read && kind == Kind::File {
            self.member.chill()?;
            self.act(kind, &format!("{name} read"), Act::Read, 2)?;
        }
        if config.remove {
            self.act(kind, &format!("{name} removal"), Act::Remove, 3)?;
        }
        Ok(())
    }

    /// The rank whose items this one takes when it goes on `steps` strides.
    fn peer(&self, steps: u32) -> u32 {
        let comm = &self.member.comm;
        let shift = u64::from(self.config.stride) * u64::from(steps);
        ((u64::from(comm.rank()) + shift) % u64::from(comm.size())) as u32
    }

    fn path(&self, rank: u32, kind: Kind, item: u64) -> String {
        let dir = self.config.test_dir(rank, self.iteration);
        format!("{dir}/{}", self.config.item_path(rank, kind, item))
    }

    /// Makes items, up to the stonewall and then as many as the fastest has made.
    fn create(&mut self, kind: Kind, name: &str) -> io::Result<()> {
        let (rank, wall) = (self.peer(0), Duration::from_secs(self.config.stonewall));
        let ranks = self.member.comm.size();
        let data = content(self.config.write_bytes);
        let mut made = 0;
        self.phase(&format!("{name} creation"), false, |worker| {
            if worker.config.collective {
                worker.make_for_all(kind)?;
                if kind == Kind::Dir {
                    let operations = if rank == 0 { worker.items * u64::from(ranks) } else { 0 };
                    return Ok(Timing { operations, ..Timing::default() });
                }
            }
            let (start, mut end, mut timing) = (Instant::now(), worker.items, Timing::default());
            let walled = worker.config.stonewall > 0;
            while made < end {
                worker.member.comm.check()?;
                if walled && timing.stonewall.is_none() && start.elapsed() >= wall {
                    timing.stonewall = Some((made, start.elapsed().as_secs_f64()));
                    end = worker.most(made)?;
                    continue;
                }
                worker.create_one(&worker.path(rank, kind, made), kind, made, &data)?;
                made += 1;
            }
            if walled && timing.stonewall.is_none() {
                worker.most(made)?;
            }
            let bytes = if kind == Kind::File { made * worker.config.write_bytes } else { 0 };
            Ok(Timing { operations: made, bytes, ..timing })
        })?;
        if self.config.stonewall > 0 {
            self.items = made;
            if let (0, Some(file)) = (rank, &self.config.status_file) {
                std::fs::write(file, format!("{made}\n")).map_err(named(file))?;
            }
        }
        Ok(())
    }

    /// The first rank makes the items of all; the others wait until they are there.
    fn make_for_all(&self, kind: Kind) -> io::Result<()> {
        let comm = &self.member.comm;
        if comm.rank() == 0 {
            for owner in self.config.owners(comm.size()) {
                for item in 0..self.items {
                    comm.check()?;
                    let path = self.path(owner, kind, item);
                    match kind {
                        Kind::Dir => self.api.mkdir(&path)?,
                        Kind::File => self.api.open(&path, &How::WRITE)?.close()?,
                    }
                }
            }
        }
        comm.barrier()
    }

    fn most(&self, made: u64) -> io::Result<u64> {
        Ok(self.member.comm.exchange(&made)?.into_iter().max().unwrap_or(made))
    }

    fn create_one(&self, path: &str, kind: Kind, item: u64, data: &[u8]) -> io::Result<()> {
        if kind == Kind::Dir {
            return self.api.mkdir(path);
        }
        let mut file = self.api.open(path, &How::WRITE)?;
        if !data.is_empty() {
            let told =
                |error: io::Error| io::Error::new(error.kind(), format!("write {path}: {error}"));
            let mut data = data.to_vec();
            stamp(&mut data, item);
            file.write_at(&data, 0).map_err(told)?;
        }
        if self.config.sync_file {
            file.sync()?;
        }
        file.close()
    }

    /// Does something to all items of a rank.
    fn act(&mut self, kind: Kind, name: &str, act: Act, steps: u32) -> io::Result<()> {
        let peer = self.peer(steps);
        let comm = &self.member.comm;
        let ranks = match act {
            Act::Remove => self.config.removals_of(comm.rank(), comm.size(), peer),
            _ => vec![peer],
        };
        let mut wanted = content(self.config.write_bytes);
        let mut buffer = vec![0u8; self.config.read_bytes as usize];
        self.phase(name, false, |worker| {
            let all = ranks.iter().flat_map(|&rank| (0..worker.items).map(move |i| (rank, i)));
            for (rank, index) in all {
                worker.member.comm.check()?;
                let item = match worker.config.random {
                    Some(seed) if act != Act::Remove => shuffled(index, worker.items, seed),
                    _ => index,
                };
                let path = worker.path(rank, kind, item);
                match (act, kind) {
                    (Act::Stat, _) => worker.api.stat(&path).map(drop)?,
                    (Act::Remove, Kind::Dir) => worker.api.rmdir(&path)?,
                    (Act::Remove, Kind::File) => worker.api.unlink(&path)?,
                    _ => worker.read_one(&path, item, &mut buffer, &mut wanted)?,
                }
            }
            let bytes = if act == Act::Read { worker.items * worker.config.read_bytes } else { 0 };
            let operations = worker.items * ranks.len() as u64;
            Ok(Timing { operations, bytes, ..Timing::default() })
        })
    }

    fn read_one(
        &self,
        path: &str,
        item: u64,
        buffer: &mut [u8],
        wanted: &mut [u8],
    ) -> io::Result<()> {
        let mut file = self.api.open(path, &How::READ)?;
        if !buffer.is_empty() {
            let told =
                |error: io::Error| io::Error::new(error.kind(), format!("read {path}: {error}"));
            file.read_at(buffer, 0).map_err(told)?;
            stamp(wanted, item);
            // The first bytes tell which file it is and are always looked at.
            let all = wanted.len().min(buffer.len());
            let checked = if self.config.verify { all } else { all.min(8) };
            if buffer[..checked] != wanted[..checked] {
                let what = format!("{path}: what is read is not what was written");
                return Err(io::Error::new(ErrorKind::InvalidData, what));
            }
        }
        file.close()
    }

    fn make_tree(&self) -> io::Result<Timing> {
        self.each_tree(|dirs| dirs.iter().try_for_each(|dir| self.api.mkdir(dir)))
    }

    fn remove_tree(&self) -> io::Result<Timing> {
        self.each_tree(|dirs| dirs.iter().rev().try_for_each(|dir| self.api.rmdir(dir)))
    }

    /// Does something to the trees that this rank is to make and remove, each from its root down.
    fn each_tree(&self, act: impl Fn(&[String]) -> io::Result<()>) -> io::Result<Timing> {
        let (config, comm) = (self.config, &self.member.comm);
        let mut operations = 0;
        for owner in config.trees_of(comm.rank(), comm.size()) {
            let base = config.test_dir(owner, self.iteration);
            let path = |dir| format!("{base}/{}", config.dir_path(owner, dir));
            let dirs: Vec<String> = (0..config.tree_dirs()).map(path).collect();
            act(&dirs)?;
            operations += config.tree_dirs();
        }
        Ok(Timing { operations, ..Timing::default() })
    }

    /// Runs a phase on all ranks together, and reports it.
    fn phase(
        &mut self,
        name: &str,
        minor: bool,
        work: impl FnOnce(&Worker<'_>) -> io::Result<Timing>,
    ) -> io::Result<()> {
        let comm = &self.member.comm;
        if !self.config.no_barriers {
            comm.barrier()?;
        }
        let (meter, clock) = (self.member.meter(), Instant::now());
        let mut timing = work(self)?;
        if self.config.call_sync {
            self.api.sync_all()?;
        }
        timing.end = clock.elapsed().as_secs_f64();
        timing.cpu = meter.stop();
        let all = comm.exchange(&timing)?;
        match comm.rank() {
            0 => comm.report(&sample(name, self.iteration, minor, &all)),
            _ => Ok(()),
        }
    }
}

fn sample(name: &str, iteration: u32, minor: bool, all: &[Timing]) -> Sample {
    let operations: u64 = all.iter().map(|timing| timing.operations).sum();
    let start = all.iter().map(|timing| timing.start).fold(f64::MAX, f64::min);
    let seconds = all.iter().map(|timing| timing.end).fold(0.0, f64::max) - start;
    let mut cpu = all.first().map(|timing| timing.cpu.clone()).unwrap_or_default();
    cpu.load = all.iter().map(|timing| timing.cpu.load).sum();
    let mut detail = std::collections::BTreeMap::new();
    if all.iter().any(|timing| timing.stonewall.is_some()) {
        let before = |t: &Timing| t.stonewall.map_or(t.operations, |(made, _)| made);
        let wall = all.iter().filter_map(|t| t.stonewall).map(|(_, time)| time).fold(0.0, f64::max);
        detail.insert("stonewall".to_string(), wall);
        detail.insert("stonewall_items".to_string(), all.iter().map(before).sum::<u64>() as f64);
        let per_rank = all.first().map_or(0, |timing| timing.operations);
        detail.insert("items_per_rank".to_string(), per_rank as f64);
    }
    Sample {
        phase: name.into(),
        iteration,
        rate: operations as f64 / seconds,
        unit: "ops/s".into(),
        operations,
        bytes: all.iter().map(|timing| timing.bytes).sum(),
        seconds,
        detail,
        cpu,
        minor,
    }
}

/// What files contain, but for the first bytes.
fn content(length: u64) -> Vec<u8> {
    (0..length.div_ceil(8)).flat_map(|word| mix(word).to_le_bytes()).take(length as usize).collect()
}

/// The first bytes tell which file it is.
fn stamp(data: &mut [u8], item: u64) {
    let length = data.len().min(8);
    data[..length].copy_from_slice(&item.to_le_bytes()[..length]);
}
