//! How a server process takes part in the cluster: it reports to the manager and takes over maps.

use crate::worker::Worker;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weft_model::map::Space;
use weft_model::{ClusterMap, ErrorKind, FsError, Result, TargetId};
use weft_rpc::pb::manager::{Heartbeat, HeartbeatReply, ServedTarget};
use weft_rpc::registry::Registry;
use weft_rpc::router::{Patience, Router};

/// Pause after a heartbeat that failed.
const RETRY: Duration = Duration::from_millis(500);
/// Longest time to tell the manager that the node stops.
const FAREWELL: Duration = Duration::from_secs(2);

/// A target that the process serves.
pub struct Served {
    /// Its name.
    pub id: TargetId,
    /// Identity of its superblock.
    pub uuid: String,
    /// Tells its space. Asked with every heartbeat.
    pub space: Box<dyn Fn() -> Result<Space> + Send + Sync>,
}

/// Reports a node and its targets.
pub struct NodeAgent {
    node: String,
    addresses: Vec<String>,
    targets: Vec<Served>,
    router: Arc<Router>,
    registry: Arc<Registry>,
    stopping: AtomicBool,
    /// Held while a heartbeat is under way, so that none is overtaken by the farewell.
    under_way: Mutex<()>,
    failing: AtomicBool,
}

impl NodeAgent {
    /// An agent for the node, which listens at `addresses` (best first) and serves `targets`. New
    /// maps go to `router` and `registry`.
    pub fn new(
        node: &str,
        addresses: Vec<String>,
        targets: Vec<Served>,
        router: Arc<Router>,
        registry: Arc<Registry>,
    ) -> NodeAgent {
        NodeAgent {
            node: node.to_string(),
            addresses,
            targets,
            router,
            registry,
            stopping: AtomicBool::new(false),
            under_way: Mutex::new(()),
            failing: AtomicBool::new(false),
        }
    }

    /// The first heartbeat; waits for the manager up to `patience`. The process has the map then.
    ///
    /// # Errors
    /// Why the manager refuses the node, or `TimedOut`.
    pub fn announce(&self, patience: &Patience<'_>) -> Result<()> {
        self.exchange(patience).map(drop)
    }

    /// One heartbeat, one try. Returns the time until the next.
    ///
    /// # Errors
    /// Why the manager refuses it, or what prevented an answer.
    pub fn beat(&self) -> Result<Duration> {
        self.exchange(&Patience::of(Duration::ZERO))
    }

    /// Starts a thread that reports for as long as the worker exists. A failure goes into the log
    /// when it begins and when it ends. `replaced` is called when the manager answers that another node
    /// serves a target of this one: the process must not touch its targets any more.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn start(self: &Arc<Self>, replaced: impl Fn(&FsError) + Send + 'static) -> Result<Worker> {
        let agent = self.clone();
        Worker::start("weft-agent", move || agent.round(&replaced))
    }

    /// Tells the manager that the targets are down from now on; no heartbeat follows. Clients learn
    /// of the stop at once instead of by the node timeout, and another node may take over.
    pub fn stop(&self) {
        if self.stopping.swap(true, Ordering::SeqCst) {
            return;
        }
        if let Err(error) = self.exchange(&Patience::of(FAREWELL)) {
            tracing::info!(%error, "manager does not know that this node stops; it will notice");
        }
    }

    /// Whether [`Self::stop`] has been called.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    fn round(&self, replaced: &dyn Fn(&FsError)) -> Duration {
        if self.is_stopping() {
            return RETRY;
        }
        match self.beat() {
            Ok(interval) => {
                if self.failing.swap(false, Ordering::Relaxed) {
                    tracing::info!(node = self.node, "manager answers heartbeats again");
                }
                interval
            }
            Err(error) => {
                if error.kind == ErrorKind::Busy {
                    replaced(&error);
                }
                if !self.failing.swap(true, Ordering::Relaxed) {
                    tracing::warn!(node = self.node, %error, "heartbeat failed; trying on");
                }
                RETRY
            }
        }
    }

    fn exchange(&self, patience: &Patience<'_>) -> Result<Duration> {
        let _under_way = self.under_way.lock();
        let reply = self.router.ask(TargetId::MGT, self.heartbeat(), patience)?;
        self.take_over(reply)
    }

    fn heartbeat(&self) -> Heartbeat {
        let served = |target: &Served| {
            let space = (target.space)().unwrap_or_else(|error| {
                // Nothing is placed on a target without space.
                tracing::warn!(target_id = %target.id, %error, "cannot tell the space of a target");
                Space::default()
            });
            ServedTarget {
                id: target.id.to_wire(),
                uuid: target.uuid.clone(),
                space: Some(space.into()),
            }
        };
        Heartbeat {
            node: self.node.clone(),
            addresses: self.addresses.clone(),
            targets: self.targets.iter().map(served).collect(),
            have_epoch: self.router.map().epoch.0,
            stopping: self.is_stopping(),
        }
    }

    fn take_over(&self, reply: HeartbeatReply) -> Result<Duration> {
        if let Some(map) = reply.map {
            let map = ClusterMap::try_from(map)?;
            let epoch = map.epoch;
            self.router.set_map(map);
            // Only now: whoever is sent away with an old map must find the new one.
            self.registry.set_epoch(epoch);
        }
        Ok(Duration::from_millis(reply.interval_ms.max(10).into()))
    }
}
