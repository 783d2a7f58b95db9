//! A server process: opens its targets, joins the cluster, serves, and stops in order.
//!
//! Roles in one process share a [`Registry`] and call each other directly. Whatever asks from
//! outside comes through the [`Server`].

pub mod config;
mod metadata;
mod starting;
mod state_file;
mod storage;
mod throttled;
mod unserved;

pub use config::NodeConfig;
pub use state_file::{State, StateFile, read_all as read_state_files};

use metadata::Metadata;
use starting::Starting;
use std::sync::Arc;
use std::time::{Duration, Instant};
use storage::OpenTarget;
use weft_admin::HttpServer;
use weft_manager::{NodeAgent, Worker};
use weft_model::{Env, FsError, TargetId};
use weft_rpc::registry::Registry;
use weft_rpc::server::{Limits, Server};
use weft_rpc::stream::Listener;

/// Longest wait for requests under way when a node stops.
const CLOSE_PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks at them.
const CLOSE_POLL: Duration = Duration::from_millis(5);

/// The state of a server process. Fields in the order in which they are stopped.
pub struct Node {
    /// `None` for a process that keeps no state file.
    state_file: Option<StateFile>,
    _http: Option<HttpServer>,
    heartbeats: Worker,
    agent: Arc<NodeAgent>,
    server: Server,
    metadata: Vec<Metadata>,
    local: Arc<Registry>,
    outside: Arc<Registry>,
    targets: Vec<OpenTarget>,
    manager_worker: Option<Worker>,
    manager_target: Option<OpenTarget>,
    env: Arc<dyn Env>,
}

impl Node {
    /// Starts every role of the configuration. `interrupted` is asked while the manager is waited for.
    ///
    /// # Errors
    /// The first role's that cannot be started. Targets that were opened before are closed again.
    pub fn start(
        config: &NodeConfig,
        interrupted: &(dyn Fn() -> bool + Sync),
    ) -> anyhow::Result<Node> {
        let starting = Starting::new(config)?;
        // First, so that nobody else takes the addresses, and their ports are known.
        let listeners: Vec<Listener> =
            config.listen.iter().map(|a| Listener::bind(a)).collect::<Result<_, _>>()?;
        let addresses = match config.advertise.is_empty() {
            true => listeners.iter().map(Listener::address).collect(),
            false => config.advertise.clone(),
        };
        let mut state_file = config
            .run_dir
            .as_deref()
            .map(|dir| StateFile::create(dir, &config.node, &addresses))
            .transpose()?;
        let (manager_target, manager_worker) = starting.start_manager()?.unzip();
        let targets = starting.open_targets()?;
        let router = starting.router();
        let agent = starting.join(&addresses, &targets, &router, interrupted)?;
        starting.serve_storage(&targets)?;
        let metadata = starting.serve_metadata(&targets, &router)?;
        let http = starting.start_http()?;
        let limits = Limits { connections: config.tuning.connections, ..Limits::default() };
        let server = Server::start(
            &config.node,
            listeners,
            starting.key.clone(),
            starting.outside.clone(),
            limits,
        );
        if let Some(file) = &mut state_file {
            let names = targets.iter().chain(&manager_target).map(|target| target.id()).collect();
            file.set_ready(names, http.as_ref().map(HttpServer::address))?;
        }
        tracing::info!(node = config.node, listen = addresses.join(","), "node is serving");
        Ok(Node {
            state_file,
            _http: http,
            heartbeats: agent.start(replaced)?,
            agent,
            server,
            metadata,
            local: starting.local,
            outside: starting.outside,
            targets,
            manager_worker,
            manager_target,
            env: starting.env,
        })
    }

    /// Targets of this process, for mounts in it.
    pub fn registry(&self) -> Arc<Registry> {
        self.local.clone()
    }

    /// Where others reach this process.
    pub fn addresses(&self) -> &[String] {
        self.server.addresses()
    }

    /// The clock of this process.
    pub fn env(&self) -> Arc<dyn Env> {
        self.env.clone()
    }

    /// Stops in order: nobody new is let in, what is under way ends, everything is on stable storage,
    /// and every target says so.
    pub fn stop(self) {
        self.agent.stop();
        drop(self.heartbeats);
        self.server.stop();
        wait_for(|| self.server.connections() == 0);
        drop(self.metadata);
        let ids: Vec<TargetId> = self.targets.iter().map(OpenTarget::id).collect();
        for id in ids.into_iter().chain([TargetId::MGT]) {
            self.local.remove(id);
            self.outside.remove(id);
        }
        drop(self.manager_worker);
        drop(self.targets);
        drop(self.manager_target);
        drop(self.state_file);
        tracing::info!("node has stopped");
    }
}

/// Another node has taken over: whatever this process still did to its targets, even closing them in order,
/// would be done to those of the other one. Ending at once is what `kill -9` does, which is safe.
fn replaced(error: &FsError) {
    tracing::error!(%error, "another node has taken this one's place; the process ends at once");
    std::process::abort();
}

/// Waits until requests under way have ended. Whether they have.
fn wait_for(mut ended: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + CLOSE_PATIENCE;
    while !ended() {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(CLOSE_POLL);
    }
    true
}
