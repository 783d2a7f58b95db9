//! A server process: opens its targets, joins the cluster, serves, and stops in order.
//!
//! Roles in one process share a [`Registry`] and call each other directly. Whatever asks from
//! outside comes through the [`Server`].

pub mod config;
mod metadata;
mod state_file;
mod storage;
mod unserved;

pub use config::NodeConfig;
pub use state_file::{StateFile, read_all as read_state_files};

use crate::env::SystemEnv;
use crate::keys;
use anyhow::{Context, bail};
use config::TargetConfig;
use metadata::Metadata;
use std::sync::Arc;
use std::time::{Duration, Instant};
use storage::OpenTarget;
use unserved::ManagerElsewhere;
use weft_admin::{Health, HttpServer};
use weft_manager::{Manager, NodeAgent, Served, Worker};
use weft_model::{ClientId, Env, TargetId, TargetKind};
use weft_oss::Oss;
use weft_rpc::channel::Identity;
use weft_rpc::registry::Registry;
use weft_rpc::router::Patience;
use weft_rpc::server::{Limits, Server};
use weft_rpc::stream::Listener;
use weft_rpc::{ClusterKey, Role, Router};

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

/// What is built up while a node starts.
struct Starting<'a> {
    config: &'a NodeConfig,
    env: Arc<dyn Env>,
    key: Option<ClusterKey>,
    /// Targets that roles and mounts of this process call directly.
    local: Arc<Registry>,
    /// What the process serves to others; its metrics count every call.
    outside: Arc<Registry>,
    health: Arc<Health>,
}

impl Node {
    /// Starts every role of the configuration. `interrupted` is asked while the manager is waited for.
    ///
    /// # Errors
    /// The first role's that cannot be started; what was started before counts as crashed, which is safe.
    pub fn start(
        config: &NodeConfig,
        interrupted: &(dyn Fn() -> bool + Sync),
    ) -> anyhow::Result<Node> {
        let starting = Starting {
            config,
            env: Arc::new(SystemEnv::new()),
            key: config.key.as_deref().map(keys::read).transpose()?,
            local: Arc::default(),
            outside: Arc::default(),
            health: Arc::default(),
        };
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
        let server =
            Server::start(&config.node, listeners, starting.key.clone(), starting.outside.clone(), limits);
        if let Some(file) = &mut state_file {
            let names = targets.iter().chain(&manager_target).map(|target| target.id()).collect();
            file.set_ready(names, http.as_ref().map(HttpServer::address))?;
        }
        tracing::info!(node = config.node, listen = addresses.join(","), "node is serving");
        Ok(Node {
            state_file,
            _http: http,
            heartbeats: agent.start()?,
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

    /// Notes a mount in the state file.
    ///
    /// # Errors
    /// Those of the file.
    pub fn note_mount(&mut self, mountpoint: &std::path::Path) -> anyhow::Result<()> {
        self.state_file.as_mut().map_or(Ok(()), |file| file.add_mount(mountpoint))
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
        self.targets.into_iter().chain(self.manager_target).for_each(OpenTarget::close);
        drop(self.state_file);
        tracing::info!("node has stopped");
    }
}

impl Starting<'_> {
    /// Has a target called from inside and from outside, counted once.
    fn serve(&self, target: TargetId, service: Arc<dyn weft_rpc::Service>) {
        self.outside.add(target, service);
        if let Some(counted) = self.outside.get(target) {
            self.local.add(target, counted);
        }
    }

    fn open(&self, config: &TargetConfig, kind: TargetKind) -> anyhow::Result<OpenTarget> {
        OpenTarget::open(config, kind, self.config.cluster.as_deref())
    }

    fn start_manager(&self) -> anyhow::Result<Option<(OpenTarget, Worker)>> {
        let Some(config) = &self.config.manager else {
            // Asked for figures of the process, as the manager is on its own node.
            let elsewhere = ManagerElsewhere::new(&self.config.node, self.outside.metrics());
            self.outside.add(TargetId::MGT, Arc::new(elsewhere));
            return Ok(None);
        };
        let target = self.open(config, TargetKind::Mgt)?;
        let tuning = &self.config.tuning;
        let settings = weft_manager::Settings {
            cluster: target.cluster(),
            node: self.config.node.clone(),
            heartbeat_interval: tuning.heartbeat_interval.0,
            node_timeout: tuning.node_timeout.0,
            metrics: Some(self.outside.metrics().clone()),
            ..weft_manager::Settings::default()
        };
        let manager = Arc::new(Manager::open(target.kv(), self.env.clone(), settings)?);
        manager.register_figures(self.outside.metrics());
        let worker = manager.start()?;
        self.serve(TargetId::MGT, manager);
        Ok(Some((target, worker)))
    }

    fn open_targets(&self) -> anyhow::Result<Vec<OpenTarget>> {
        let mdts = self.config.mdt.iter().map(|config| self.open(config, TargetKind::Mdt));
        let osts = self.config.ost.iter().map(|config| self.open(config, TargetKind::Ost));
        mdts.chain(osts).collect()
    }

    fn router(&self) -> Arc<Router> {
        let identity = Identity {
            role: Role::Server,
            client: ClientId::NONE,
            name: self.config.node.clone(),
            key: self.key.clone(),
        };
        let local = Some(self.local.clone());
        Arc::new(Router::new(identity, self.config.managers.clone(), local, self.env.clone()))
    }

    /// Tells the manager of the node and its targets; the router has the map then.
    fn join(
        &self,
        addresses: &[String],
        targets: &[OpenTarget],
        router: &Arc<Router>,
        interrupted: &(dyn Fn() -> bool + Sync),
    ) -> anyhow::Result<Arc<NodeAgent>> {
        let served: Vec<Served> = targets.iter().map(OpenTarget::served).collect();
        let (name, outside) = (&self.config.node, self.outside.clone());
        let agent = NodeAgent::new(name, addresses.to_vec(), served, router.clone(), outside);
        tracing::info!(node = name, managers = self.config.managers.join(","), "joining the cluster");
        let patience = Patience { limit: None, interrupted: Some(interrupted) };
        agent.announce(&patience).context("cannot join the cluster")?;
        let map = router.map();
        let Some(node) = map.nodes.iter().find(|node| &node.name == name) else {
            bail!("the manager's map does not have node={name}, though it has taken the node in");
        };
        // Servers that connect to each other need identities of their own: a newer connection of
        // the same identity replaces the older one.
        router.set_client(ClientId(ClientId::SERVER_BASE + u64::from(node.id.0)));
        Ok(Arc::new(agent))
    }

    fn serve_storage(&self, targets: &[OpenTarget]) -> anyhow::Result<()> {
        let settings = weft_oss::Settings {
            in_flight_bytes: self.config.tuning.in_flight.0,
            scrub_bytes_per_second: self.config.tuning.scrub_rate.0,
            ..weft_oss::Settings::default()
        };
        for target in targets.iter().filter(|target| target.id().kind == TargetKind::Ost) {
            let objects = target.objects()?;
            let oss = Arc::new(Oss::new(target.id(), objects, self.env.clone(), settings));
            oss.register_figures(self.outside.metrics());
            self.serve(target.id(), oss);
        }
        Ok(())
    }

    fn serve_metadata(
        &self,
        targets: &[OpenTarget],
        router: &Arc<Router>,
    ) -> anyhow::Result<Vec<Metadata>> {
        let mdts = targets.iter().filter(|target| target.id().kind == TargetKind::Mdt);
        mdts.map(|target| {
            let served = Metadata::open(target, router, &self.config.tuning, &self.health)?;
            served.register_figures(self.outside.metrics());
            self.serve(target.id(), served.service());
            served.start_background()
        })
        .collect()
    }

    fn start_http(&self) -> anyhow::Result<Option<HttpServer>> {
        let Some(address) = self.config.metrics else { return Ok(None) };
        let (metrics, health) = (self.outside.metrics().clone(), self.health.clone());
        let server = HttpServer::start(address, metrics, health);
        Ok(Some(server.with_context(|| format!("cannot serve metrics at address={address}"))?))
    }
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
