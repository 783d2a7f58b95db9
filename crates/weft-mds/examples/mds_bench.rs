//! What one metadata target does per second and core, without wire, client or FUSE: requests are handed
//! to `serve` by a number of threads. `cargo run --release -p weft-mds --example mds_bench [DIR]`

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use weft_mds::{Mds, Parts, Settings};
use weft_model::map::{Space, Target, TargetState};
use weft_model::{ClientId, ClusterMap, Env, Epoch, Fid, NodeId, TargetId, Timespec, Xid};
use weft_rpc::channel::Identity;
use weft_rpc::pb::{self, mds};
use weft_rpc::router::Router;
use weft_rpc::{Bulk, CallInfo, Message, Reply, Role, Service};
use weft_store::RocksKv;
use weft_store::kv::Profile;

struct Clock(Instant);

impl Env for Clock {
    fn now(&self) -> Timespec {
        Timespec::from_nanos(1_700_000_000_000_000_000 + self.0.elapsed().as_nanos() as i128)
    }
    fn monotonic(&self) -> Duration {
        self.0.elapsed()
    }
    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
    fn random(&self) -> u64 {
        self.0.elapsed().as_nanos() as u64
    }
}

const FILES: u64 = 100_000;

fn open(dir: PathBuf) -> Mds {
    let env = Arc::new(Clock(Instant::now()));
    let identity =
        Identity { role: Role::Server, client: ClientId(1 << 48), name: "bench".into(), key: None };
    let router = Router::new(identity, vec![], None, env.clone());
    let target = |index| Target {
        id: TargetId::ost(index),
        uuid: String::new(),
        node: NodeId(1),
        state: TargetState::Up,
        space: Space { total: 1 << 40, free: 1 << 39, ..Space::default() },
    };
    router.set_map(ClusterMap {
        epoch: Epoch(1),
        targets: (0..4).map(target).collect(),
        ..ClusterMap::default()
    });
    let kv = Arc::new(RocksKv::create(&dir, Profile::METADATA).expect("store"));
    let parts = Parts {
        kv,
        router: Arc::new(router),
        env,
        space: Box::new(Space::default),
        admit: Box::new(|_| Ok(())),
    };
    Mds::open(TargetId::mdt(0), 1, parts, Settings::default()).expect("target")
}

fn ask(mds: &Mds, xid: Xid, message: impl Message) -> Reply {
    let info = CallInfo {
        role: Role::Client,
        client: ClientId(1),
        xid,
        epoch: Epoch(1),
        target: TargetId::mdt(0),
        wire: xid != Xid::NONE,
    };
    mds.serve(&info, &message.into_request(), Bulk::None).expect("answer")
}

fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks = |i: usize| fields.get(i).and_then(|f| f.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}

fn phase(name: &str, threads: u64, work: impl Fn(u64, u64) + Sync) {
    let (start, cpu) = (Instant::now(), cpu_seconds());
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let work = &work;
            scope.spawn(move || (0..FILES / threads).for_each(|i| work(thread, i)));
        }
    });
    let (wall, cpu) = (start.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    println!(
        "{name:<24} {threads} thread(s) {:>9.0}/s {:>7.1} us CPU each",
        FILES as f64 / wall,
        cpu * 1e6 / FILES as f64
    );
}

fn main() {
    let base = std::env::args().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let cred = || Some(pb::Credentials { groups_known: true, ..Default::default() });
    for (threads, resendable) in [(1, false), (1, true), (2, false), (4, false)] {
        let scratch = tempfile::tempdir_in(&base).expect("directory");
        let mds = open(scratch.path().join("kv"));
        ask(&mds, Xid::NONE, mds::OpenSession::default());
        let dirs: Vec<u64> = (0..threads)
            .map(|t| {
                let (name, parent) = (format!("d{t}").into_bytes(), Fid::ROOT.0);
                let mkdir = mds::Mkdir { cred: cred(), parent, name, mode: 0o755, umask: 0 };
                match ask(&mds, Xid::NONE, mkdir) {
                    Reply::Mkdir(entry) => entry.attr.expect("attributes").fid,
                    _ => unreachable!(),
                }
            })
            .collect();
        let name = |i: u64| format!("file.{i}").into_bytes();
        let xid = |thread: u64, sequence: u64| match resendable {
            true => Xid::new(thread as u16, sequence + 1),
            false => Xid::NONE,
        };
        let label =
            |what: &str| format!("{what}{}", if resendable { ", as over a wire" } else { "" });
        phase(&label("mknod"), threads, |t, i| {
            let parent = dirs[t as usize];
            let mode = 0o100_644;
            let make =
                mds::Mknod { cred: cred(), parent, name: name(i), mode, ..Default::default() };
            ask(&mds, xid(t, i), make);
        });
        phase(&label("lookup"), threads, |t, i| {
            let look = mds::Lookup { cred: cred(), parent: dirs[t as usize], name: name(i) };
            ask(&mds, Xid::NONE, look);
        });
        phase(&label("unlink"), threads, |t, i| {
            let gone = mds::Unlink { cred: cred(), parent: dirs[t as usize], name: name(i) };
            ask(&mds, xid(t, FILES + i), gone);
        });
    }
}
