//! A cluster in one process, on stores in memory.

use crate::OSTS;
use std::sync::Arc;
use std::time::Duration;
use weft_client::{Client, ClientConfig};
use weft_manager::{Manager, NodeAgent, Served};
use weft_mds::{Mds, Parts};
use weft_model::map::Space;
use weft_model::{ClientId, Env, TargetId};
use weft_oss::Oss;
use weft_rpc::SystemEnv;
use weft_rpc::channel::Identity;
use weft_rpc::registry::Registry;
use weft_rpc::router::Patience;
use weft_rpc::{Role, Router};
use weft_store::{MemKv, MemObjects};

/// A cluster in this process, on stores in memory.
pub struct Cluster {
    pub registry: Arc<Registry>,
    pub env: Arc<dyn Env>,
    pub mds: Arc<Mds>,
    pub objects: Vec<Arc<MemObjects>>,
}

impl Cluster {
    /// All targets are known to the manager when it returns.
    pub fn start() -> Cluster {
        let env: Arc<dyn Env> = Arc::new(SystemEnv::new());
        let registry = Arc::new(Registry::default());
        let settings = weft_manager::Settings::default();
        let manager = Manager::open(Arc::new(MemKv::new()), env.clone(), settings).unwrap();
        registry.add(TargetId::MGT, Arc::new(manager));
        let identity = Identity {
            role: Role::Server,
            client: ClientId(ClientId::SERVER_BASE),
            name: "test".into(),
            key: None,
        };
        let router = Arc::new(Router::new(identity, vec![], Some(registry.clone()), env.clone()));
        let mut objects = Vec::new();
        for index in 0..OSTS {
            let store = Arc::new(MemObjects::new());
            let id = TargetId::ost(index);
            let oss = Oss::new(id, store.clone(), env.clone(), weft_oss::Settings::default());
            registry.add(id, Arc::new(oss));
            objects.push(store);
        }
        let space =
            Space { total: 1 << 40, free: 1 << 40, inodes_free: 1 << 20, ..Space::default() };
        let served = |id: TargetId| Served {
            id,
            uuid: format!("uuid-{id}"),
            space: Box::new(move || Ok(space)),
        };
        let targets = (0..OSTS).map(TargetId::ost).chain([TargetId::mdt(0)]).map(served).collect();
        NodeAgent::new("n1", vec![], targets, router.clone(), registry.clone())
            .announce(&Patience::of(Duration::from_secs(5)))
            .unwrap();
        let parts = Parts {
            kv: Arc::new(MemKv::new()),
            router,
            env: env.clone(),
            space: Box::new(move || space),
            admit: Box::new(|_| Ok(())),
        };
        let mds = Mds::open(TargetId::mdt(0), 1, parts, weft_mds::Settings::default()).unwrap();
        let mds = Arc::new(mds);
        registry.add(TargetId::mdt(0), mds.clone());
        Cluster { registry, env, mds, objects }
    }

    /// One more client.
    pub fn mount(&self) -> Arc<Client> {
        let registry = Some(self.registry.clone());
        Client::mount(ClientConfig::default(), registry, self.env.clone()).unwrap()
    }
}
