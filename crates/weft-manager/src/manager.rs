//! The manager as a service: its state, and the one way to change the map.

use crate::book::Book;
use crate::worker::Worker;
use crate::{decide, ops};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};
use std::time::Duration;
use weft_model::map::TargetState;
use weft_model::{ClientId, ClusterMap, Env, Epoch, ErrorKind, FsError, NodeId, Result, TargetId};
use weft_rpc::metrics::{Figure, FigureKind, Metrics};
use weft_rpc::pb::manager as pb;
use weft_rpc::{Bulk, CallInfo, Reply, Request, Service};
use weft_store::Kv;

/// How a [`Manager`] is run.
#[derive(Clone)]
pub struct Settings {
    /// Identity of the cluster. A book of another cluster is refused; empty takes any.
    pub cluster: String,
    /// Name of the node the manager runs on, for its figures.
    pub node: String,
    /// How often nodes have to report.
    pub heartbeat_interval: Duration,
    /// Targets of a node silent for this long are down, and another node may take them over.
    pub node_timeout: Duration,
    /// Clients silent for this long are not listed any more.
    pub client_timeout: Duration,
    /// How often metadata servers get new figures of space.
    pub space_interval: Duration,
    /// Figures of the process, for NodeStats.
    pub metrics: Option<Arc<Metrics>>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            cluster: String::new(),
            node: "manager".into(),
            heartbeat_interval: Duration::from_secs(1),
            node_timeout: Duration::from_secs(5),
            client_timeout: Duration::from_secs(300),
            space_interval: Duration::from_secs(2),
            metrics: None,
        }
    }
}

/// Serves the cluster's book.
pub struct Manager {
    pub(crate) env: Arc<dyn Env>,
    pub(crate) settings: Settings,
    pub(crate) book: Book,
    pub(crate) state: Mutex<State>,
}

/// What the manager knows; the map and the identities are in the book, too.
pub(crate) struct State {
    /// The map as it is shown, with the newest figures of space.
    pub(crate) map: ClusterMap,
    /// When a target was last reported by the node that has it.
    pub(crate) heard: HashMap<TargetId, Duration>,
    /// When a node last got figures of space.
    pub(crate) shown: HashMap<NodeId, Duration>,
    /// Mounted clients.
    pub(crate) clients: BTreeMap<ClientId, Mounted>,
    /// The next identity to give out.
    pub(crate) next_client: u64,
    /// Identities below this are reserved in the book.
    pub(crate) client_limit: u64,
}

/// A mounted client.
pub(crate) struct Mounted {
    /// What it said of itself.
    pub(crate) client: pb::Client,
    /// When it was last heard of.
    pub(crate) heard: Duration,
}

impl Manager {
    /// Opens the book in `kv`; an empty one becomes that of a new cluster, with the volume `weft`.
    ///
    /// All targets and clients count as just heard of: they have one timeout to report.
    ///
    /// # Errors
    /// `Invalid` for the book of another cluster, `Version`, `Corrupt`, and what the store says.
    pub fn open(kv: Arc<dyn Kv>, env: Arc<dyn Env>, settings: Settings) -> Result<Manager> {
        let (book, contents) = Book::open(kv)?;
        let map = match contents.map {
            Some(map) if settings.cluster.is_empty() || map.cluster == settings.cluster => map,
            Some(map) => {
                return Err(FsError::new(ErrorKind::Invalid, "open manager's book")
                    .on(format_args!("cluster={} expected={}", map.cluster, settings.cluster))
                    .because("the book is of another cluster"));
            }
            None => {
                let map = decide::first_map(&settings.cluster);
                book.store_map(&map)?;
                map
            }
        };
        let now = env.monotonic();
        let heard = map.targets.iter().map(|target| (target.id, now)).collect();
        let clients = contents.clients.into_iter();
        let clients =
            clients.map(|c| (ClientId(c.id), Mounted { client: c, heard: now })).collect();
        let next_client = contents.next_client;
        let state = State {
            map,
            heard,
            shown: HashMap::new(),
            clients,
            next_client,
            client_limit: next_client,
        };
        Ok(Manager { env, settings, book, state: Mutex::new(state) })
    }

    /// The current map.
    pub fn map(&self) -> ClusterMap {
        self.state.lock().map.clone()
    }

    /// What has to be done from time to time: finds targets and clients that have fallen silent.
    /// Call it several times per node timeout.
    ///
    /// # Errors
    /// What the store says; nothing has changed then, and the next tick tries again.
    pub fn tick(&self) -> Result<()> {
        let now = self.env.monotonic();
        let mut state = self.state.lock();
        let next = decide::expire(&state.map, &|target| self.alive(&state, target, now));
        if let Some(next) = next {
            self.publish(&mut state, next, "a node has fallen silent")?;
        }
        let limit = self.settings.client_timeout;
        let silent = |mounted: &Mounted| now.saturating_sub(mounted.heard) > limit;
        let gone: Vec<ClientId> =
            state.clients.iter().filter(|(_, m)| silent(m)).map(|(&id, _)| id).collect();
        if !gone.is_empty() {
            self.book.remove_clients(&gone)?;
            gone.iter().for_each(|id| drop(state.clients.remove(id)));
        }
        Ok(())
    }

    /// Starts a thread that ticks for as long as the manager and the worker exist.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn start(self: &Arc<Self>) -> Result<Worker> {
        let manager = Arc::downgrade(self);
        let pause = self.settings.node_timeout / 10;
        Worker::start("weft-manager", move || {
            if let Some(Err(error)) = manager.upgrade().map(|manager| manager.tick()) {
                tracing::error!(%error, "manager cannot keep its book");
            }
            pause
        })
    }

    /// Shows the manager's figures among those of the process, for as long as it exists.
    pub fn register_figures(self: &Arc<Self>, metrics: &Metrics) {
        let add = |name, help, labels, read: fn(&State) -> f64| {
            let manager: Weak<Manager> = Arc::downgrade(self);
            let read = move || manager.upgrade().map(|manager| read(&manager.state.lock()));
            let kind = FigureKind::Gauge;
            metrics.register(Figure { name, help, kind, labels, read: Box::new(read) });
        };
        let none = Vec::new;
        add("weft_map_epoch", "Version of the cluster map.", none(), |s| s.map.epoch.0 as f64);
        add("weft_clients", "Mounted clients.", none(), |s| s.clients.len() as f64);
        let state = |name: &str, read| {
            add("weft_targets", "Targets by state.", vec![("state", name.into())], read);
        };
        state("up", |state: &State| state.count(TargetState::Up));
        state("down", |state: &State| state.count(TargetState::Down));
        state("drain", |state: &State| state.count(TargetState::Drain));
    }

    /// Whether the target's node has reported it within the node timeout.
    pub(crate) fn alive(&self, state: &State, target: TargetId, now: Duration) -> bool {
        let heard = state.heard.get(&target);
        heard.is_some_and(|&heard| now.saturating_sub(heard) <= self.settings.node_timeout)
    }

    /// Makes `next` the map: first in the book, then for everybody.
    pub(crate) fn publish(&self, state: &mut State, next: ClusterMap, cause: &str) -> Result<()> {
        self.book.store_map(&next)?;
        for target in &next.targets {
            let former = state.map.target(target.id).map(|former| (former.state, former.node));
            if former != Some((target.state, target.node)) {
                tracing::info!(target_id = %target.id, node = %target.node, state = ?target.state,
                    epoch = %next.epoch, cause, "target changed");
            }
        }
        tracing::debug!(epoch = %next.epoch, cause, "new cluster map");
        state.map = next;
        Ok(())
    }
}

impl State {
    fn count(&self, state: TargetState) -> f64 {
        self.map.targets.iter().filter(|target| target.state == state).count() as f64
    }

    /// The map for an asker who has that of `have`; none when it is the same.
    pub(crate) fn map_for(&self, have: Epoch) -> Option<pb::Map> {
        (have != self.map.epoch).then(|| pb::Map::from(&self.map))
    }
}

impl Service for Manager {
    fn serve(&self, info: &CallInfo, request: &Request, _bulk: Bulk<'_>) -> Result<Reply> {
        match request {
            Request::GetMap(get) => Ok(Reply::GetMap(ops::get_map::get_map(self, get))),
            Request::RegisterClient(register) => {
                ops::register_client::register_client(self, register).map(Reply::RegisterClient)
            }
            Request::RenewClient(renew) => {
                ops::renew_client::renew_client(self, info, renew).map(Reply::RenewClient)
            }
            Request::Heartbeat(beat) => ops::heartbeat::heartbeat(self, beat).map(Reply::Heartbeat),
            Request::AllocateSequence(allocate) => {
                ops::allocate_sequence::allocate_sequence(self, allocate)
                    .map(Reply::AllocateSequence)
            }
            Request::ListClients(_) => {
                Ok(Reply::ListClients(ops::list_clients::list_clients(self)))
            }
            Request::SetTargetState(set) => {
                ops::set_target_state::set_target_state(self, set).map(Reply::SetTargetState)
            }
            Request::Remove(remove) => ops::remove::remove(self, remove).map(Reply::Remove),
            Request::SetPool(set) => ops::set_pool::set_pool(self, set).map(Reply::SetPool),
            Request::NodeStats(_) => Ok(Reply::NodeStats(ops::node_stats::node_stats(self))),
            _ => Err(FsError::new(ErrorKind::Protocol, request.name())
                .because("this request is for another kind of target")),
        }
    }
}
