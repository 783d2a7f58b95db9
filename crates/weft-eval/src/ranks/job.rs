//! What ranks are told to do, and how one of them does it.

use super::comm::Comm;
use super::link::{Kind, Link};
use crate::api::{Api, Posix, Weft};
use crate::record::Cpu;
use crate::usage::{self, cpu_seconds};
use crate::{ior, iozone, mdtest, trees};
use serde::{Deserialize, Serialize};
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use weft_client::Client;

/// Version of what is said between a driver and its ranks.
pub const PROTOCOL: u32 = 2;
/// Longest wait of a rank for its job.
const JOB_PATIENCE: Duration = Duration::from_secs(60);

/// What all ranks do together.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Work {
    /// As `ior`.
    Ior(Box<ior::Config>),
    /// As `mdtest`.
    Mdtest(Box<mdtest::Config>),
    /// As `iozone` in throughput mode.
    Iozone(Box<iozone::Config>),
    /// Makes directories.
    Make(trees::Trees),
    /// Looks at all files below directories.
    Find(trees::Trees),
    /// Removes directories with all that is in them.
    Remove(trees::Trees),
}

/// How to reach a Weft cluster without a mount.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Cluster {
    /// Addresses of its managers.
    pub managers: Vec<String>,
    /// File with its key, on the machine of each rank.
    pub key: Option<PathBuf>,
}

/// A process whose processor time is told beside that of the ranks.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Server {
    /// Name in the record.
    pub name: String,
    /// Its number on the machine of the first rank.
    pub pid: u32,
}

/// What the driver asks for; the same for all ranks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    /// The work.
    pub work: Work,
    /// Processes that serve the file system, on the machine of the first rank.
    pub servers: Vec<Server>,
    /// Empty the page cache before phases that read.
    pub cold: bool,
    /// The cluster, where the work goes through the client library.
    pub cluster: Option<Cluster>,
    /// Longest wait of ranks for each other, seconds.
    pub patience: u64,
}

/// What one rank is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// [`PROTOCOL`].
    pub version: u32,
    /// Its number.
    pub rank: u32,
    /// Host of each rank.
    pub hosts: Vec<String>,
    /// The rest.
    pub order: Order,
}

/// The way to file systems that need more than the kernel.
pub trait Doors: Send + Sync {
    /// A client of a cluster; several ranks of a process may share it.
    ///
    /// # Errors
    /// When it cannot be reached.
    fn weft(&self, cluster: &Cluster) -> io::Result<Arc<Client>>;
}

/// Only what the kernel knows.
pub struct KernelOnly;

impl Doors for KernelOnly {
    fn weft(&self, _: &Cluster) -> io::Result<Arc<Client>> {
        Err(io::Error::new(ErrorKind::Unsupported, "this program has no client library"))
    }
}

/// A rank at work: the others, and where it works.
pub struct Member<'a> {
    /// The others.
    pub comm: Comm,
    /// What was asked for.
    pub order: &'a Order,
    doors: &'a dyn Doors,
}

impl Member<'_> {
    /// The file system that a tool calls `name`: `POSIX` and `MMAP` are the kernel's.
    ///
    /// # Errors
    /// For a name that is unknown, and when a cluster cannot be reached.
    pub fn api(&self, name: &str) -> io::Result<Box<dyn Api>> {
        match name {
            "POSIX" | "MPIIO" => Ok(Box::new(Posix::default())),
            "MMAP" => Ok(Box::new(Posix::mapped())),
            "WEFT" => {
                let missing = || io::Error::other("-a WEFT needs a cluster: --manager or --dev");
                let client = self.doors.weft(self.order.cluster.as_ref().ok_or_else(missing)?)?;
                Ok(Box::new(Weft::new(client)))
            }
            other => Err(io::Error::new(
                ErrorKind::InvalidInput,
                format!("no api {other:?}; there are POSIX, MMAP and WEFT"),
            )),
        }
    }

    /// Starts measuring processor time.
    pub fn meter(&self) -> Meter<'_> {
        let first = self.comm.rank() == 0;
        let servers = if first { self.order.servers.as_slice() } else { &[] };
        let before = servers.iter().map(|server| cpu_seconds(server.pid)).collect();
        Meter { own: usage::thread_seconds(), servers, before }
    }

    /// Before a phase that reads: empties the page cache where that was asked for.
    ///
    /// # Errors
    /// Those of the other ranks. That a cache could not be emptied is told in a note.
    pub fn chill(&self) -> io::Result<()> {
        if !self.order.cold {
            return Ok(());
        }
        if self.comm.is_first_on_host()
            && let Err(error) = crate::caches::drop_all()
        {
            let host = &self.comm.hosts()[self.comm.rank() as usize];
            self.comm.note(&format!("{}{host}: {error}", crate::caches::KEPT))?;
        }
        self.comm.barrier()
    }
}

/// Processor time since its start.
pub struct Meter<'a> {
    own: f64,
    servers: &'a [Server],
    before: Vec<f64>,
}

impl Meter<'_> {
    /// Of this rank, and on the first one of the servers.
    pub fn stop(self) -> Cpu {
        let after = self.servers.iter().zip(self.before);
        let used = |(server, before): (&Server, f64)| (cpu_seconds(server.pid) - before).max(0.0);
        let mut servers = std::collections::BTreeMap::new();
        for (server, before) in after {
            *servers.entry(server.name.clone()).or_insert(0.0) += used((server, before));
        }
        Cpu { load: usage::thread_seconds() - self.own, servers }
    }
}

/// The life of a rank: gets a job, does it, says how it went, until there are no more.
///
/// # Errors
/// Only when nobody is there to be told.
pub fn run(link: Link, doors: &dyn Doors) -> io::Result<()> {
    link.set_patience(JOB_PATIENCE)?;
    let (Kind::Job, bytes) = link.receive()? else {
        return Err(io::Error::new(ErrorKind::InvalidData, "a rank is told its job first"));
    };
    let mut next = Some((link, bytes));
    while let Some((link, bytes)) = next {
        next = carry_out(link, &bytes, doors)?;
    }
    Ok(())
}

/// One job. Gives the next one.
fn carry_out(link: Link, bytes: &[u8], doors: &dyn Doors) -> io::Result<Option<(Link, Vec<u8>)>> {
    // Only the number is looked at before it is known that the rest means what is thought.
    #[derive(Deserialize)]
    struct Version {
        version: u32,
    }
    let Version { version } = serde_json::from_slice(bytes)?;
    if version != PROTOCOL {
        let why =
            format!("protocol {version} is not {PROTOCOL}: use one version of weft everywhere");
        link.send(Kind::Abort, why.as_bytes())?;
        return Err(io::Error::other(why));
    }
    let job: Job = serde_json::from_slice(bytes)?;
    if job.rank as usize >= job.hosts.len() {
        return Err(io::Error::new(ErrorKind::InvalidData, "a rank beyond the last"));
    }
    let patience = Duration::from_secs(job.order.patience);
    link.set_patience(patience)?;
    let comm = Comm::new(job.rank, job.hosts, link, patience)?;
    let member = Member { comm, order: &job.order, doors };
    let result = match &job.order.work {
        Work::Ior(config) => ior::rank::run(&member, config),
        Work::Mdtest(config) => mdtest::rank::run(&member, config),
        Work::Iozone(config) => iozone::rank::run(&member, config),
        Work::Make(trees) => trees::make(&member, trees),
        Work::Find(trees) => trees::find(&member, trees),
        Work::Remove(trees) => trees::remove(&member, trees),
    };
    member.comm.end(&result);
    if result.is_ok() {
        return Ok(member.comm.next_job());
    }
    member.comm.await_stop();
    match &job.order.work {
        Work::Ior(config) => ior::rank::clean(&member, config),
        Work::Mdtest(config) => mdtest::rank::clean(&member, config),
        Work::Iozone(config) => iozone::rank::clean(&member, config),
        Work::Make(_) | Work::Find(_) | Work::Remove(_) => {}
    }
    Ok(None)
}
