//! A metadata target over a store in memory, with a pretended OST and a clock that tests move.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use weft_mds::{Mds, Parts, Settings};
use weft_model::map::{SequenceRange, Space, Target, TargetState};
use weft_model::{
    ClientId, ClusterMap, Env, Epoch, ErrorKind, Fid, FsError, NodeId, Result, TargetId, Timespec,
    Xid,
};
use weft_rpc::channel::Identity;
use weft_rpc::pb::{self, mds, oss};
use weft_rpc::registry::Registry;
use weft_rpc::router::Router;
use weft_rpc::{Bulk, CallInfo, Message, Reply, Request, Role, Service};
use weft_store::kv::POWER_LOST;
use weft_store::{Batch, Kv, MemKv};

/// A clock that tests move, and that goes on while somebody sleeps.
#[derive(Default)]
pub struct TestEnv {
    nanos: AtomicU64,
    meanwhile: Mutex<Option<Meanwhile>>,
}

type Meanwhile = Box<dyn FnMut() + Send>;

impl TestEnv {
    pub fn advance(&self, time: Duration) {
        self.nanos.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
    }

    /// Something that happens whenever somebody sleeps.
    pub fn meanwhile(&self, act: impl FnMut() + Send + 'static) {
        *self.meanwhile.lock() = Some(Box::new(act));
    }
}

impl Env for TestEnv {
    fn now(&self) -> Timespec {
        let nanos = self.nanos.fetch_add(1000, Ordering::Relaxed) as i128;
        Timespec::from_nanos(nanos + 1_700_000_000_000_000_000)
    }
    fn monotonic(&self) -> Duration {
        Duration::from_nanos(self.nanos.load(Ordering::Relaxed))
    }
    fn sleep(&self, duration: Duration) {
        self.advance(duration);
        let act = self.meanwhile.lock().take();
        if let Some(mut act) = act {
            act();
            self.meanwhile.lock().get_or_insert(act);
        }
    }
    fn random(&self) -> u64 {
        self.nanos.fetch_add(7, Ordering::Relaxed)
    }
}

/// Knows sizes of objects only.
#[derive(Default)]
pub struct PretendedOst {
    pub sizes: Mutex<HashMap<(u64, u32), u64>>,
    pub down: AtomicBool,
    /// No answer comes, as from a server that is not there.
    pub gone: AtomicBool,
}

impl Service for PretendedOst {
    fn serve(&self, _: &CallInfo, request: &Request, bulk: Bulk<'_>) -> Result<Reply> {
        if self.gone.load(Ordering::Relaxed) {
            return Err(ErrorKind::Disconnected.into());
        }
        if self.down.load(Ordering::Relaxed) {
            return Err(FsError::new(ErrorKind::Io, "pretended failure"));
        }
        let key = |o: &oss::Object| (o.fid, o.index);
        let mut sizes = self.sizes.lock();
        match request {
            Request::Stat(stat) => {
                let one = |o: &oss::Object| oss::ObjectStat {
                    exists: sizes.contains_key(&key(o)),
                    size: sizes.get(&key(o)).copied().unwrap_or(0),
                    ..Default::default()
                };
                Ok(Reply::Stat(oss::StatReply { stats: stat.objects.iter().map(one).collect() }))
            }
            Request::Write(write) => {
                let end = write.offset + bulk.sent_len() as u64;
                let size = sizes.entry(key(write.object.as_ref().unwrap())).or_default();
                *size = (*size).max(end);
                Ok(Reply::Write(oss::WriteReply::default()))
            }
            Request::Truncate(cut) => {
                if let Some(size) = sizes.get_mut(&key(cut.object.as_ref().unwrap())) {
                    *size = (*size).min(cut.size);
                }
                Ok(Reply::Truncate(pb::Empty {}))
            }
            Request::Destroy(destroy) => {
                sizes.retain(|held, _| destroy.objects.iter().all(|o| key(o) != *held));
                Ok(Reply::Destroy(pb::Empty {}))
            }
            Request::ListObjects(list) => {
                let mut ids: Vec<_> = sizes.keys().copied().collect();
                ids.sort_unstable();
                let name = |&(fid, index): &(u64, u32)| format!("{fid:020}.{index}");
                ids.retain(|id| name(id) > list.cursor);
                ids.truncate(list.limit as usize);
                let cursor = ids.last().map(name).unwrap_or_default();
                let objects = ids.into_iter().map(|(fid, index)| oss::Object { fid, index });
                Ok(Reply::ListObjects(oss::ListObjectsReply { cursor, objects: objects.collect() }))
            }
            other => panic!("not pretended: {}", other.name()),
        }
    }
}

pub struct World {
    pub kv: Arc<MemKv>,
    pub env: Arc<TestEnv>,
    pub ost: Arc<PretendedOst>,
    pub mds: Arc<Mds>,
}

pub fn start(kv: &Arc<MemKv>, env: &Arc<TestEnv>, ost: &Arc<PretendedOst>) -> Arc<Mds> {
    let registry = Arc::new(Registry::default());
    registry.add(TargetId::ost(0), ost.clone());
    let identity =
        Identity { role: Role::Server, client: ClientId(1 << 48), name: "mds".into(), key: None };
    let router = Router::new(identity, vec![], Some(registry), env.clone());
    router.set_map(ClusterMap {
        epoch: Epoch(1),
        targets: vec![Target {
            id: TargetId::ost(0),
            uuid: String::new(),
            node: NodeId(1),
            state: TargetState::Up,
            space: Space { total: 1 << 40, free: 1 << 39, ..Space::default() },
        }],
        sequences: vec![SequenceRange { first: 1, last: 1, mdt: 0 }],
        ..ClusterMap::default()
    });
    let parts = Parts {
        kv: kv.clone(),
        router: Arc::new(router),
        env: env.clone(),
        space: Box::new(Space::default),
        admit: Box::new(|_| Ok(())),
    };
    Arc::new(Mds::open(TargetId::mdt(0), 1, parts, Settings::default()).unwrap())
}

impl World {
    pub fn new() -> World {
        let kv = Arc::new(MemKv::default());
        let (env, ost) = (Arc::new(TestEnv::default()), Arc::new(PretendedOst::default()));
        let mds = start(&kv, &env, &ost);
        World { kv, env, ost, mds }
    }

    pub fn restart(&mut self) {
        self.mds = start(&self.kv, &self.env, &self.ost);
    }

    /// The power fails, and takes what was not synced.
    pub fn lose_power(&mut self) {
        self.kv.crash_power(|_| 0);
        self.kv.write(Batch::new().put(&POWER_LOST, &[])).unwrap();
        self.restart();
    }

    pub fn ask_as<M: Message>(&self, client: u64, xid: Xid, message: M) -> Result<M::Reply> {
        let info = CallInfo { client: ClientId(client), xid, ..CALL };
        M::reply(self.mds.serve(&info, &message.into_request(), Bulk::None)?)
    }

    pub fn ask<M: Message>(&self, message: M) -> Result<M::Reply> {
        self.ask_as(1, Xid::NONE, message)
    }

    pub fn session(&self, client: u64) -> mds::OpenSessionReply {
        self.ask_as(client, Xid::NONE, mds::OpenSession::default()).unwrap()
    }

    pub fn create(&self, name: &str, handle: u64) -> (Fid, mds::Entry) {
        let request = mds::Create {
            cred: root(),
            parent: Fid::ROOT.0,
            name: name.into(),
            mode: 0o644,
            flags: 3,
            handle,
            ..Default::default()
        };
        let entry = self.ask(request).unwrap().entry.unwrap();
        (Fid(entry.attr.as_ref().unwrap().fid), entry)
    }

    pub fn delegating(&self, client: u64) {
        let request = mds::OpenSession { caches: true, delegations: true, ..Default::default() };
        self.ask_as(client, Xid::NONE, request).unwrap();
    }

    pub fn open_as(&self, client: u64, fid: Fid, flags: u32, handle: u64) -> mds::Entry {
        let open = mds::Open { cred: root(), fid: fid.0, flags, handle };
        self.ask_as(client, Xid::NONE, open).unwrap()
    }

    pub fn size(&self, fid: Fid) -> u64 {
        self.ask(mds::GetAttr { fid: fid.0, want_layout: false }).unwrap().attr.unwrap().size
    }

    pub fn lookup(&self, name: &str) -> Result<mds::Entry> {
        let found = self.look_up_as(1, name)?;
        found.entry.ok_or_else(|| ErrorKind::NotFound.into())
    }

    pub fn look_up_as(&self, client: u64, name: &str) -> Result<mds::LookupReply> {
        let request = mds::Lookup { cred: root(), parent: Fid::ROOT.0, name: name.into() };
        self.ask_as(client, Xid::NONE, request)
    }

    pub fn grow_object(&self, fid: Fid, size: u64) {
        self.ost.sizes.lock().insert((fid.0, 0), size);
    }

    /// Keys in the store that begin with this byte.
    pub fn keys_of_kind(&self, kind: u8) -> Vec<Vec<u8>> {
        let mut keys = Vec::new();
        let mut keep = |key: &[u8], _: &[u8]| {
            keys.push(key.to_vec());
            ControlFlow::Continue(())
        };
        self.kv.scan(&[kind], &[kind + 1], &mut keep).unwrap();
        keys
    }

    pub fn unlink(&self, name: &str) {
        let request = mds::Unlink { cred: root(), parent: Fid::ROOT.0, name: name.into() };
        self.ask(request).unwrap();
    }
}

/// A call over a connection from session 1.
pub const CALL: CallInfo = CallInfo {
    role: Role::Client,
    client: ClientId(1),
    xid: Xid::NONE,
    epoch: Epoch(1),
    target: TargetId::mdt(0),
    wire: true,
};

/// What a session asks when only the server is at hand, as it is meanwhile.
pub fn ask_of<M: Message>(mds: &Mds, client: u64, message: M) -> M::Reply {
    let info = CallInfo { client: ClientId(client), ..CALL };
    M::reply(mds.serve(&info, &message.into_request(), Bulk::None).unwrap()).unwrap()
}

pub fn root() -> Option<pb::Credentials> {
    Some(pb::Credentials { groups_known: true, ..Default::default() })
}

pub fn written(end: u64, seconds: i64) -> Option<mds::Written> {
    let mtime = Some(pb::Time { secs: 1_700_000_000 + seconds, nanos: 0 });
    Some(mds::Written { end, mtime, ..Default::default() })
}
