//! One run from beginning to end: starts the ranks, gathers their figures, repeats what was noisy, and
//! writes down the conditions.

use crate::caches;
use crate::ranks::hub::News;
use crate::ranks::job::{Cluster, KernelOnly, Order, Server};
use crate::ranks::{Doors, Launch, Work};
use crate::record::{Caches, Place, Ranks, Record, Sample};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Spread from which a run is repeated, unless told otherwise.
pub const NOISE: f64 = 0.25;
/// Iterations that may be added because of noise, unless told otherwise.
pub const REPEATS: u32 = 3;

/// Everything about a run but what the tool does.
#[derive(Clone)]
pub struct Setup {
    /// Who does the work.
    pub launch: Launch,
    /// The command line that does it again; empty for a run that was not started by one.
    pub command: Vec<String>,
    /// The commit that this program was built from, where it is known.
    pub commit: Option<String>,
    /// Processes that serve the file system, on the machine of the first rank.
    pub servers: Vec<Server>,
    /// Empty the page cache before phases that read.
    pub cold: bool,
    /// The cluster, for work through the client library.
    pub cluster: Option<Cluster>,
    /// The way to it.
    pub doors: Arc<dyn Doors>,
    /// Spread, (max - min) / mean, from which a run of several iterations is repeated.
    pub noise: f64,
    /// Iterations that may be added because of noise.
    pub repeats: u32,
}

impl Setup {
    /// Threads of this process on what the kernel has mounted, with all else as it is by default.
    pub fn threads(count: u32) -> Setup {
        Setup {
            launch: Launch::threads(count),
            command: Vec::new(),
            commit: None,
            servers: Vec::new(),
            cold: false,
            cluster: None,
            doors: Arc::new(KernelOnly),
            noise: NOISE,
            repeats: REPEATS,
        }
    }
}

/// Which iterations ranks are to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Iterations {
    /// Number of the first.
    pub first: u32,
    /// How many.
    pub count: u32,
}

/// A record of a run that begins now: everything that is known before it.
pub fn begin(setup: &Setup, tool: &str, settings: Value, paths: &[&str]) -> Record {
    let mut record = Record::begin(tool, setup.command.clone(), settings);
    let library = setup.cluster.is_some();
    record.commit.clone_from(&setup.commit);
    record.places = paths.iter().map(|path| place(path, library)).collect();
    let kind = setup.launch.kind().to_string();
    record.ranks = Ranks { count: setup.launch.count.max(1), kind, hosts: Vec::new() };
    record.noise.threshold = setup.noise;
    record
}

/// Runs `count` iterations of the work, and more where they lie too far apart; tells every figure as it
/// comes, and completes the record.
///
/// # Errors
/// Those of the ranks.
pub fn measure(
    setup: &Setup,
    mut record: Record,
    count: u32,
    work: &dyn Fn(Iterations) -> Work,
    told: &mut dyn FnMut(&Sample),
) -> io::Result<Record> {
    let start = Instant::now();
    let mut next = Iterations { first: 0, count };
    loop {
        let order = Order {
            work: work(next),
            servers: setup.servers.clone(),
            cold: setup.cold,
            cluster: setup.cluster.clone(),
            patience: setup.launch.patience.as_secs(),
        };
        let (mut samples, mut notes) = (Vec::new(), Vec::new());
        let hosts = setup.launch.run(&order, &setup.doors, &mut |news| match news {
            News::Sample(sample) => {
                told(&sample);
                samples.push(sample);
            }
            News::Note(text) => notes.push(text),
        })?;
        let kind = setup.launch.kind().to_string();
        record.ranks = Ranks { count: hosts.len() as u32, kind, hosts };
        record.add(samples);
        for note in notes {
            if !record.notes.contains(&note) {
                record.notes.push(note);
            }
        }
        let noisy = record.noise.spread.is_some_and(|spread| spread > setup.noise);
        if !noisy || record.noise.repeated >= setup.repeats {
            break;
        }
        record.noise.repeated += 1;
        next = Iterations { first: next.first + next.count, count: 1 };
    }
    record.caches = what_of_caches(setup.cold, &record.notes);
    if setup.servers.is_empty() {
        record.notes.push("processor time of servers was not measured: none were named".into());
    }
    record.seconds = start.elapsed().as_secs_f64();
    Ok(record)
}

fn place(path: &str, library: bool) -> Place {
    match library {
        true => Place { path: path.into(), fs: "weft library".into(), ..Place::default() },
        false => Place::of(Path::new(path)),
    }
}

fn what_of_caches(asked: bool, notes: &[String]) -> Caches {
    let kept = notes.iter().find(|note| note.starts_with(caches::KEPT));
    let note = match (asked, kept) {
        (false, _) => {
            "nothing was done about caches: what was just written may be read from memory of clients and servers"
        }
        (true, None) => {
            "the page cache of every machine with ranks was emptied before phases that read; memory of servers elsewhere was not"
        }
        (true, Some(note)) => note,
    };
    Caches { asked, dropped: asked && kept.is_none(), note: note.into() }
}
