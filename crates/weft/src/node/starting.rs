//! The steps of starting a node, in the order in which [`super::Node::start`] takes them.

use super::config::{NodeConfig, TargetConfig};
use super::metadata::Metadata;
use super::storage::OpenTarget;
use super::throttled::Throttled;
use super::unserved::ManagerElsewhere;
use crate::keys;
use anyhow::{Context, bail};
use std::sync::Arc;
use std::time::Duration;
use weft_admin::{Health, HttpServer};
use weft_manager::{Manager, NodeAgent, Served, Worker};
use weft_model::throttle::Speed;
use weft_model::{ClientId, Env, ErrorKind, TargetId, TargetKind};
use weft_oss::Oss;
use weft_rpc::SystemEnv;
use weft_rpc::channel::Identity;
use weft_rpc::registry::Registry;
use weft_rpc::router::Patience;
use weft_rpc::{ClusterKey, Role, Router, Service};

/// Between two attempts to take over a target.
const TAKEOVER_POLL: Duration = Duration::from_millis(500);

/// What is built up while a node starts.
pub struct Starting<'a> {
    pub config: &'a NodeConfig,
    pub env: Arc<dyn Env>,
    pub key: Option<ClusterKey>,
    /// Targets that roles and mounts of this process call directly.
    pub local: Arc<Registry>,
    /// What the process serves to others; its metrics count every call.
    pub outside: Arc<Registry>,
    pub health: Arc<Health>,
}

impl<'a> Starting<'a> {
    /// Nothing is started yet.
    ///
    /// # Errors
    /// Those of the key file.
    pub fn new(config: &'a NodeConfig) -> anyhow::Result<Starting<'a>> {
        Ok(Starting {
            config,
            env: Arc::new(SystemEnv::new()),
            key: config.key.as_deref().map(keys::read).transpose()?,
            local: Arc::default(),
            outside: Arc::default(),
            health: Arc::default(),
        })
    }

    /// Has a target called from inside and from outside, counted once.
    fn serve(&self, target: TargetId, service: Arc<dyn Service>, throttle: Option<Speed>) {
        let service: Arc<dyn Service> = match throttle {
            None => service,
            Some(speed) => Arc::new(Throttled::new(service, speed, self.env.clone())),
        };
        self.outside.add(target, service);
        if let Some(counted) = self.outside.get(target) {
            self.local.add(target, counted);
        }
    }

    fn open(&self, config: &TargetConfig, kind: TargetKind) -> anyhow::Result<OpenTarget> {
        OpenTarget::open(config, kind, self.config.cluster.as_deref())
    }

    /// Opens the book, if this node has it.
    pub fn start_manager(&self) -> anyhow::Result<Option<(OpenTarget, Worker)>> {
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
        self.serve(TargetId::MGT, manager, None);
        Ok(Some((target, worker)))
    }

    /// Opens all other targets.
    pub fn open_targets(&self) -> anyhow::Result<Vec<OpenTarget>> {
        let mdts = self.config.mdt.iter().map(|config| self.open(config, TargetKind::Mdt));
        let osts = self.config.ost.iter().map(|config| self.open(config, TargetKind::Ost));
        mdts.chain(osts).collect()
    }

    /// The way to targets and manager.
    pub fn router(&self) -> Arc<Router> {
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
    pub fn join(
        &self,
        addresses: &[String],
        targets: &[OpenTarget],
        router: &Arc<Router>,
        interrupted: &(dyn Fn() -> bool + Sync),
    ) -> anyhow::Result<Arc<NodeAgent>> {
        let served: Vec<Served> = targets.iter().map(OpenTarget::served).collect();
        let (name, outside) = (&self.config.node, self.outside.clone());
        let agent = NodeAgent::new(name, addresses.to_vec(), served, router.clone(), outside);
        tracing::info!(
            node = name,
            managers = self.config.managers.join(","),
            "joining the cluster"
        );
        self.announce(&agent, interrupted).context("cannot join the cluster")?;
        let map = router.map();
        let Some(node) = map.nodes.iter().find(|node| &node.name == name) else {
            bail!("the manager's map does not have node={name}, though it has taken the node in");
        };
        // Servers that connect to each other need identities of their own: a newer connection of
        // the same identity replaces the older one.
        router.set_client(ClientId(ClientId::SERVER_BASE + u64::from(node.id.0)));
        Ok(Arc::new(agent))
    }

    /// Waits for the manager, and for a node that had a target before to count as gone.
    fn announce(
        &self,
        agent: &NodeAgent,
        interrupted: &(dyn Fn() -> bool + Sync),
    ) -> weft_model::Result<()> {
        let patience = Patience { limit: None, interrupted: Some(interrupted) };
        let deadline = self.env.monotonic() + 2 * self.config.tuning.node_timeout.0;
        let mut told = false;
        loop {
            match agent.announce(&patience) {
                Err(error) if error.kind == ErrorKind::Busy => {
                    if interrupted() || self.env.monotonic() >= deadline {
                        return Err(error);
                    }
                    if !std::mem::replace(&mut told, true) {
                        tracing::info!(%error, "waiting for the other node's time to run out");
                    }
                    self.env.sleep(TAKEOVER_POLL);
                }
                outcome => return outcome,
            }
        }
    }

    /// Serves the OSTs.
    pub fn serve_storage(&self, targets: &[OpenTarget]) -> anyhow::Result<()> {
        let settings = weft_oss::Settings {
            in_flight_bytes: self.config.tuning.in_flight.0,
            scrub_bytes_per_second: self.config.tuning.scrub_rate.0,
            ..weft_oss::Settings::default()
        };
        for target in targets.iter().filter(|target| target.id().kind == TargetKind::Ost) {
            let objects = target.objects()?;
            let oss = Arc::new(Oss::new(target.id(), objects, self.env.clone(), settings));
            oss.register_figures(self.outside.metrics());
            self.serve(target.id(), oss, target.throttle);
        }
        Ok(())
    }

    /// Serves the MDTs.
    pub fn serve_metadata(
        &self,
        targets: &[OpenTarget],
        router: &Arc<Router>,
    ) -> anyhow::Result<Vec<Metadata>> {
        let mdts = targets.iter().filter(|target| target.id().kind == TargetKind::Mdt);
        mdts.map(|target| {
            let served = Metadata::open(target, router, &self.config.tuning, &self.health)?;
            served.register_figures(self.outside.metrics());
            self.serve(target.id(), served.service(), target.throttle);
            served.start_background()
        })
        .collect()
    }

    /// Serves metrics, if asked to.
    pub fn start_http(&self) -> anyhow::Result<Option<HttpServer>> {
        let Some(address) = self.config.metrics else { return Ok(None) };
        let (metrics, health) = (self.outside.metrics().clone(), self.health.clone());
        let server = HttpServer::start(address, metrics, health);
        Ok(Some(server.with_context(|| format!("cannot serve metrics at address={address}"))?))
    }
}
