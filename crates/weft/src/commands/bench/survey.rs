//! `weft bench survey`: targets alone, and every layer above them.

use super::common::{Common, LibraryDoors, Wanted, cluster_of, servers_of};
use super::layers;
use super::store::Store;
use crate::cli::Global;
use crate::outcome::{Outcome, Usage};
use clap::{Args, ValueEnum};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weft_eval::driver;
use weft_eval::ranks::Doors;
use weft_eval::record::Fsync;
use weft_eval::survey::{self, Files, Objects, Sweep, Target, Wire};

/// What obdfilter-survey does: raw speed of OSTs (and of the MDT) by objects x threads x record size, doubling each. Its
/// variables (nobjlo, nobjhi, thrlo, thrhi, size, rszlo, rszhi, case, targets) are read from the
/// environment, too. With --layers the same work at every layer, and what is lost at each.
#[derive(Args)]
#[command(
    args_override_self = true,
    after_help = "\
Examples:
  weft bench survey --case disk --targets /data/disk1,/data/disk2 --size 1024 --thrhi 8
  nobjhi=2 thrhi=8 size=1024 case=network weft bench survey --dev DIR
  weft bench survey --case metadata --dev DIR --thrhi 8 -n 5000
  weft bench survey --layers --local /data/disk1 --mount /mnt/weft --dev DIR --thrhi 4"
)]
pub struct Survey {
    /// disk: the object store in directories of this machine, without servers; file: files in them;
    /// network: OSTs of a running cluster over their connections; metadata: its MDT over its connection,
    /// by threads: create, lookup, getattr, open and unlink of -n files of each.
    #[arg(long, value_enum, default_value = "network", env = "case")]
    case: Case,
    /// Directories, or indices of OSTs; without any all OSTs of the cluster.
    #[arg(long, value_delimiter = ',', env = "targets")]
    targets: Vec<String>,
    /// MiB of each target.
    #[arg(long, default_value_t = 1024, env = "size")]
    size: u64,
    /// Fewest objects of each target.
    #[arg(long, default_value_t = 1, env = "nobjlo")]
    nobjlo: u32,
    /// Most objects of each target.
    #[arg(long, default_value_t = 1, env = "nobjhi")]
    nobjhi: u32,
    /// Fewest threads on each target.
    #[arg(long, default_value_t = 1, env = "thrlo")]
    thrlo: u32,
    /// Most threads on each target.
    #[arg(long, default_value_t = 4, env = "thrhi")]
    thrhi: u32,
    /// Smallest record, KiB.
    #[arg(long, default_value_t = 1024, env = "rszlo")]
    rszlo: u64,
    /// Largest record, KiB.
    #[arg(long, default_value_t = 1024, env = "rszhi")]
    rszhi: u64,
    /// An fsync of every object is inside the time of writing.
    #[arg(short = 'e', long)]
    fsync: bool,
    /// The same work at every layer: local files, object store, OST over the wire, client library
    /// without and with a wire, mount; --thrhi threads, --rszhi records, --size MiB in all.
    #[arg(long)]
    layers: bool,
    /// With --layers: a directory on the disk of the targets.
    #[arg(long, value_name = "DIR")]
    local: Option<PathBuf>,
    /// With --layers: where the cluster is mounted.
    #[arg(long, value_name = "DIR")]
    mount: Option<PathBuf>,
    /// With --layers: how often, over all layers in turn; with --case metadata: how often in all.
    #[arg(short = 'i', default_value_t = 3)]
    rounds: u32,
    /// With --layers and --case metadata: files of each thread; with --layers 0 for none.
    #[arg(short = 'n', default_value_t = 2000)]
    files: u64,
    #[command(flatten)]
    common: Common,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Case {
    Disk,
    File,
    #[value(alias = "netdisk")]
    Network,
    Metadata,
}

impl Survey {
    /// Runs it.
    ///
    /// # Errors
    /// Those of the targets.
    pub fn run(self, global: Global) -> anyhow::Result<Outcome> {
        if self.size == 0 || self.rszlo == 0 || self.rounds == 0 || self.nobjhi == 0 {
            return Err(
                Usage("size, record size, objects and rounds must be at least 1".into()).into()
            );
        }
        if self.layers {
            let local = self.local.ok_or_else(|| Usage("--layers needs --local DIR".into()))?;
            let plan = layers::Plan {
                local,
                mount: self.mount,
                work: survey::Workload {
                    size: self.size << 20,
                    record: self.rszhi << 10,
                    threads: self.thrhi.max(1),
                    sync: self.fsync,
                    rounds: self.rounds,
                },
                files: self.files,
            };
            return layers::run(&plan, &self.common, global);
        }
        match self.case {
            Case::Metadata => self.requests(global),
            _ => self.sweep(global),
        }
    }

    /// Requests to the MDT, by ever more threads.
    fn requests(&self, global: Global) -> anyhow::Result<Outcome> {
        if self.files == 0 || self.thrlo == 0 {
            return Err(Usage("-n and --thrlo must be at least 1".into()).into());
        }
        let wanted = Wanted::threads("POSIX", Path::new("."));
        let Some(mut setup) = self.common.setup(&wanted)? else { return Ok(Outcome::Done) };
        let cluster = cluster_of(&self.common)?;
        setup.servers = servers_of(cluster.key.as_deref())?;
        let doors = LibraryDoors::default();
        let client = doors.weft(&cluster)?;
        setup.cluster = Some(cluster);
        let settings = json!({
            "case": "metadata", "files": self.files, "thr": [self.thrlo, self.thrhi],
            "rounds": self.rounds,
        });
        let mut record = driver::begin(&setup, "survey", settings, &[]);
        record.caches.note = "every request goes to the MDT, which answers from memory".into();
        let counts = std::iter::successors(Some(self.thrlo), |threads| threads.checked_mul(2));
        let name = format!("weft-survey.{}.requests", std::process::id());
        for threads in counts.take_while(|threads| *threads <= self.thrhi) {
            for round in 0..self.rounds {
                let at_once = (threads, self.files);
                let mut samples = survey::run_requests(&client, &name, at_once, &setup.servers)?;
                Common::say(global, &survey::requests_row(threads, self.files, &samples))?;
                let tag = |sample: &mut weft_eval::record::Sample| {
                    sample.phase = format!("{} thr {threads}", sample.phase);
                    sample.iteration = round;
                };
                samples.iter_mut().for_each(tag);
                record.add(samples);
            }
        }
        self.common.finish(global, &[record])
    }

    fn sweep(&self, global: Global) -> anyhow::Result<Outcome> {
        let local = self.case != Case::Network;
        if local && self.targets.is_empty() {
            return Err(Usage("--case disk and file need --targets DIR,...".into()).into());
        }
        let first = Path::new(self.targets.first().map_or(".", String::as_str));
        let wanted = Wanted::threads("POSIX", first);
        let Some(mut setup) = self.common.setup(&wanted)? else { return Ok(Outcome::Done) };
        let doors = LibraryDoors::default();
        if !local {
            let cluster = cluster_of(&self.common)?;
            setup.servers.extend(servers_of(cluster.key.as_deref())?);
            setup.cluster = Some(cluster);
        }
        let (records, sync) = ([self.rszlo << 10, self.rszhi << 10], self.fsync);
        let (objects, threads) = ([self.nobjlo, self.nobjhi], [self.thrlo, self.thrhi]);
        let points = Sweep::points(self.size << 20, records, objects, threads, sync);
        let settings = json!({
            "case": if local { "disk" } else { "network" }, "size": self.size << 20, "rsz": records,
            "nobj": objects, "thr": threads, "fsync": sync, "targets": self.targets,
        });
        let paths: Vec<&str> = self.targets.iter().map(String::as_str).collect();
        let mut record = driver::begin(&setup, "survey", settings, &paths);
        let note = if sync { "fsync of every object, inside the time (-e)" } else { "no fsync" };
        record.fsync = Fsync { included: sync, note: note.into() };
        record.caches.note = "nothing was done about caches: servers may read from memory".into();
        for point in points {
            let targets = self.targets(&setup, &doors)?;
            let mut samples = survey::run(&targets, &point, &setup.servers)?;
            Common::say(global, &survey::row(&point, targets.len(), &samples))?;
            let tag = |sample: &mut weft_eval::record::Sample| {
                let (kib, objects, threads) = (point.record >> 10, point.objects, point.threads);
                sample.phase = format!("{} rsz {kib}K obj {objects} thr {threads}", sample.phase);
            };
            samples.iter_mut().for_each(tag);
            record.add(samples);
        }
        record
            .notes
            .push("servers' processor time stands with write, and is that of all phases".into());
        self.common.finish(global, &[record])
    }

    fn targets(&self, setup: &driver::Setup, doors: &LibraryDoors) -> anyhow::Result<Vec<Target>> {
        let Some(cluster) = &setup.cluster else {
            let target = |dir: &String| {
                let objects: Arc<dyn Objects> = match self.case {
                    Case::Disk => Arc::new(Store::make(Path::new(dir))?),
                    _ => Arc::new(Files::make(Path::new(dir))?),
                };
                Ok(Target { name: dir.clone(), objects })
            };
            return self.targets.iter().map(target).collect();
        };
        let client = doors.weft(cluster)?;
        let mut osts: Vec<u16> = Vec::new();
        for name in &self.targets {
            let number = name.trim_start_matches("OST").parse();
            osts.push(number.map_err(|_| Usage(format!("--targets {name}: no index of an OST")))?);
        }
        if osts.is_empty() {
            osts = layers::osts(&client);
        }
        let target = |ost: u16| {
            let name = format!("weft-survey.{}.{ost}", std::process::id());
            let wire = Wire::make(client.clone(), &name, ost)?;
            Ok(Target { name: format!("OST{ost:04}"), objects: Arc::new(wire) })
        };
        osts.into_iter().map(target).collect()
    }
}
