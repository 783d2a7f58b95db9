//! What all benchmarks share: options, the way to the cluster, the processes that serve, the output.

use crate::cli::Global;
use crate::cluster::ClusterArgs;
use crate::commands::dev::Home;
use crate::node::read_state_files;
use crate::outcome::{Outcome, Usage};
use crate::output::{self, Form};
use crate::version::COMMIT;
use crate::{files, keys, mounts};
use anyhow::Context;
use clap::Args;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use weft_client::{Client, ClientConfig};
use weft_eval::driver::{self, Setup};
use weft_eval::ranks::job::{self, Cluster, Server};
use weft_eval::ranks::mpi::World;
use weft_eval::ranks::{Doors, Launch, Members, serve};
use weft_eval::record::Record;
use weft_eval::text::conditions;
use weft_rpc::SystemEnv;

/// Options of every benchmark.
#[derive(Args)]
#[command(next_help_heading = "Ranks and conditions")]
pub struct Common {
    /// Ranks, where the tool has no letter for it or mpirun does not tell.
    #[arg(long = "np", value_name = "N")]
    np: Option<u32>,
    /// Ranks are threads, not processes.
    #[arg(long = "threads")]
    as_threads: bool,
    /// Ranks run in turn on machines where `weft bench serve` listens.
    #[arg(long, value_delimiter = ',', value_name = "HOST[:PORT]")]
    hosts: Vec<String>,
    /// File with the key of `weft bench serve`.
    #[arg(long, env = "WEFT_BENCH_KEY", value_name = "FILE")]
    bench_key: Option<PathBuf>,
    /// Directory that all processes of mpirun see, where they find each other [default: that for
    /// temporary files].
    #[arg(long, env = "WEFT_BENCH_RENDEZVOUS", value_name = "DIR")]
    rendezvous: Option<PathBuf>,
    /// Run the real tool instead, if it is on PATH, and take its output into the same record: the tool of
    /// the same name; for ior also fio.
    #[arg(long, value_name = "TOOL")]
    pub with: Option<String>,
    /// Empty the page cache before phases that read (needs root).
    #[arg(long)]
    cold: bool,
    /// Write the record of the run as JSON to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// A process that serves the file system, for its processor time. Those of a Weft mount and of a
    /// development cluster on this machine are found.
    #[arg(long = "server-pid", value_name = "[NAME=]PID")]
    server_pids: Vec<String>,
    /// Spread between iterations, (max - min) / mean, from which a run is noisy and is repeated.
    #[arg(long, default_value_t = driver::NOISE, value_name = "FRACTION")]
    noise: f64,
    /// How many iterations may be added because of noise.
    #[arg(long, default_value_t = driver::REPEATS, value_name = "N")]
    repeats: u32,
    /// Seconds that ranks wait for each other.
    #[arg(long, default_value_t = 3600, value_name = "SECONDS")]
    patience: u64,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// What a tool asks for.
pub struct Wanted<'a> {
    /// Ranks by its own letter.
    pub ranks: Option<u32>,
    /// Threads by its own letter.
    pub threads: bool,
    /// Machines by its own list.
    pub hosts: Vec<String>,
    /// How it reaches files.
    pub api: &'a str,
    /// Where.
    pub path: &'a Path,
}

impl<'a> Wanted<'a> {
    /// Threads of this process.
    pub fn threads(api: &'a str, path: &'a Path) -> Wanted<'a> {
        Wanted { ranks: None, threads: true, hosts: Vec::new(), api, path }
    }
}

impl Common {
    /// Who does the work and how; none where this process was a rank of `mpirun` and has done its part.
    ///
    /// # Errors
    /// For options that make no sense, and those of the cluster.
    pub fn setup(&self, wanted: &Wanted<'_>) -> anyhow::Result<Option<Setup>> {
        let doors: Arc<dyn Doors> = Arc::new(LibraryDoors::default());
        let dir = self.rendezvous.clone().unwrap_or_else(std::env::temp_dir);
        let world = World::find(|name| std::env::var(name).ok(), &dir).filter(|w| w.size > 1);
        if let Some(world) = world.as_ref().filter(|world| world.rank > 0) {
            job::run(world.join()?, doors.as_ref())?;
            return Ok(None);
        }
        let mut cluster = None;
        let mut servers = self.named_servers()?;
        if wanted.api == "WEFT" {
            let found = cluster_of(self)?;
            servers.extend(servers_of(found.key.as_deref())?);
            cluster = Some(found);
        } else if wanted.hosts.is_empty() && self.hosts.is_empty() {
            servers.extend(servers_below(wanted.path)?);
        }
        let count = wanted.ranks.or(self.np);
        Ok(Some(Setup {
            launch: self.launch(count, wanted, world)?,
            command: std::env::args().collect(),
            commit: Some(COMMIT.into()),
            servers,
            cold: self.cold,
            cluster,
            doors,
            noise: self.noise,
            repeats: self.repeats,
        }))
    }

    fn launch(
        &self,
        count: Option<u32>,
        wanted: &Wanted<'_>,
        world: Option<World>,
    ) -> anyhow::Result<Launch> {
        let patience = Duration::from_secs(self.patience.max(1));
        let hosts = if wanted.hosts.is_empty() { &self.hosts } else { &wanted.hosts };
        let with_port = |host: &String| match host.contains(':') {
            true => host.clone(),
            false => format!("{host}:{}", serve::PORT),
        };
        let hosts: Vec<String> = hosts.iter().map(with_port).collect();
        let (count, members) = if let Some(world) = world {
            (world.size, Members::Mpi(world, Arc::default()))
        } else if !hosts.is_empty() {
            let missing = || Usage("ranks on other machines need --bench-key FILE".into());
            let key = keys::read(self.bench_key.as_ref().ok_or_else(missing)?)?;
            (count.unwrap_or(hosts.len() as u32), Members::Hosts(hosts, key))
        } else if self.as_threads || wanted.threads {
            (count.unwrap_or(1), Members::Threads)
        } else {
            let (program, arguments) = rank_program();
            (count.unwrap_or(1), Members::Processes(program, arguments))
        };
        Ok(Launch { count: count.max(1), members, patience })
    }

    fn named_servers(&self) -> anyhow::Result<Vec<Server>> {
        let server = |text: &String| {
            let (name, pid) = text.split_once('=').unwrap_or((text, text));
            let pid = pid.parse().map_err(|_| Usage(format!("--server-pid {text}: no number")))?;
            Ok(Server { name: name.to_string(), pid })
        };
        self.server_pids.iter().map(server).collect()
    }

    /// Prints text for people, at once.
    ///
    /// # Errors
    /// Those of standard output.
    pub fn say(global: Global, text: &str) -> io::Result<()> {
        if global.output == Form::Table { output::put(text) } else { Ok(()) }
    }

    /// Ends a run: conditions for people, the records as JSON.
    ///
    /// # Errors
    /// Those of standard output and of the file.
    pub fn finish(&self, global: Global, records: &[Record]) -> anyhow::Result<Outcome> {
        for record in records {
            Common::say(global, &format!("\n{}", conditions(record)))?;
        }
        let value = match records {
            [one] => serde_json::to_value(one)?,
            all => serde_json::to_value(all)?,
        };
        let text = serde_json::to_string_pretty(&value)? + "\n";
        if let Some(path) = &self.json {
            files::replace(path, text.as_bytes(), 0o644)?;
        }
        if global.output == Form::Json {
            output::put(&text)?;
        }
        Ok(Outcome::Done)
    }
}

/// The program and arguments that run a rank.
pub fn rank_program() -> (PathBuf, Vec<std::ffi::OsString>) {
    let program = std::env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into());
    (program, vec!["bench".into(), "rank".into()])
}

/// The processes of a Weft mount that holds `path`, if it is one.
fn servers_below(path: &Path) -> anyhow::Result<Vec<Server>> {
    let path = std::path::absolute(path)?;
    let records = mounts::recorded()?;
    let inside = records.into_iter().filter(|record| path.starts_with(&record.mountpoint));
    let Some(record) = inside.max_by_key(|record| record.mountpoint.as_os_str().len()) else {
        return Ok(Vec::new());
    };
    let mut servers = servers_of(record.key.as_deref())?;
    if servers.iter().all(|server| server.pid != record.process.pid) {
        servers.push(Server { name: "mount".into(), pid: record.process.pid });
    }
    Ok(servers)
}

/// The cluster that the options name.
///
/// # Errors
/// When there is none.
pub fn cluster_of(common: &Common) -> anyhow::Result<Cluster> {
    let contact = common.cluster.contact(None)?;
    Ok(Cluster { managers: contact.managers, key: contact.key })
}

/// The servers of a development cluster, told by where its key lies.
///
/// # Errors
/// Those of its directory.
pub fn servers_of(key: Option<&Path>) -> anyhow::Result<Vec<Server>> {
    let Some(dir) = key.and_then(Path::parent) else { return Ok(Vec::new()) };
    let Some(home) = Home::look(dir)? else { return Ok(Vec::new()) };
    let states = read_state_files(&home.run_dir())?;
    Ok(states.into_iter().map(|s| Server { name: s.name, pid: s.process.pid }).collect())
}

/// Clients of clusters, one of each for all ranks of this process.
#[derive(Default)]
pub struct LibraryDoors {
    clients: Mutex<HashMap<Vec<String>, Arc<Client>>>,
}

impl Doors for LibraryDoors {
    fn weft(&self, cluster: &Cluster) -> io::Result<Arc<Client>> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&cluster.managers) {
            return Ok(client.clone());
        }
        let client = mount(cluster).map_err(|error| io::Error::other(format!("{error:#}")))?;
        clients.insert(cluster.managers.clone(), client.clone());
        Ok(client)
    }
}

impl Drop for LibraryDoors {
    fn drop(&mut self) {
        let clients = self.clients.get_mut().unwrap_or_else(PoisonError::into_inner);
        for client in clients.values() {
            if let Err(error) = client.unmount() {
                tracing::warn!(%error, "a client did not leave its cluster in order");
            }
        }
    }
}

fn mount(cluster: &Cluster) -> anyhow::Result<Arc<Client>> {
    let config = ClientConfig {
        managers: cluster.managers.clone(),
        key: cluster.key.as_deref().map(keys::read).transpose()?,
        mountpoint: "weft bench".into(),
        ..ClientConfig::default()
    };
    Client::mount(config, None, Arc::new(SystemEnv::new()))
        .with_context(|| format!("cluster {}", cluster.managers.join(",")))
}
