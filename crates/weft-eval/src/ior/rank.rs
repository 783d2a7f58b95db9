//! What one rank does.

use super::Config;
use super::data::Pattern;
use super::hog::Hog;
use super::plan::Part;
use super::timing::{Timing, outliers, sample};
use crate::api::{Api, Buffer, File, How};
use crate::ranks::job::Member;
use crate::record::Sample;
use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Write,
    Read,
    /// Read and compare; timed as [`Access::Read`].
    Check,
}

/// Where data comes from and goes to.
struct Memory {
    pattern: Pattern,
    buffer: Buffer,
}

/// A rank at work.
struct Worker<'a> {
    member: &'a Member<'a>,
    config: &'a Config,
    api: Box<dyn Api>,
    /// Operations of each rank in the last write phase of this run.
    written: Vec<u64>,
}

/// Runs the iterations.
///
/// # Errors
/// Those of the file system and of other ranks, and `InvalidData` for wrong data.
pub fn run(member: &Member<'_>, config: &Config) -> io::Result<()> {
    let api = member.api(&config.api)?;
    let there = config.written.unwrap_or(config.transfers()).min(config.transfers());
    let written = vec![there; member.comm.size() as usize];
    let mut worker = Worker { member, config, api, written };
    let held = config.memory.map(|amount| Hog::hold(amount, &member.comm)).transpose()?;
    let end = Duration::from_secs(config.max_minutes * 60);
    let start = Instant::now();
    for iteration in config.iterations() {
        // All decide by the clock of the first.
        let over = config.max_minutes > 0 && start.elapsed() >= end;
        if member.comm.exchange(&over)?.first() == Some(&true) {
            member.comm.note("-T: not all iterations were run")?;
            break;
        }
        worker.iterate(iteration)?;
    }
    drop(held);
    Ok(())
}

/// Removes what is left after a failure.
pub fn clean(member: &Member<'_>, config: &Config) {
    if config.keep {
        return;
    }
    let Ok(api) = member.api(&config.api) else { return };
    let ranks = member.comm.size();
    let owners = if config.file_per_rank { ranks } else { 1 };
    for (owner, iteration) in (0..owners).flat_map(|o| config.iterations().map(move |i| (o, i))) {
        let path = config.path(Part { owner, ranks }, iteration);
        // Others do the same; what is not there need not be removed.
        let _ = api.unlink(&path);
        remove_dir_of(config, api.as_ref(), &path);
    }
}

fn remove_dir_of(config: &Config, api: &dyn Api, path: &str) {
    if let (true, Some((dir, _))) =
        (config.unique_dir && config.file_per_rank, path.rsplit_once('/'))
    {
        // It may not be empty, which then is not our doing.
        let _ = api.rmdir(dir);
    }
}

impl Worker<'_> {
    fn iterate(&mut self, iteration: u32) -> io::Result<()> {
        let (config, comm) = (self.config, &self.member.comm);
        let (rank, ranks, per_node) = (comm.rank(), comm.size(), comm.per_node());
        let own = Part { owner: rank, ranks };
        if config.write {
            if !config.existing {
                self.remove(own, iteration)?;
            }
            self.phase(Access::Write, own, iteration)?;
        }
        if config.check_write {
            // Twice as far as readers are, so that neither reads what it holds in memory.
            let further = Config { node_offset: 2 * config.node_offset, ..config.clone() };
            let owner = further.reader_of(rank, ranks, per_node, iteration);
            self.check(Part { owner, ranks }, iteration)?;
        }
        if config.read || config.check_read {
            let owner = config.reader_of(rank, ranks, per_node, iteration);
            let access = if config.check_read { Access::Check } else { Access::Read };
            self.member.chill()?;
            self.phase(access, Part { owner, ranks }, iteration)?;
        }
        comm.barrier()?;
        if !config.keep {
            let start = Instant::now();
            self.remove(own, iteration)?;
            comm.barrier()?;
            let seconds = start.elapsed().as_secs_f64();
            self.report_removal(iteration, seconds)?;
        }
        Ok(())
    }

    /// Removes the file of this rank, or that of all.
    fn remove(&self, part: Part, iteration: u32) -> io::Result<()> {
        if !self.config.file_per_rank && part.owner > 0 {
            return Ok(());
        }
        let path = self.config.path(part, iteration);
        match self.api.unlink(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => {
                remove_dir_of(self.config, self.api.as_ref(), &path);
                Ok(())
            }
        }
    }

    fn phase(&mut self, access: Access, part: Part, iteration: u32) -> io::Result<()> {
        let (config, comm) = (self.config, &self.member.comm);
        std::thread::sleep(Duration::from_secs(config.delay));
        let path = config.path(part, iteration);
        let write = access == Access::Write;
        if write
            && config.unique_dir
            && config.file_per_rank
            && let Some((dir, _)) = path.rsplit_once('/')
        {
            self.api.mkdir_all(dir)?;
        }
        let mut memory = self.memory(access, part);
        comm.barrier()?;
        let meter = self.member.meter();
        let start = Instant::now();
        let now = || start.elapsed().as_secs_f64();
        let mut timing = Timing::default();
        timing.open[0] = now();
        let mut file = self.open(&path, part, write)?;
        timing.open[1] = now();
        if config.barriers {
            comm.barrier()?;
        }
        timing.transfer[0] = now();
        (timing.operations, timing.stonewall) =
            self.transfer(access, part, &path, file.as_mut(), &mut memory)?;
        timing.transfer[1] = now();
        if config.barriers {
            comm.barrier()?;
        }
        timing.close[0] = now();
        if write && config.fsync {
            file.sync().map_err(|error| at(&path, 0, &error))?;
        }
        file.close()?;
        timing.close[1] = now();
        timing.cpu = meter.stop();
        let all = comm.exchange(&timing)?;
        if write {
            self.written = all.iter().map(|timing| timing.operations).collect();
        }
        self.report(write, iteration, &all)
    }

    fn open(&self, path: &str, part: Part, write: bool) -> io::Result<Box<dyn File + '_>> {
        let direct = self.config.direct;
        let size = self.config.file_size(part);
        // A shared file needs it once.
        let reserve = self.config.preallocate && (self.config.file_per_rank || part.owner == 0);
        match write {
            true => self.api.open(path, &How { direct, size, reserve, ..How::WRITE }),
            false => self.api.open(path, &How { direct, ..How::READ }),
        }
    }

    /// What a phase needs, so that making it is not in its time.
    fn memory(&self, access: Access, part: Part) -> Memory {
        let config = self.config;
        let (file, length) = (if config.file_per_rank { part.owner } else { 0 }, config.transfer);
        let mut buffer = Buffer::new(if access == Access::Write { 0 } else { length as usize });
        // Touched once, so that the kernel has given it.
        buffer.fill(1);
        Memory { pattern: Pattern::new(config.signature, file, length as usize), buffer }
    }

    /// Moves the data of a part, up to the stonewall. Tells how many transfers it has made.
    fn transfer(
        &self,
        access: Access,
        part: Part,
        path: &str,
        file: &mut dyn File,
        memory: &mut Memory,
    ) -> io::Result<(u64, Option<(u64, f64)>)> {
        let config = self.config;
        let Memory { pattern, buffer } = memory;
        let start = Instant::now();
        let wall = Duration::from_secs(config.stonewall);
        let (mut end, mut stonewall) = (config.transfers(), None);
        if access != Access::Write {
            end = self.written[part.owner as usize];
        }
        let mut done = 0;
        while done < end {
            self.member.comm.check()?;
            if config.stonewall > 0 && stonewall.is_none() && start.elapsed() >= wall {
                stonewall = Some((done, start.elapsed().as_secs_f64()));
                if !config.wear_out || access != Access::Write {
                    break;
                }
                end = self.fastest(done)?;
                continue;
            }
            let offset = config.offset(part, done);
            match access {
                Access::Write => file.write_at(pattern.at(offset), offset),
                Access::Read | Access::Check => file.read_at(buffer, offset),
            }
            .map_err(|error| at(path, offset, &error))?;
            if access == Access::Write && config.fsync_each {
                file.sync().map_err(|error| at(path, offset, &error))?;
            }
            if access == Access::Check
                && let Some(byte) = pattern.wrong(buffer, offset)
            {
                return Err(wrong(path, offset + byte as u64));
            }
            done += 1;
        }
        if config.wear_out && config.stonewall > 0 && access == Access::Write && stonewall.is_none()
        {
            // Done before the wall; the others want to know how far this one came.
            self.fastest(done)?;
        }
        Ok((done, stonewall))
    }

    /// Transfers of the rank that has made the most.
    fn fastest(&self, done: u64) -> io::Result<u64> {
        Ok(self.member.comm.exchange(&done)?.into_iter().max().unwrap_or(done))
    }

    /// Reads and compares outside the times.
    fn check(&self, part: Part, iteration: u32) -> io::Result<()> {
        self.member.comm.barrier()?;
        let path = self.config.path(part, iteration);
        let mut file = self.open(&path, part, false)?;
        let mut memory = self.memory(Access::Check, part);
        self.transfer(Access::Check, part, &path, file.as_mut(), &mut memory)?;
        file.close()
    }

    fn report(&self, write: bool, iteration: u32, all: &[Timing]) -> io::Result<()> {
        if self.member.comm.rank() > 0 {
            return Ok(());
        }
        self.member.comm.report(&sample(self.config, write, iteration, all))?;
        let notes = outliers(self.config, all);
        notes.iter().try_for_each(|note| self.member.comm.note(note))
    }

    fn report_removal(&self, iteration: u32, seconds: f64) -> io::Result<()> {
        if self.member.comm.rank() > 0 {
            return Ok(());
        }
        let operations =
            if self.config.file_per_rank { u64::from(self.member.comm.size()) } else { 1 };
        self.member.comm.report(&Sample {
            phase: "remove".into(),
            iteration,
            rate: operations as f64 / seconds,
            unit: "ops/s".into(),
            operations,
            seconds,
            minor: true,
            ..Sample::default()
        })
    }
}

fn at(path: &str, offset: u64, error: &io::Error) -> io::Error {
    let what = match error.kind() {
        ErrorKind::UnexpectedEof => "the file is shorter than it has to be".to_string(),
        _ => error.to_string(),
    };
    io::Error::new(error.kind(), format!("{path} at offset {offset}: {what}"))
}

fn wrong(path: &str, offset: u64) -> io::Error {
    let what = "what is read is not what was written (or written with another -t, -F or -G)";
    io::Error::new(ErrorKind::InvalidData, format!("{path} at offset {offset}: {what}"))
}
