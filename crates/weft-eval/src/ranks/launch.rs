//! Starting ranks as threads, processes, on other machines, or joining those of `mpirun`.

use super::hub::{self, News};
use super::job::{self, Doors, Job, Order, PROTOCOL};
use super::link::{Kind, Link};
use super::{mpi, serve};
use crate::record::Machine;
use parking_lot::Mutex;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use weft_rpc::ClusterKey;

/// Longest wait for the end of a process that has done its work.
const END_PATIENCE: Duration = Duration::from_secs(10);

/// What the ranks are.
#[derive(Clone, Debug)]
pub enum Members {
    /// Threads of this process.
    Threads,
    /// Processes: a program and its arguments that runs a rank over its standard input.
    Processes(PathBuf, Vec<OsString>),
    /// Spread in turn over machines where `weft bench serve` listens at these addresses.
    Hosts(Vec<String>, ClusterKey),
    /// Processes that `mpirun` has started, of which this is the first. They stay for all runs.
    Mpi(mpi::World, Arc<Mutex<Vec<(String, Link)>>>),
}

/// Who does the work.
#[derive(Clone, Debug)]
pub struct Launch {
    /// How many ranks, at least 1.
    pub count: u32,
    /// What they are.
    pub members: Members,
    /// Longest wait of ranks for each other.
    pub patience: Duration,
}

/// Ranks that have been started, as long as they live.
struct Crew {
    links: Vec<Link>,
    hosts: Vec<String>,
    children: Vec<Child>,
}

impl Launch {
    /// As many threads of this process.
    pub fn threads(count: u32) -> Launch {
        Launch { count, members: Members::Threads, patience: Duration::from_secs(3600) }
    }

    /// `processes`, `threads`, `hosts` or `mpi`.
    pub fn kind(&self) -> &'static str {
        match self.members {
            Members::Threads => "threads",
            Members::Processes(..) => "processes",
            Members::Hosts(..) => "hosts",
            Members::Mpi(..) => "mpi",
        }
    }

    /// Has all ranks carry out an order, and tells their news. Gives the host of each.
    ///
    /// # Errors
    /// When ranks cannot be started, and the first failure of one.
    pub fn run(
        &self,
        order: &Order,
        doors: &Arc<dyn Doors>,
        news: &mut dyn FnMut(News),
    ) -> io::Result<Vec<String>> {
        let mut crew = self.start(doors)?;
        let mut result = Ok(());
        for (rank, link) in (0..).zip(&crew.links) {
            let (hosts, order) = (crew.hosts.clone(), order.clone());
            let job = Job { version: PROTOCOL, rank, hosts, order };
            result = result.and(link.send(Kind::Job, &serde_json::to_vec(&job)?));
        }
        result = result.and_then(|()| hub::serve(&crew.links, news));
        crew.end();
        result.map(|()| std::mem::take(&mut crew.hosts))
    }

    fn start(&self, doors: &Arc<dyn Doors>) -> io::Result<Crew> {
        let count = self.count.max(1);
        let here = vec![Machine::here().host; count as usize];
        let mut crew = Crew { links: Vec::new(), hosts: here, children: Vec::new() };
        match &self.members {
            Members::Threads => {
                for _ in 0..count {
                    crew.links.push(self.thread(doors)?);
                }
            }
            Members::Processes(program, arguments) => {
                for _ in 0..count {
                    let (ours, theirs) = Link::pair(self.patience)?;
                    crew.children.push(process(program, arguments, theirs)?);
                    crew.links.push(ours);
                }
            }
            Members::Hosts(addresses, key) => {
                for rank in 0..count as usize {
                    let address = &addresses[rank % addresses.len()];
                    crew.links.push(serve::connect(address, key, self.patience)?);
                    crew.hosts[rank] = address.clone();
                }
            }
            Members::Mpi(world, others) => {
                crew.links.push(self.thread(doors)?);
                let mut others = others.lock();
                if others.is_empty() {
                    *others = world.gather(self.patience)?;
                }
                for (host, link) in others.iter() {
                    let rank = crew.links.len();
                    crew.hosts[rank].clone_from(host);
                    crew.links.push(link.again()?);
                }
            }
        }
        Ok(crew)
    }

    fn thread(&self, doors: &Arc<dyn Doors>) -> io::Result<Link> {
        let (ours, theirs) = Link::pair(self.patience)?;
        let doors = doors.clone();
        let body = move || {
            if let Err(error) = job::run(theirs, doors.as_ref()) {
                eprintln!("weft: a rank has heard nothing from its driver: {error}");
            }
        };
        std::thread::Builder::new().name("rank".into()).spawn(body)?;
        Ok(ours)
    }
}

/// Starts a process that runs a rank at the other end of `link`.
///
/// # Errors
/// When the program cannot be started.
pub fn process(program: &Path, arguments: &[OsString], link: Link) -> io::Result<Child> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::from(link.into_socket())).stdout(Stdio::null());
    let failed = |error| io::Error::other(format!("cannot start {}: {error}", program.display()));
    command.spawn().map_err(failed)
}

impl Crew {
    /// Waits for processes that end now; one that does not is killed.
    fn end(&mut self) {
        self.links.clear();
        let deadline = Instant::now() + END_PATIENCE;
        for child in &mut self.children {
            while matches!(child.try_wait(), Ok(None)) && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        for child in &mut self.children {
            // One that has ended needs neither.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
