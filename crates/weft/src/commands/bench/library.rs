//! `weft bench library`: rates and processor time of the client library, without a kernel in between.

use crate::commands::dev::Home;
use crate::node::{Node, read_state_files};
use crate::outcome::Outcome;
use crate::{keys, output, process};
use anyhow::Context;
use clap::Args;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weft_client::{Client, ClientConfig};
use weft_eval::contest::{Contest, Place, Runner};
use weft_eval::crew::Crew;
use weft_eval::target::Library as Target;
use weft_eval::workload::{Phase, SizeOptions};
use weft_rpc::SystemEnv;

/// Measure development clusters through the client library, side by side. One that runs is asked over
/// its sockets; one that is down is served by this process, and called without any.
#[derive(Args)]
pub struct Library {
    /// Directories of clusters; the first is what the others are compared with.
    #[arg(required = true)]
    clusters: Vec<PathBuf>,
    /// Threads at once, each with files of its own.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Phases, in order.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "create,stat,open,unlink,write,read,random-read,random-write,remove"
    )]
    phases: Vec<Phase>,
    /// Small files per thread.
    #[arg(long, default_value_t = 10_000)]
    files: u64,
    #[command(flatten)]
    sizes: SizeOptions,
    /// Rounds over all clusters.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
}

/// A cluster being measured.
struct Entrant {
    name: String,
    client: Arc<Client>,
    servers: Vec<u32>,
    /// Present where this process serves it.
    node: Option<Node>,
}

impl Library {
    /// Measures and prints.
    ///
    /// # Errors
    /// Those of the clusters.
    pub fn run(self) -> anyhow::Result<Outcome> {
        process::raise_file_limit();
        let entrants: Vec<Entrant> =
            self.clusters.iter().map(|dir| Entrant::open(dir)).collect::<Result<_, _>>()?;
        let contest = Contest { phases: self.phases.clone(), rounds: self.rounds, cold: false };
        let places: Vec<Place<'_>> = entrants.iter().map(|entrant| self.place(entrant)).collect();
        let outcome = contest.run(&places);
        drop(places);
        let closed = entrants.into_iter().try_for_each(Entrant::close);
        let report = outcome?;
        output::put(&format!(
            "{} thread(s), {} round(s), requests of {} KiB\n\n\
             Operations per second, MiB/s for write and read: median (min-max)\n{}\n\
             Processor seconds per 1,000 operations, per GiB for write and read: this process + servers\n{}",
            self.threads,
            self.rounds,
            self.sizes.request_kib,
            report.rates(),
            report.cpu(),
        ))?;
        closed.map(|()| Outcome::Done)
    }

    fn place<'a>(&self, entrant: &'a Entrant) -> Place<'a> {
        let sizes = self.sizes.sizes(self.files, true);
        let threads = self.threads;
        let begin = move |round| {
            let name = |thread| format!("weft-bench.{}.{round}.{thread}", std::process::id());
            let make = |thread| Target::make(&entrant.client, &name(thread));
            let targets = (0..threads).map(make).collect::<io::Result<Vec<_>>>()?;
            Ok(Box::new(Crew::new(targets, sizes)) as Box<dyn Runner>)
        };
        Place {
            name: entrant.name.clone(),
            begin: Box::new(begin),
            servers: entrant.servers.clone(),
        }
    }
}

impl Entrant {
    fn open(dir: &Path) -> anyhow::Result<Entrant> {
        let missing = || format!("no cluster in dir={}; weft dev up makes one", dir.display());
        let mut home = Home::look(&std::path::absolute(dir)?)?.with_context(missing)?;
        let running = read_state_files(&home.run_dir())?;
        let node = match running.is_empty() {
            true => Some(Node::start(&home.one_process()?, &|| false)?),
            false => None,
        };
        let config = ClientConfig {
            managers: home.addresses()?,
            key: Some(keys::read(&home.key_file())?),
            mountpoint: "weft bench library".into(),
            ..ClientConfig::default()
        };
        let registry = node.as_ref().map(Node::registry);
        let client = Client::mount(config, registry, Arc::new(SystemEnv::new()))?;
        let how = if node.is_some() { "in process" } else { "over sockets" };
        let servers = running.iter().map(|state| state.process.pid).collect();
        Ok(Entrant { name: how.to_string(), client, servers, node })
    }

    fn close(self) -> anyhow::Result<()> {
        let left = self.client.unmount();
        if let Some(node) = self.node {
            node.stop();
        }
        Ok(left?)
    }
}
