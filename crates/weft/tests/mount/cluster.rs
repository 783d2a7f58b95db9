//! A cluster in this process, on targets in a temporary directory, and mounts of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;
use tempfile::TempDir;
use weft_client::{Client, ClientConfig};
use weft_fuse::door::{self, DoorConfig, Mounted};
use weft_fuse::kernel::Transport;
use weft_manager::{Manager, NodeAgent, Served};
use weft_mds::{Mds, Parts};
use weft_model::map::Space;
use weft_model::{ClientId, Env, ErrorKind, TargetId};
use weft_oss::Oss;
use weft_rpc::SystemEnv;
use weft_rpc::channel::Identity;
use weft_rpc::registry::Registry;
use weft_rpc::router::Patience;
use weft_rpc::{Role, Router};
use weft_store::superblock::Uuid;
use weft_store::target::{FormatParams, OpenParams, Target};

const OSTS: u16 = 4;
const MDT: TargetId = TargetId::mdt(0);
/// Between two steps of the background work of the MDT; much shorter than in life, so that it gets
/// into everybody's way.
const TICK: Duration = Duration::from_millis(2);

/// Bytes that wait to be written behind, and that are read ahead; little, so that it is used up.
const PENDING: usize = 8 << 20;

/// What a mount does with what is written to files that nobody else has open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// It takes no delegations.
    Straight,
    /// It answers when the servers have it, as mounts in one process with servers do.
    WritesThrough,
    /// It answers before, as mounts over the network do.
    WritesBehind,
}

/// The servers. Dropped after all mounts.
pub struct Cluster {
    registry: Arc<Registry>,
    env: Arc<dyn Env>,
    ended: Arc<AtomicBool>,
    ticker: Option<JoinHandle<()>>,
    _stores: TempDir,
}

fn open_target(top: &Path, cluster: Uuid, id: TargetId) -> Arc<Target> {
    let dir = top.join(id.to_string());
    let params = FormatParams { cluster, target: id, created: 0, force: false };
    Target::format(&dir, &params).unwrap();
    loop {
        match Target::open(&dir, &OpenParams::default()) {
            Ok(target) => return Arc::new(target),
            // A process that another test starts has a copy of the formatter's lock until it has
            // closed what it does not need.
            Err(error) if error.kind == ErrorKind::Busy => std::thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    }
}

fn space_of(target: &Target) -> Space {
    let space = target.space().unwrap();
    Space {
        total: space.total,
        free: space.available,
        inodes: space.inodes,
        inodes_free: space.inodes_free,
        device: space.device,
    }
}

impl Cluster {
    pub fn start() -> Cluster {
        let stores = tempfile::tempdir().unwrap();
        let env: Arc<dyn Env> = Arc::new(SystemEnv::new());
        let registry = Arc::new(Registry::default());
        let id = Uuid::random().unwrap();
        let open = |target| open_target(stores.path(), id, target);
        let settings = weft_manager::Settings::default();
        let book = open(TargetId::MGT).kv().clone();
        registry.add(TargetId::MGT, Arc::new(Manager::open(book, env.clone(), settings).unwrap()));
        let identity = Identity {
            role: Role::Server,
            client: ClientId(ClientId::SERVER_BASE),
            name: "test".into(),
            key: None,
        };
        let router = Arc::new(Router::new(identity, vec![], Some(registry.clone()), env.clone()));
        let mut served = Vec::new();
        let mut serve = |target: &Arc<Target>| {
            let target = target.clone();
            let (id, uuid) = (target.id(), target.superblock().uuid.to_string());
            served.push(Served { id, uuid, space: Box::new(move || Ok(space_of(&target))) });
        };
        for index in 0..OSTS {
            let target = open(TargetId::ost(index));
            let settings = weft_oss::Settings::default();
            let oss = Oss::new(target.id(), target.objects().unwrap(), env.clone(), settings);
            registry.add(target.id(), Arc::new(oss));
            serve(&target);
        }
        let target = open(MDT);
        serve(&target);
        NodeAgent::new("n1", vec![], served, router.clone(), registry.clone())
            .announce(&Patience::of(Duration::from_secs(5)))
            .unwrap();
        let kv = target.kv().clone();
        let space = Box::new(move || space_of(&target));
        let admit = Box::new(|_| Ok(()));
        let parts = Parts { kv, router, env: env.clone(), space, admit };
        let mds = Arc::new(Mds::open(MDT, 1, parts, weft_mds::Settings::default()).unwrap());
        registry.add(MDT, mds.clone());
        let ended = Arc::new(AtomicBool::new(false));
        let stop = ended.clone();
        let ticker = std::thread::spawn(move || {
            while !stop.load(Relaxed) {
                mds.tick();
                std::thread::sleep(TICK);
            }
        });
        Cluster { registry, env, ended, ticker: Some(ticker), _stores: stores }
    }

    /// Mounts in a temporary directory.
    pub fn mount(&self) -> Mount {
        self.mount_with(DoorConfig::default())
    }

    pub fn mount_with(&self, config: DoorConfig) -> Mount {
        self.mount_as(Kind::WritesBehind, config)
    }

    pub fn mount_as(&self, kind: Kind, config: DoorConfig) -> Mount {
        let directory = tempfile::tempdir().unwrap();
        let (client, mounted) = self.mount_on(directory.path(), kind, config);
        Mount { client, mounted, directory }
    }

    pub fn mount_on(&self, path: &Path, kind: Kind, config: DoorConfig) -> (Arc<Client>, Mounted) {
        let registry = Some(self.registry.clone());
        // With lifetimes of its own the kernel keeps what it should not, which is for tests only.
        let caches = config.entry_ttl.is_zero();
        let told = ClientConfig {
            caches,
            delegations: caches && kind != Kind::Straight,
            writes_behind: caches && kind == Kind::WritesBehind,
            max_pending: PENDING,
            max_ahead: if caches { PENDING } else { 0 },
            ..ClientConfig::default()
        };
        let client = Client::mount(told, registry, self.env.clone()).unwrap();
        let config = DoorConfig { transport: transport(), ..config };
        let mounted = door::mount(client.clone(), path, config).unwrap();
        (client, mounted)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.ended.store(true, Relaxed);
        self.ticker.take().map(JoinHandle::join);
    }
}

const PARAMETER: &str = "/sys/module/fuse/parameters/enable_uring";

/// The transport named by `WEFT_TEST_TRANSPORT` if it can be had, by default /dev/fuse.
fn transport() -> Transport {
    let Ok(name) = std::env::var("WEFT_TEST_TRANSPORT") else { return Transport::Device };
    let is_on = std::fs::read_to_string(PARAMETER).is_ok_and(|value| value.trim() == "Y");
    match name.parse().unwrap() {
        Transport::Rings if !is_on => {
            eprintln!("SKIPPED with io_uring, which is switched off in {PARAMETER}: /dev/fuse");
            Transport::Device
        }
        transport => transport,
    }
}

/// A mount, gone when dropped, whatever the test did.
pub struct Mount {
    client: Arc<Client>,
    mounted: Mounted,
    directory: TempDir,
}

impl Mount {
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn client(&self) -> &Client {
        &self.client
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if let Err(error) = self.mounted.unmount() {
            // Callers that hang are threads of this very process: only this frees them.
            let mount = self.mounted.mount().unwrap();
            eprintln!("plain unmount: {error}; aborting: {:?}", mount.abort());
            let _ = mount.unmount(true);
        }
        if let Err(error) = self.client.unmount() {
            eprintln!("client unmount: {error}");
        }
    }
}
