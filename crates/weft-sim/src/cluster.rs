//! The servers: one manager, one metadata server, some object servers, each a process of its own.

use crate::actor::unwound;
use crate::disk::Disk;
use crate::process::Process;
use crate::wire::{MANAGER, Wire};
use crate::world::World;
use parking_lot::Mutex;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weft_client::{Client, ClientConfig};
use weft_manager::{Manager, NodeAgent, Served};
use weft_mds::{Mds, Parts};
use weft_model::map::Space;
use weft_model::{ClientId, Result, TargetId};
use weft_oss::Oss;
use weft_rpc::registry::Registry;
use weft_rpc::router::Patience;
use weft_rpc::{Role, Router};
use weft_store::{MemKv, MemObjects, ObjectStore};

/// Object servers.
pub const OSTS: usize = 3;
/// A client not heard of for this long has lost its session. Longer than any operation waits for a
/// Bytes that a client may keep of what it writes: little, so that it has to wait at times.
const MAX_PENDING: usize = 24 << 10;
/// Bytes that a client may read ahead, and at a time: a few times what fits into a window.
const MAX_AHEAD: usize = 64 << 10;
const AHEAD_CHUNK: u64 = 6 << 10;
/// server, as the clients here have no thread that renews their sessions meanwhile.
pub const LEASE: Duration = Duration::from_secs(20);
/// Between two background syncs of the metadata.
const SYNC_INTERVAL: Duration = Duration::from_millis(20);
/// Rounds of the above between two steps of other background work.
const TICK_ROUNDS: u32 = 3;
/// Between two heartbeats, and two looks of the manager at who is alive.
pub const BEAT_INTERVAL: Duration = Duration::from_secs(1);

/// Servers and their disks.
pub struct Cluster {
    /// Where they live.
    pub world: Arc<World>,
    /// Hosts: the manager's, the metadata server's, then the object servers'.
    pub hosts: Vec<usize>,
    /// The manager's book.
    pub book: Arc<MemKv>,
    /// The metadata target.
    pub mdt: Arc<MemKv>,
    /// The object targets.
    pub osts: Vec<Arc<MemObjects>>,
    /// The metadata server as it was last started.
    pub mds: Mutex<Option<Arc<Mds>>>,
    /// Whether servers that are down come up.
    pub powered: AtomicBool,
    stopping: AtomicBool,
}

impl Cluster {
    /// New disks in servers that are about to start.
    pub fn start(world: &Arc<World>) -> Arc<Cluster> {
        let names = [MANAGER.into(), "mds".into()].into_iter();
        let names: Vec<String> = names.chain((0..OSTS).map(|i| format!("oss{i}"))).collect();
        let osts: Vec<_> = (0..OSTS).map(|_| Arc::new(MemObjects::new())).collect();
        osts.iter().for_each(|ost| ost.set_capacity(world.plan.capacity));
        let cluster = Arc::new(Cluster {
            world: world.clone(),
            hosts: names.iter().map(|name| world.add_host(name)).collect(),
            book: Arc::default(),
            mdt: Arc::default(),
            osts,
            mds: Mutex::default(),
            powered: AtomicBool::new(true),
            stopping: AtomicBool::new(false),
        });
        for (index, name) in names.into_iter().enumerate() {
            let of_thread = cluster.clone();
            world.spawn(&name.clone(), move || of_thread.live(index, &name));
        }
        cluster
    }

    /// Lets the servers end.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// A new client.
    ///
    /// # Errors
    /// As [`Client::mount`].
    pub fn mount(&self, process: &Process) -> Result<Arc<Client>> {
        let router = self.router(process, Role::Client);
        let host = format!("host{}", process.host);
        let config = ClientConfig {
            host,
            caches: self.world.plan.caches,
            delegations: self.world.plan.delegations,
            writes_behind: self.world.plan.writes_behind,
            max_pending: MAX_PENDING,
            max_ahead: if self.world.plan.reads_ahead { MAX_AHEAD } else { 0 },
            ahead_chunk: AHEAD_CHUNK,
            polls_locks: true,
            ..Default::default()
        };
        Client::mount_over(config, router)
    }

    fn router(&self, process: &Process, role: Role) -> Router {
        let wire = Arc::new(Wire(process.clone()));
        Router::over(wire, role, None, Arc::new(process.clone()))
    }

    /// The lives of a server, one after the other.
    fn live(&self, index: usize, name: &str) {
        loop {
            while !self.powered.load(Ordering::Relaxed) {
                self.world.pause(Duration::from_millis(1));
            }
            let process = self.world.start(self.hosts[index]);
            self.world.note("starts");
            let life = catch_unwind(AssertUnwindSafe(|| match index {
                0 => self.manage(&process),
                1 => self.serve_metadata(&process, name),
                _ => self.serve_objects(&process, name, index - 2),
            }));
            match life {
                Ok(Ok(())) => return,
                Ok(Err(error)) => panic!("{name} cannot start: {error}"),
                Err(cause) if unwound(&*cause) == Some(process.end()) => {}
                Err(cause) => resume_unwind(cause),
            }
            self.world.pause(self.world.span(5_000, 300_000));
        }
    }

    /// Repeats `step` with its pauses until the servers end.
    fn repeat(&self, process: &Process, pause: Duration, mut step: impl FnMut()) -> Result<()> {
        while !self.stopping.load(Ordering::Relaxed) {
            step();
            process.pause(pause);
        }
        Ok(())
    }

    fn manage(&self, process: &Process) -> Result<()> {
        self.book.crash_process();
        let kv = Disk { inner: self.book.clone(), process: process.clone(), mortal: true };
        let settings = weft_manager::Settings::default();
        let manager = Arc::new(Manager::open(Arc::new(kv), Arc::new(process.clone()), settings)?);
        let registry = Arc::new(Registry::default());
        registry.add(TargetId::MGT, manager.clone());
        process.serve(registry);
        self.repeat(process, BEAT_INTERVAL, || {
            if let Err(error) = manager.tick() {
                self.world.note(format_args!("manager: {error}"));
            }
        })
    }

    /// Announces a server's target to the manager.
    fn join(
        &self,
        process: &Process,
        name: &str,
        target: TargetId,
        space: impl Fn() -> Space + Send + Sync + 'static,
    ) -> Result<(Arc<Router>, Arc<Registry>, NodeAgent)> {
        let router = Arc::new(self.router(process, Role::Server));
        router.set_client(ClientId(ClientId::SERVER_BASE + process.host as u64));
        let registry = Arc::new(Registry::default());
        let uuid = format!("uuid-{target}");
        let served = Served { id: target, uuid, space: Box::new(move || Ok(space())) };
        let addresses = vec![name.to_string()];
        let agent = NodeAgent::new(name, addresses, vec![served], router.clone(), registry.clone());
        agent.announce(&Patience::FOREVER)?;
        Ok((router, registry, agent))
    }

    fn serve_metadata(&self, process: &Process, name: &str) -> Result<()> {
        self.mdt.crash_process();
        let target = TargetId::mdt(0);
        let space =
            || Space { total: 1 << 40, free: 1 << 40, inodes_free: 1 << 20, ..Space::default() };
        let (router, registry, agent) = self.join(process, name, target, space)?;
        let mortal = process.world.plan.kill_mds;
        let kv = Disk { inner: self.mdt.clone(), process: process.clone(), mortal };
        let env = Arc::new(process.clone());
        let parts = Parts {
            kv: Arc::new(kv),
            router,
            env,
            space: Box::new(space),
            admit: Box::new(|_| Ok(())),
        };
        let settings = weft_mds::Settings { lease: LEASE, ..Default::default() };
        let mds = Arc::new(Mds::open(target, 1, parts, settings)?);
        registry.add(target, mds.clone());
        *self.mds.lock() = Some(mds.clone());
        process.serve(registry);
        let (mut round, mut beaten) = (0, process.world.now());
        self.repeat(process, SYNC_INTERVAL, || {
            if let Err(error) = mds.sync() {
                self.world.note(format_args!("background sync: {error}"));
            }
            round += 1;
            if round % TICK_ROUNDS == 0 {
                mds.tick();
            }
            if process.world.now() >= beaten + BEAT_INTERVAL {
                beaten = process.world.now();
                // A heartbeat that is lost is followed by the next.
                let _ = agent.beat();
            }
        })
    }

    fn serve_objects(&self, process: &Process, name: &str, index: usize) -> Result<()> {
        self.osts[index].crash_process();
        let target = TargetId::ost(index as u16);
        let inner = self.osts[index].clone();
        let objects =
            Arc::new(Disk { inner: inner.clone(), process: process.clone(), mortal: true });
        let env = Arc::new(process.clone());
        let oss = Arc::new(Oss::new(target, objects, env, weft_oss::Settings::default()));
        let space = move || {
            let found = inner.statfs().unwrap_or_default();
            Space { total: found.total, free: found.available, ..Space::default() }
        };
        let (_router, registry, agent) = self.join(process, name, target, space)?;
        registry.add(target, oss);
        process.serve(registry);
        self.repeat(process, BEAT_INTERVAL, || {
            let _ = agent.beat();
        })
    }
}
