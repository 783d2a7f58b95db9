//! Ranks that `mpirun` has started: they find each other without MPI's library.
//!
//! Open MPI, MPICH, Intel MPI and Slurm's `srun` tell each process its number and how many there are
//! in the environment. The first one listens, and writes its address and a fresh key to a file in a
//! directory that all can see; the others wait for it and connect.

use super::link::Link;
use super::serve;
use crate::record::Machine;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use weft_rpc::ClusterKey;

/// Pairs of variables that tell number and count.
const VARIABLES: [(&str, &str); 3] = [
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
];
/// Variables that name a job, so that two at once do not meet.
const JOBS: [&str; 4] = ["PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "SLURM_JOB_ID", "PMI_JOBID"];
/// Longest wait for the others to start.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks.
const POLL: Duration = Duration::from_millis(20);

/// The processes of one `mpirun`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct World {
    /// Number of this one.
    pub rank: u32,
    /// How many there are.
    pub size: u32,
    /// Where they meet.
    pub file: PathBuf,
}

impl World {
    /// What the environment tells, if this process was started so. They meet in `dir`, which all of
    /// their machines must see.
    pub fn find(variable: impl Fn(&str) -> Option<String>, dir: &Path) -> Option<World> {
        let number = |name: &str| variable(name)?.parse::<u32>().ok();
        let mut pairs = VARIABLES.iter();
        let (rank, size) = pairs.find_map(|(rank, size)| Some((number(rank)?, number(size)?)))?;
        let job = JOBS.iter().find_map(|name| variable(name)).unwrap_or_default();
        let job: String = job.chars().filter(|c| c.is_ascii_alphanumeric()).collect();
        let file = dir.join(format!("weft-bench.{job}.{size}"));
        (size > 0 && rank < size).then_some(World { rank, size, file })
    }

    /// The first one: waits for all others, and gives their hosts and links in order.
    ///
    /// # Errors
    /// When they do not come in time.
    pub fn gather(&self, patience: Duration) -> io::Result<Vec<(String, Link)>> {
        let listener = TcpListener::bind("0.0.0.0:0")?;
        let key = ClusterKey::generate().map_err(io::Error::other)?;
        let port = listener.local_addr()?.port();
        self.write(&format!("{}:{port}\n{}", Machine::here().host, key.to_text()))?;
        let met = self.meet(&listener, &key, patience);
        // Whoever comes now is too late in any case.
        let _ = fs::remove_file(&self.file);
        met
    }

    fn meet(
        &self,
        listener: &TcpListener,
        key: &ClusterKey,
        patience: Duration,
    ) -> io::Result<Vec<(String, Link)>> {
        let mut met: Vec<Option<(String, Link)>> = (1..self.size).map(|_| None).collect();
        listener.set_nonblocking(true)?;
        let deadline = Instant::now() + PATIENCE;
        while met.iter().any(Option::is_none) {
            match listener.accept() {
                Ok((stream, _)) => {
                    let (rank, host, link) = greet(stream, key)?;
                    let place = met.get_mut((rank as usize).wrapping_sub(1));
                    *place.ok_or_else(|| io::Error::other("a rank beyond the last"))? =
                        Some((host, link));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if Instant::now() >= deadline {
                        let here = met.iter().flatten().count() + 1;
                        let why = format!("{here} of {} ranks have started", self.size);
                        return Err(io::Error::new(ErrorKind::TimedOut, why));
                    }
                    std::thread::sleep(POLL);
                }
                Err(error) => return Err(error),
            }
        }
        let links: Vec<(String, Link)> = met.into_iter().flatten().collect();
        links.iter().try_for_each(|(_, link)| link.set_patience(patience))?;
        Ok(links)
    }

    /// Every other one: finds the first and becomes one of its ranks.
    ///
    /// # Errors
    /// When the first does not show up.
    pub fn join(&self) -> io::Result<Link> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.try_join() {
                Err(error) if Instant::now() >= deadline => {
                    let file = self.file.display();
                    return Err(io::Error::new(error.kind(), format!("{file}: {error}")));
                }
                Err(_) => std::thread::sleep(POLL),
                joined => return joined,
            }
        }
    }

    fn try_join(&self) -> io::Result<Link> {
        // Whoever wrote it can have this process run benchmarks.
        if fs::metadata(&self.file)?.uid() != rustix::process::geteuid().as_raw() {
            let why = "it belongs to another user; say --rendezvous DIR";
            return Err(io::Error::new(ErrorKind::PermissionDenied, why));
        }
        let text = fs::read_to_string(&self.file)?;
        let bad = || io::Error::new(ErrorKind::InvalidData, "not a meeting place");
        let (address, key) = text.split_once('\n').ok_or_else(bad)?;
        let key = ClusterKey::parse(key).map_err(io::Error::other)?;
        let link = serve::connect(address, &key, PATIENCE)?;
        let own = format!("{} {}", self.rank, Machine::here().host);
        link.send(super::link::Kind::Note, own.as_bytes())?;
        Ok(link)
    }

    /// Where another run was killed, its file lies there still; it must be ours to be replaced.
    fn write(&self, text: &str) -> io::Result<()> {
        let named = |error: io::Error| {
            let file = self.file.display();
            io::Error::new(error.kind(), format!("meeting place {file}: {error}"))
        };
        let scratch = self.file.with_extension("new");
        let _ = fs::remove_file(&scratch);
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600).open(&scratch);
        file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(named)?;
        fs::rename(&scratch, &self.file).map_err(named)
    }
}

/// Another rank says which one it is.
fn greet(stream: TcpStream, key: &ClusterKey) -> io::Result<(u32, String, Link)> {
    stream.set_nonblocking(false)?;
    let link = serve::accept(stream, key)?;
    let (_, bytes) = link.receive()?;
    let text = String::from_utf8_lossy(&bytes);
    let named = text.split_once(' ').and_then(|(rank, host)| Some((rank.parse().ok()?, host)));
    let (rank, host) = named.ok_or_else(|| io::Error::other("a rank without a number"))?;
    Ok((rank, host.to_string(), link))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_environment() {
        let world = |pairs: &'static [(&str, &str)]| {
            let find = |name: &str| {
                pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| value.to_string())
            };
            World::find(find, Path::new("/d"))
        };
        let found = world(&[("PMI_RANK", "2"), ("PMI_SIZE", "4"), ("SLURM_JOB_ID", "a/9")]);
        let file = PathBuf::from("/d/weft-bench.a9.4");
        assert_eq!(found, Some(World { rank: 2, size: 4, file }));
        assert_eq!(world(&[("PMI_RANK", "4"), ("PMI_SIZE", "4")]), None);
        assert_eq!(world(&[]), None);
    }
}
