//! A metadata target over a store in memory, with a pretended OST: exactly once, crashes and restarts,
//! truncation in its steps, clients that die.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use weft_mds::{Mds, Parts, Settings};
use weft_model::map::{Space, Target, TargetState};
use weft_model::{
    ClientId, ClusterMap, Env, Epoch, ErrorKind, Fid, FsError, NodeId, Result, TargetId, Timespec,
    Xid,
};
use weft_rpc::channel::Identity;
use weft_rpc::pb::{self, mds, oss};
use weft_rpc::registry::Registry;
use weft_rpc::router::Router;
use weft_rpc::{Bulk, CallInfo, Message, Reply, Request, Role, Service};
use weft_store::MemKv;

/// A clock that tests move.
#[derive(Default)]
struct TestEnv(AtomicU64);

impl TestEnv {
    fn advance(&self, time: Duration) {
        self.0.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
    }
}

impl Env for TestEnv {
    fn now(&self) -> Timespec {
        let nanos = self.0.fetch_add(1000, Ordering::Relaxed) as i128;
        Timespec::from_nanos(nanos + 1_700_000_000_000_000_000)
    }
    fn monotonic(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }
    fn sleep(&self, duration: Duration) {
        self.advance(duration);
    }
    fn random(&self) -> u64 {
        self.0.fetch_add(7, Ordering::Relaxed)
    }
}

/// Knows sizes of objects only.
#[derive(Default)]
struct PretendedOst {
    sizes: Mutex<HashMap<(u64, u32), u64>>,
    down: AtomicBool,
}

impl Service for PretendedOst {
    fn serve(&self, _: &CallInfo, request: &Request, _: Bulk<'_>) -> Result<Reply> {
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
            other => panic!("not pretended: {}", other.name()),
        }
    }
}

struct World {
    kv: Arc<MemKv>,
    env: Arc<TestEnv>,
    ost: Arc<PretendedOst>,
    mds: Mds,
}

fn start(kv: &Arc<MemKv>, env: &Arc<TestEnv>, ost: &Arc<PretendedOst>) -> Mds {
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
        ..ClusterMap::default()
    });
    let parts = Parts {
        kv: kv.clone(),
        router: Arc::new(router),
        env: env.clone(),
        space: Box::new(Space::default),
        admit: Box::new(|_| Ok(())),
    };
    Mds::open(TargetId::mdt(0), 1, parts, Settings::default()).unwrap()
}

impl World {
    fn new() -> World {
        let kv = Arc::new(MemKv::default());
        let (env, ost) = (Arc::new(TestEnv::default()), Arc::new(PretendedOst::default()));
        let mds = start(&kv, &env, &ost);
        World { kv, env, ost, mds }
    }

    fn restart(&mut self) {
        self.mds = start(&self.kv, &self.env, &self.ost);
    }

    fn ask_as<M: Message>(&self, client: u64, xid: Xid, message: M) -> Result<M::Reply> {
        let info = CallInfo {
            role: Role::Client,
            client: ClientId(client),
            xid,
            epoch: Epoch(1),
            target: TargetId::mdt(0),
            wire: true,
        };
        M::reply(self.mds.serve(&info, &message.into_request(), Bulk::None)?)
    }

    fn ask<M: Message>(&self, message: M) -> Result<M::Reply> {
        self.ask_as(1, Xid::NONE, message)
    }

    fn session(&self, client: u64) -> mds::OpenSessionReply {
        self.ask_as(client, Xid::NONE, mds::OpenSession::default()).unwrap()
    }

    fn create(&self, name: &str, handle: u64) -> (Fid, mds::Entry) {
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

    fn size(&self, fid: Fid) -> u64 {
        self.ask(mds::GetAttr { fid: fid.0, want_layout: false }).unwrap().attr.unwrap().size
    }

    fn lookup(&self, name: &str) -> Result<mds::Entry> {
        self.ask(mds::Lookup { cred: root(), parent: Fid::ROOT.0, name: name.into() })
    }

    fn grow_object(&self, fid: Fid, size: u64) {
        self.ost.sizes.lock().insert((fid.0, 0), size);
    }

    fn unlink(&self, name: &str) {
        let request = mds::Unlink { cred: root(), parent: Fid::ROOT.0, name: name.into() };
        self.ask(request).unwrap();
    }
}

fn root() -> Option<pb::Credentials> {
    Some(pb::Credentials { groups_known: true, ..Default::default() })
}

fn written(end: u64, seconds: i64) -> Option<mds::Written> {
    let mtime = Some(pb::Time { secs: 1_700_000_000 + seconds, nanos: 0 });
    Some(mds::Written { end, mtime, ..Default::default() })
}

#[test]
fn a_resent_request_gets_its_first_answer_even_after_a_restart() {
    let mut world = World::new();
    world.session(1);
    let mkdir = || mds::Mkdir {
        cred: root(),
        parent: Fid::ROOT.0,
        name: b"d".to_vec(),
        mode: 0o755,
        umask: 0,
    };
    let first = world.ask_as(1, Xid::new(3, 1), mkdir()).unwrap();
    assert_eq!(world.ask_as(1, Xid::new(3, 1), mkdir()).unwrap(), first);
    let other = world.ask_as(1, Xid::new(4, 1), mkdir()).unwrap_err();
    assert_eq!(other.kind, ErrorKind::Exists);
    world.restart();
    let refused = world.ask_as(1, Xid::new(3, 1), mkdir()).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::NoSession);
    let opened = world.session(1);
    assert!(opened.known && opened.recovering);
    world.ask(mds::Reclaim { done: true, ..Default::default() }).unwrap();
    assert_eq!(world.ask_as(1, Xid::new(3, 1), mkdir()).unwrap(), first);
    let past = world.ask_as(1, Xid::new(3, 0), mkdir()).unwrap_err();
    assert_eq!(past.kind, ErrorKind::Protocol);
}

#[test]
fn nothing_answered_is_lost_in_a_restart() {
    let mut world = World::new();
    world.session(1);
    let files: Vec<Fid> = (0..50).map(|i| world.create(&format!("f{i}"), i).0).collect();
    world.unlink("f7");
    world.restart();
    world.session(1);
    world.ask(mds::Reclaim { done: true, ..Default::default() }).unwrap();
    for (i, fid) in files.iter().enumerate() {
        match world.lookup(&format!("f{i}")) {
            Ok(entry) => assert_eq!(entry.attr.unwrap().fid, fid.0),
            Err(error) => assert!(i == 7 && error.kind == ErrorKind::NotFound),
        }
    }
    // FIDs are never used again.
    let (new, _) = world.create("new", 99);
    assert!(!files.contains(&new));
}

#[test]
fn an_open_file_survives_its_last_name_and_the_restart() {
    let mut world = World::new();
    world.session(1);
    let (fid, _) = world.create("f", 5);
    world.grow_object(fid, 100);
    world.unlink("f");
    assert!(world.ask(mds::GetAttr { fid: fid.0, want_layout: false }).is_ok());
    world.restart();
    world.session(1);
    let opens = vec![mds::OpenHandle { fid: fid.0, handle: 5, flags: 3 }];
    world.ask(mds::Reclaim { opens, done: true, ..Default::default() }).unwrap();
    world.mds.tick();
    assert!(world.ost.sizes.lock().contains_key(&(fid.0, 0)));
    let close = mds::Close { fid: fid.0, handle: 5, written: written(100, 1), flock_owner: None };
    world.ask(close).unwrap();
    world.mds.tick();
    assert!(world.ost.sizes.lock().is_empty());
    let gone = world.ask(mds::GetAttr { fid: fid.0, want_layout: false }).unwrap_err();
    assert_eq!(gone.kind, ErrorKind::Stale);
}

#[test]
fn a_dead_clients_file_gets_the_size_of_its_objects() {
    let mut world = World::new();
    world.session(1);
    let (fid, _) = world.create("f", 5);
    world.grow_object(fid, 12_345);
    world.session(2);
    let seen = world.ask_as(2, Xid::NONE, mds::GetAttr { fid: fid.0, want_layout: false }).unwrap();
    assert!(seen.written_elsewhere && seen.layout.is_some());
    // The MDT restarts, and the client never comes back.
    world.restart();
    world.env.advance(Duration::from_secs(11));
    world.mds.tick();
    world.session(3);
    let entry =
        world.ask_as(3, Xid::NONE, mds::GetAttr { fid: fid.0, want_layout: false }).unwrap();
    assert_eq!((entry.attr.unwrap().size, entry.written_elsewhere), (12_345, false));
}

#[test]
fn truncation_is_finished_after_a_crash_between_its_steps() {
    let mut world = World::new();
    world.session(1);
    let (fid, _) = world.create("f", 5);
    world.grow_object(fid, 10_000);
    let close =
        mds::Close { fid: fid.0, handle: 5, written: written(10_000, 1), flock_owner: None };
    world.ask(close).unwrap();
    assert_eq!(world.size(fid), 10_000);
    let cut = || mds::SetAttr { cred: root(), fid: fid.0, size: Some(10), ..Default::default() };
    world.ost.down.store(true, Ordering::Relaxed);
    assert!(world.ask(cut()).is_err());
    assert_eq!(world.size(fid), 10_000);
    world.restart();
    world.ost.down.store(false, Ordering::Relaxed);
    world.mds.tick();
    assert_eq!(world.ost.sizes.lock()[&(fid.0, 0)], 10);
    world.session(1);
    world.ask(mds::Reclaim { done: true, ..Default::default() }).unwrap();
    assert_eq!(world.size(fid), 10);
}

#[test]
fn a_late_report_does_not_undo_a_truncation() {
    let world = World::new();
    world.session(1);
    let (fid, _) = world.create("f", 5);
    world.grow_object(fid, 1000);
    world.session(2);
    let cut = mds::SetAttr { cred: root(), fid: fid.0, size: Some(10), ..Default::default() };
    world.ask_as(2, Xid::NONE, cut).unwrap();
    let report = mds::UpdateWritten { fid: fid.0, written: written(1000, 1) };
    world.ask(report).unwrap();
    assert_eq!(world.size(fid), 10);
    // What was written after the truncation counts.
    world.grow_object(fid, 50);
    let report = mds::UpdateWritten { fid: fid.0, written: written(50, 2) };
    world.ask(report).unwrap();
    assert_eq!(world.size(fid), 50);
}

#[test]
fn appends_get_places_of_their_own() {
    let world = World::new();
    world.session(1);
    world.session(2);
    let (fid, _) = world.create("log", 5);
    let open = mds::Open { cred: root(), fid: fid.0, flags: 6, handle: 1 };
    world.ask_as(2, Xid::NONE, open).unwrap();
    let append = |client, observed, glimpsed| {
        let request = mds::Append { fid: fid.0, len: 10, observed, glimpsed, ..Default::default() };
        world.ask_as(client, Xid::NONE, request).unwrap()
    };
    assert!(append(1, 0, false).glimpse);
    assert_eq!(append(1, 0, true).offset, 0);
    assert_eq!(append(2, 0, true).offset, 10);
    assert_eq!(append(1, 35, true).offset, 35);
}

#[test]
fn locks_go_with_their_client_and_come_back_by_reclaim() {
    let mut world = World::new();
    world.session(1);
    world.session(2);
    let (fid, _) = world.create("f", 5);
    let lock = |owner| mds::Lock { fid: fid.0, owner, kind: 1, end: 9, ..Default::default() };
    assert!(world.ask(lock(1)).unwrap().granted);
    assert!(!world.ask_as(2, Xid::NONE, lock(1)).unwrap().granted);
    world.restart();
    world.session(2);
    world.ask_as(2, Xid::NONE, mds::Reclaim { done: true, ..Default::default() }).unwrap();
    let early = world.ask_as(2, Xid::NONE, lock(1)).unwrap_err();
    assert_eq!(early.kind, ErrorKind::NotReady);
    world.session(1);
    let locks = vec![lock(1)];
    world.ask(mds::Reclaim { locks, done: true, ..Default::default() }).unwrap();
    assert!(!world.ask_as(2, Xid::NONE, lock(1)).unwrap().granted);
    world.env.advance(Duration::from_secs(9));
    world.ask_as(2, Xid::NONE, mds::RenewSession {}).unwrap();
    world.env.advance(Duration::from_secs(5));
    world.mds.tick();
    assert!(world.ask_as(2, Xid::NONE, lock(1)).unwrap().granted);
}

#[test]
fn a_directory_is_read_completely_while_entries_come_and_go() {
    let world = World::new();
    world.session(1);
    (0..2000).for_each(|i| drop(world.create(&format!("stay{i}"), 1)));
    let (mut position, mut seen, mut step) = (0, Vec::new(), 0);
    loop {
        let request = mds::Readdir {
            cred: root(),
            dir: Fid::ROOT.0,
            position,
            max_bytes: 4096,
            with_attr: step % 2 == 0,
        };
        let reply = world.ask(request).unwrap();
        seen.extend(reply.entries.iter().map(|entry| entry.name.clone()));
        position = reply.entries.last().map_or(position, |last| last.position);
        if reply.end {
            break;
        }
        world.create(&format!("come{step}"), 1);
        if step > 0 {
            world.unlink(&format!("come{}", step - 1));
        }
        step += 1;
    }
    let mut stayed: Vec<_> = seen.iter().filter(|name| name.starts_with(b"stay")).collect();
    let count = stayed.len();
    stayed.sort();
    stayed.dedup();
    assert_eq!((count, stayed.len()), (2000, 2000));
}
