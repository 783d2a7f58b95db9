//! A cluster in memory for one input, with a clock that waits for nobody.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use weft_manager::{Manager, NodeAgent, Served};
use weft_mds::{Mds, Parts};
use weft_model::map::Space;
use weft_model::{ClientId, Env, Epoch, TargetId, Timespec, Xid};
use weft_oss::Oss;
use weft_rpc::channel::Identity;
use weft_rpc::registry::Registry;
use weft_rpc::router::Patience;
use weft_rpc::{Bulk, CallInfo, Request, Role, Router, Service};
use weft_store::{MemKv, MemObjects};

/// Time passes by asking for it. Whoever waits gives the MDT time for its background work, as there are no
/// other threads.
#[derive(Default)]
struct Clock {
    millis: AtomicU64,
    mds: OnceLock<Weak<Mds>>,
    /// Background work does not wait for itself.
    busy: AtomicBool,
}

impl Env for Clock {
    fn now(&self) -> Timespec {
        Timespec { secs: 1_700_000_000, nanos: 0 }
    }
    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.millis.fetch_add(1, Ordering::Relaxed))
    }
    fn sleep(&self, duration: Duration) {
        self.millis.fetch_add(duration.as_millis() as u64, Ordering::Relaxed);
        let mds = self.mds.get().and_then(Weak::upgrade);
        if let (Some(mds), false) = (mds, self.busy.swap(true, Ordering::Relaxed)) {
            mds.tick();
            self.busy.store(false, Ordering::Relaxed);
        }
    }
    fn random(&self) -> u64 {
        self.millis.fetch_add(1, Ordering::Relaxed)
    }
}

/// The servers know the registry, and it them.
impl Drop for Cluster {
    fn drop(&mut self) {
        for target in [TargetId::MGT, TargetId::mdt(0), TargetId::ost(0)] {
            self.registry.remove(target);
        }
    }
}

/// A manager, an MDT and an OST.
pub struct Cluster {
    registry: Arc<Registry>,
    mds: Arc<Mds>,
}

impl Default for Cluster {
    fn default() -> Cluster {
        let clock = Arc::new(Clock::default());
        let env: Arc<dyn Env> = clock.clone();
        let registry = Arc::new(Registry::default());
        let settings = weft_manager::Settings::default();
        let manager = Manager::open(Arc::new(MemKv::new()), env.clone(), settings).unwrap();
        registry.add(TargetId::MGT, Arc::new(manager));
        let identity = Identity {
            role: Role::Server,
            client: ClientId(ClientId::SERVER_BASE),
            name: "fuzz".into(),
            key: None,
        };
        let router = Arc::new(Router::new(identity, vec![], Some(registry.clone()), env.clone()));
        let space = Space {
            total: 1 << 40,
            free: 1 << 40,
            inodes: 1 << 20,
            inodes_free: 1 << 20,
            ..Space::default()
        };
        let ost = TargetId::ost(0);
        let store = Arc::new(MemObjects::new());
        let oss = Oss::new(ost, store, env.clone(), weft_oss::Settings::default());
        registry.add(ost, Arc::new(oss));
        let served = |id: TargetId| Served {
            id,
            uuid: format!("uuid-{id}"),
            space: Box::new(move || Ok(space)),
        };
        let targets = [ost, TargetId::mdt(0)].map(served).into();
        NodeAgent::new("n1", vec![], targets, router.clone(), registry.clone())
            .announce(&Patience::of(Duration::from_secs(5)))
            .unwrap();
        let (kv, space) = (Arc::new(MemKv::new()), Box::new(move || space));
        let parts = Parts { kv, router, env, space, admit: Box::new(|_| Ok(())) };
        let mds = Mds::open(TargetId::mdt(0), 1, parts, weft_mds::Settings::default()).unwrap();
        let mds = Arc::new(mds);
        clock.mds.get_or_init(|| Arc::downgrade(&mds));
        registry.add(TargetId::mdt(0), mds.clone());
        Cluster { registry, mds }
    }
}

impl Cluster {
    /// Has a request of session `client` answered, as if it came over a connection, from whoever may ask.
    pub fn serve(&self, request: &Request, client: u64, sequence: u64, bulk: &[u8]) {
        let target = TargetId { kind: request.role(), index: 0 };
        let Some(service) = self.registry.get(target) else { return };
        let role = if request.allowed_to(Role::Client) { Role::Client } else { Role::Server };
        let info = CallInfo {
            role,
            client: ClientId(client),
            xid: Xid::new(0, sequence),
            epoch: Epoch(1),
            target,
            wire: true,
        };
        let mut room = vec![0; 64 << 10];
        let bulk = match request {
            Request::Write(_) => Bulk::Send(bulk),
            Request::Read(_) => Bulk::Receive(&mut room),
            _ => Bulk::None,
        };
        let _ = Service::serve(&*service, &info, request, bulk);
    }

    /// Has the background work done that requests have left.
    pub fn tick(&self) {
        self.mds.tick();
    }
}
