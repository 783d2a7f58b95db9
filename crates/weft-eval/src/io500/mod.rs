//! A look-alike of the IO500: its phases in its order with its parameters, and its score. Not the
//! IO500 itself, and no result of it may be submitted.
//!
//! Differences: `find` looks at the size and name of every file but not at its age, and is done by the
//! ranks of this program.

mod config;
mod score;

pub use config::Config;
pub use score::{Score, result_line, score_line};

use crate::driver::{self, Setup};
use crate::ranks::Work;
use crate::record::{Fsync, Record, Sample};
use crate::trees::Trees;
use crate::{ior, mdtest};
use std::io;

/// Bytes of the files of mdtest-hard.
const HARD_FILE: u64 = 3901;

/// What the phases that read have to know of those that wrote.
#[derive(Clone, Copy, Default)]
struct Made {
    easy_transfers: u64,
    hard_transfers: u64,
    easy_files: u64,
    hard_files: u64,
}

/// Runs all phases. `told` gets every figure as it comes, in GiB/s or kIOPS.
///
/// # Errors
/// Those of the ranks; what was made is removed.
pub fn run(
    config: &Config,
    setup: &Setup,
    told: &mut dyn FnMut(&Sample),
) -> io::Result<(Record, Option<Score>)> {
    let settings = serde_json::to_value(config)?;
    let mut record = driver::begin(setup, "io500", settings, &[&config.datadir]);
    record
        .notes
        .push("a look-alike of the IO500, not a submission; find does not look at age".into());
    let note =
        "fsync of each file of ior (-e) and sync after each phase of mdtest (-Y), in the times";
    record.fsync = Fsync { included: true, note: note.into() };
    let setup = Setup { repeats: 0, ..setup.clone() };
    // A directory of its own, as all of it is removed.
    let own = format!("{}/weft-io500.{}.{}", config.datadir, std::process::id(), record.started);
    let config = &Config { datadir: own, ..config.clone() };
    let made =
        once(&setup, &mut record, Work::Make(config.trees(&["ior-easy", "ior-hard"])), &mut |_| {});
    let done = made.and_then(|_| phases(config, &setup, &mut record, told));
    let removed = once(&setup, &mut record, Work::Remove(config.trees(&["."])), &mut |_| {});
    done.and(removed.map(drop))?;
    let score = Score::of(&record);
    Ok((record, score))
}

fn phases(
    config: &Config,
    setup: &Setup,
    record: &mut Record,
    told: &mut dyn FnMut(&Sample),
) -> io::Result<()> {
    let ranks = u64::from(setup.launch.count.max(1));
    let mut made = Made::default();
    for phase in score::PHASES {
        let work = config.work(phase, &made)?;
        let kind = match phase {
            name if name.starts_with("ior") => {
                if name.ends_with("write") {
                    "write"
                } else {
                    "read"
                }
            }
            "find" => "find",
            name => match name.rsplit('-').next() {
                Some("write") => "File creation",
                Some("stat") => "File stat",
                Some("read") => "File read",
                _ => "File removal",
            },
        };
        let samples = once(setup, record, work, &mut |_| {})?;
        let found = samples.into_iter().find(|sample| sample.phase == kind);
        let mut sample = found.ok_or_else(|| io::Error::other(format!("{phase}: no figure")))?;
        let each = sample.operations / ranks;
        match phase {
            "ior-easy-write" => made.easy_transfers = each,
            "ior-hard-write" => made.hard_transfers = each,
            "mdtest-easy-write" => made.easy_files = each,
            "mdtest-hard-write" => made.hard_files = each,
            _ => {}
        }
        let (scale, unit) =
            if sample.unit == "MiB/s" { (1024.0, "GiB/s") } else { (1000.0, "kIOPS") };
        (sample.phase, sample.unit, sample.rate) = (phase.into(), unit.into(), sample.rate / scale);
        told(&sample);
        record.add([sample]);
    }
    Ok(())
}

/// Runs one piece of work, and takes over what is known of the ranks and caches.
fn once(
    setup: &Setup,
    record: &mut Record,
    work: Work,
    told: &mut dyn FnMut(&Sample),
) -> io::Result<Vec<Sample>> {
    let part = Record::begin("io500", Vec::new(), serde_json::Value::Null);
    let part = driver::measure(setup, part, 1, &|_| work.clone(), told)?;
    record.seconds += part.seconds;
    (record.ranks, record.caches) = (part.ranks, part.caches);
    for note in part.notes {
        if !record.notes.contains(&note) {
            record.notes.push(note);
        }
    }
    Ok(part.samples)
}

impl Config {
    fn trees(&self, dirs: &[&str]) -> Trees {
        let dir = |name: &&str| match *name {
            "." => self.datadir.clone(),
            name => format!("{}/{name}", self.datadir),
        };
        let dirs = dirs.iter().map(dir).collect();
        Trees { api: self.api.clone(), dirs, size: HARD_FILE, name: "01".into() }
    }

    /// The command line of a phase, as the IO500 has it.
    fn work(&self, phase: &str, made: &Made) -> io::Result<Work> {
        let (dir, wall, api) = (&self.datadir, self.stonewall, &self.api);
        let (tool, act) = phase.rsplit_once('-').unwrap_or((phase, ""));
        let easy = tool.ends_with("easy");
        match tool {
            "ior-easy" | "ior-hard" => {
                let shape = match easy {
                    true => format!("-t {} -b {} -F -G 271", self.easy_transfer, self.easy_block),
                    false => format!("-t 47008 -b 47008 -s {} -G 27", self.hard_segments),
                };
                let there = if easy { made.easy_transfers } else { made.hard_transfers };
                let act = match act {
                    "write" => format!("-w -D {wall} -O stoneWallingWearOut=1"),
                    _ => format!("-r -O stoneWallingWearOutIterations={there}"),
                };
                let line =
                    format!("-a {api} -C -Q 1 -g -k -e {shape} {act} -u -o {dir}/{tool}/file");
                Ok(Work::Ior(Box::new(ior::Config::parse(line.split_whitespace())?)))
            }
            "mdtest-easy" | "mdtest-hard" => {
                let shape = match easy {
                    true => format!("-n {} -u -L", self.easy_files),
                    false => format!("-n {} -t -w {HARD_FILE} -e {HARD_FILE}", self.hard_files),
                };
                let act = match act {
                    "write" => format!("-C -Y -W {wall}"),
                    "stat" => "-T".into(),
                    "read" => "-E".into(),
                    _ => "-r".into(),
                };
                let line = format!("-a {api} -F -N 1 {shape} {act} -d {dir}/{tool}");
                let mut config = mdtest::Config::parse(line.split_whitespace())?;
                let there = if easy { made.easy_files } else { made.hard_files };
                config.made = (!config.create).then_some(there);
                Ok(Work::Mdtest(Box::new(config)))
            }
            _ => {
                Ok(Work::Find(self.trees(&["mdtest-easy", "mdtest-hard", "ior-easy", "ior-hard"])))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_phases_with_their_score() {
        let dir = tempfile::tempdir().unwrap();
        let datadir = dir.path().join("data").display().to_string();
        let text = "[ior-easy]\nblockSize = 4m\n[ior-hard]\nsegmentCount = 20\n[mdtest-easy]\nn = 30\n[mdtest-hard]\nn = 30";
        let config = Config { datadir, stonewall: 1, ..Config::read(text).unwrap() };
        let (record, score) = run(&config, &Setup::threads(2), &mut |_| {}).unwrap();
        let names: Vec<&str> = record.phases.iter().map(|phase| phase.phase.as_str()).collect();
        assert_eq!(names, score::PHASES);
        assert_eq!(record.of("find").next().unwrap().operations, 2 * 30 + 2 * 30 + 2 + 1);
        assert_eq!(record.of("ior-hard-read").next().unwrap().bytes, 47_008 * 40);
        let score = score.unwrap();
        assert!((score.total - (score.bandwidth * score.metadata).sqrt()).abs() < 1e-9);
        assert_eq!(std::fs::read_dir(dir.path().join("data")).unwrap().count(), 0);
    }
}
