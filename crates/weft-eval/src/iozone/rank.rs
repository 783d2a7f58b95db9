//! What one rank does.

use super::Config;
use crate::api::{Api, Buffer, How};
use crate::ior::plan::shuffled;
use crate::ranks::job::Member;
use crate::record::{Cpu, Sample};
use serde::{Deserialize, Serialize};
use std::io::{self, ErrorKind};
use std::time::Instant;

/// A pass over all files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Pass {
    /// As iozone calls those who do it.
    name: &'static str,
    test: u32,
    write: bool,
    random: bool,
    /// Not done with -+n.
    again: bool,
}

const fn pass(name: &'static str, test: u32, write: bool, random: bool, again: bool) -> Pass {
    Pass { name, test, write, random, again }
}

const PASSES: [Pass; 6] = [
    pass("initial writers", 0, true, false, false),
    pass("rewriters", 0, true, false, true),
    pass("readers", 1, false, false, false),
    pass("re-readers", 1, false, false, true),
    pass("random readers", 2, false, true, false),
    pass("random writers", 2, true, true, false),
];

/// What a rank has done in a pass.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Timing {
    /// Seconds since the barrier before it.
    end: f64,
    bytes: u64,
    /// Time of this rank's work, seconds.
    seconds: f64,
    cpu: Cpu,
}

/// Runs the passes.
///
/// # Errors
/// Those of the file system and of other ranks.
pub fn run(member: &Member<'_>, config: &Config) -> io::Result<()> {
    let api = member.api(&config.api)?;
    for pass in PASSES {
        if !config.tests.contains(&pass.test) || (pass.again && config.no_retest) {
            continue;
        }
        if !pass.write {
            member.chill()?;
        }
        member.comm.barrier()?;
        let (meter, clock) = (member.meter(), Instant::now());
        let mut timing = go(member, config, api.as_ref(), pass)?;
        timing.end = clock.elapsed().as_secs_f64();
        timing.cpu = meter.stop();
        let all = member.comm.exchange(&timing)?;
        if member.comm.rank() == 0 {
            member.comm.report(&sample(config, pass, &all))?;
        }
    }
    if !config.keep {
        remove(api.as_ref(), &config.path(member.comm.rank()))?;
    }
    Ok(())
}

/// Removes what is left after a failure.
pub fn clean(member: &Member<'_>, config: &Config) {
    let Ok(api) = member.api(&config.api) else { return };
    if config.keep {
        return;
    }
    for rank in 0..member.comm.size() {
        // Others do the same; what is not there need not be removed.
        let _ = remove(api.as_ref(), &config.path(rank));
    }
}

fn remove(api: &dyn Api, path: &str) -> io::Result<()> {
    match api.unlink(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn go(member: &Member<'_>, config: &Config, api: &dyn Api, pass: Pass) -> io::Result<Timing> {
    let path = config.path(member.comm.rank());
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{path}: {error}"));
    if pass.write && !pass.again && !pass.random {
        remove(api, &path)?;
    }
    let how = if pass.write { How::WRITE } else { How::READ };
    let size = config.size;
    let mut file = api.open(&path, &How { direct: config.direct, size, ..how })?;
    let mut buffer = Buffer::new(config.record as usize);
    buffer.fill(0xa5);
    let records = config.records();
    let (start, mut done) = (Instant::now(), 0);
    while done < records {
        member.comm.check()?;
        if !config.no_stonewall && member.comm.phase_ended() {
            break;
        }
        let record = if pass.random { shuffled(done, records, 7) } else { done };
        let offset = record * config.record;
        match pass.write {
            true => file.write_at(&buffer, offset),
            false => file.read_at(&mut buffer, offset),
        }
        .map_err(named)?;
        done += 1;
    }
    let mut seconds = start.elapsed().as_secs_f64();
    if done == records && !config.no_stonewall {
        member.comm.end_phase()?;
    }
    if pass.write {
        // Always done, so that the next pass begins on equal terms; in the time only when asked for.
        let start = Instant::now();
        file.sync().map_err(named)?;
        seconds += if config.flush { start.elapsed().as_secs_f64() } else { 0.0 };
    }
    let start = Instant::now();
    file.close()?;
    seconds += if config.close { start.elapsed().as_secs_f64() } else { 0.0 };
    if pass.write && !pass.random && done < records {
        // Later passes read the whole file.
        fill(api, &path, config, done)?;
    }
    Ok(Timing { bytes: done * config.record, seconds, ..Timing::default() })
}

/// Writes the records that the end of the first rank left out, outside all times.
fn fill(api: &dyn Api, path: &str, config: &Config, from: u64) -> io::Result<()> {
    let mut file = api.open(path, &How { size: config.size, ..How::WRITE })?;
    let mut buffer = Buffer::new(config.record as usize);
    buffer.fill(0xa5);
    (from..config.records())
        .try_for_each(|record| file.write_at(&buffer, record * config.record))?;
    file.close()
}

fn sample(config: &Config, pass: Pass, all: &[Timing]) -> Sample {
    let kb = |bytes: u64| bytes as f64 / 1024.0;
    let rates: Vec<f64> = all.iter().map(|t| kb(t.bytes) / t.seconds.max(1e-9)).collect();
    let bytes: u64 = all.iter().map(|timing| timing.bytes).sum();
    // What the parent sees is the time until the last has come to its end.
    let seconds = all.iter().map(|timing| timing.seconds).fold(0.0, f64::max);
    let rate: f64 = rates.iter().sum();
    let mut cpu = all.first().map(|timing| timing.cpu.clone()).unwrap_or_default();
    cpu.load = all.iter().map(|timing| timing.cpu.load).sum();
    let detail = [
        ("parent", kb(bytes) / seconds.max(1e-9)),
        ("min", rates.iter().copied().fold(f64::MAX, f64::min)),
        ("max", rates.iter().copied().fold(0.0, f64::max)),
        ("avg", rate / all.len() as f64),
        ("min_xfer", kb(all.iter().map(|timing| timing.bytes).min().unwrap_or(0))),
    ];
    Sample {
        phase: pass.name.into(),
        rate,
        unit: "kB/s".into(),
        operations: bytes / config.record,
        bytes,
        seconds,
        detail: detail.map(|(name, value)| (name.to_string(), value)).into(),
        cpu,
        ..Sample::default()
    }
}
