//! The client library on real servers in one process: random operations against a reference file
//! system in memory, and what two clients see of each other.
//!
//! A failure prints its seed; `WEFT_SEED=n cargo test -p weft --test client_library` repeats it.

use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use weft_client::{
    AllocateMode, Client, ClientConfig, CreateArgs, Ctx, LockKind, LockRange, OpenFile, OpenFlags,
    Whence,
};
use weft_manager::{Manager, NodeAgent, Served};
use weft_mds::{Mds, Parts};
use weft_model::layout::{ComponentSpec, EOF, LayoutSpec};
use weft_model::map::Space;
use weft_model::{
    ClientId, Env, ErrorKind, Fid, FileType, Result, SetAttr, SetTime, TargetId, Timespec,
};
use weft_oss::Oss;
use weft_rpc::channel::Identity;
use weft_rpc::registry::Registry;
use weft_rpc::router::Patience;
use weft_rpc::{Role, Router};
use weft_store::{MemKv, MemObjects};

const OSTS: u16 = 3;
const STEPS: usize = 1500;
const MAX_SIZE: u64 = 60_000;

struct Clock(Instant);

impl Env for Clock {
    fn now(&self) -> Timespec {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        Timespec::from_nanos(since.as_nanos() as i128)
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

/// A cluster in this process, on stores in memory.
struct Cluster {
    registry: Arc<Registry>,
    env: Arc<dyn Env>,
    mds: Arc<Mds>,
    objects: Vec<Arc<MemObjects>>,
}

impl Cluster {
    fn start() -> Cluster {
        let env: Arc<dyn Env> = Arc::new(Clock(Instant::now()));
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
        let space = Space { total: 1 << 40, free: 1 << 40, inodes: 1 << 20, inodes_free: 1 << 20 };
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
        };
        let mds = Mds::open(TargetId::mdt(0), 1, parts, weft_mds::Settings::default()).unwrap();
        let mds = Arc::new(mds);
        registry.add(TargetId::mdt(0), mds.clone());
        Cluster { registry, env, mds, objects }
    }

    fn mount(&self) -> Arc<Client> {
        let registry = Some(self.registry.clone());
        Client::mount(ClientConfig::default(), registry, self.env.clone()).unwrap()
    }
}

/// Small stripes, and a first component of one object: transfers cross many objects.
fn striped() -> LayoutSpec {
    let first = ComponentSpec {
        end: 16_384,
        stripe_unit: 4096,
        stripe_count: 1,
        ..ComponentSpec::default()
    };
    let rest = ComponentSpec { end: EOF, stripe_count: 3, ..first.clone() };
    LayoutSpec { components: vec![first, rest] }
}

/// The reference: inodes by number, never removed.
enum Node {
    File { data: Vec<u8>, nlink: u32 },
    Dir { entries: BTreeMap<Vec<u8>, usize>, parent: usize, gone: bool },
    Symlink(Vec<u8>),
}

struct Open {
    client: usize,
    file: OpenFile,
    node: usize,
    append: bool,
}

struct Run {
    rng: SmallRng,
    cluster: Cluster,
    clients: Vec<Arc<Client>>,
    nodes: Vec<Node>,
    fids: Vec<Fid>,
    opens: Vec<Open>,
    byte: u8,
}

/// Both succeed, or both fail for the same reason.
fn agree<T, U>(what: &str, real: Result<T>, wanted: Result<U, ErrorKind>) -> Option<(T, U)> {
    match (real, wanted) {
        (Ok(real), Ok(wanted)) => Some((real, wanted)),
        (Err(real), Err(wanted)) => {
            assert_eq!(real.kind, wanted, "{what}: {real}");
            None
        }
        (Ok(_), Err(wanted)) => panic!("{what}: succeeded, should be {wanted:?}"),
        (Err(real), Ok(_)) => panic!("{what}: {real}"),
    }
}

impl Run {
    fn new(seed: u64) -> Run {
        let cluster = Cluster::start();
        let clients = vec![cluster.mount(), cluster.mount()];
        let root = clients[0].root();
        clients[0].set_layout(&Ctx::root(), root, &striped()).unwrap();
        let top = Node::Dir { entries: BTreeMap::new(), parent: 0, gone: false };
        Run {
            rng: SmallRng::seed_from_u64(seed),
            cluster,
            clients,
            nodes: vec![top],
            fids: vec![root],
            opens: Vec::new(),
            byte: 0,
        }
    }

    fn client(&mut self) -> (usize, Arc<Client>) {
        let index = self.rng.random_range(0..self.clients.len());
        (index, self.clients[index].clone())
    }

    fn dir(&mut self) -> usize {
        let alive: Vec<usize> = (0..self.nodes.len())
            .filter(|&node| matches!(&self.nodes[node], Node::Dir { gone: false, .. }))
            .collect();
        alive[self.rng.random_range(0..alive.len())]
    }

    fn name(&mut self) -> Vec<u8> {
        vec![b'a' + self.rng.random_range(0..6)]
    }

    fn entries(&mut self, dir: usize) -> &mut BTreeMap<Vec<u8>, usize> {
        match &mut self.nodes[dir] {
            Node::Dir { entries, .. } => entries,
            _ => unreachable!("node {dir} is no directory"),
        }
    }

    fn find(&mut self, dir: usize, name: &[u8]) -> Option<usize> {
        self.entries(dir).get(name).copied()
    }

    fn data(&mut self, node: usize) -> &mut Vec<u8> {
        match &mut self.nodes[node] {
            Node::File { data, .. } => data,
            _ => unreachable!("node {node} is no file"),
        }
    }

    fn is_dir(&self, node: usize) -> bool {
        matches!(self.nodes[node], Node::Dir { .. })
    }

    fn is_empty_dir(&self, node: usize) -> bool {
        matches!(&self.nodes[node], Node::Dir { entries, .. } if entries.is_empty())
    }

    fn add(&mut self, dir: usize, name: &[u8], node: Node, fid: Fid) -> usize {
        let number = self.nodes.len();
        self.nodes.push(node);
        self.fids.push(fid);
        self.entries(dir).insert(name.to_vec(), number);
        number
    }

    fn drop_link(&mut self, node: usize) {
        match &mut self.nodes[node] {
            Node::File { nlink, .. } => *nlink -= 1,
            Node::Dir { gone, .. } => *gone = true,
            Node::Symlink(_) => {}
        }
    }

    fn fresh(&mut self, len: usize) -> Vec<u8> {
        self.byte = self.byte.wrapping_add(1).max(1);
        vec![self.byte; len]
    }

    fn step(&mut self) {
        match self.rng.random_range(0..100) {
            0..8 => self.mkdir(),
            8..20 => self.create(),
            20..26 => self.open(),
            26..45 => self.write(),
            45..60 => self.read(),
            60..66 => self.close(),
            66..71 => self.truncate(),
            71..77 => self.unlink(),
            77..80 => self.rmdir(),
            80..86 => self.rename(),
            86..89 => self.link(),
            89..91 => self.symlink(),
            91..94 => self.lookup(),
            94..96 => self.allocate(),
            96..98 => self.readdir(),
            _ => self.sync(),
        }
    }

    fn mkdir(&mut self) {
        let ((_, client), dir, name) = (self.client(), self.dir(), self.name());
        let real = client.mkdir(&Ctx::root(), self.fids[dir], &name, 0o755);
        let wanted = self.find(dir, &name).map_or(Ok(()), |_| Err(ErrorKind::Exists));
        if let Some((attr, ())) = agree("mkdir", real, wanted) {
            let node = Node::Dir { entries: BTreeMap::new(), parent: dir, gone: false };
            self.add(dir, &name, node, attr.fid);
        }
    }

    fn symlink(&mut self) {
        let ((_, client), dir, name) = (self.client(), self.dir(), self.name());
        let target = self.fresh(20);
        let real = client.symlink(&Ctx::root(), self.fids[dir], &name, &target);
        let wanted = self.find(dir, &name).map_or(Ok(()), |_| Err(ErrorKind::Exists));
        if let Some((attr, ())) = agree("symlink", real, wanted) {
            assert_eq!((attr.kind, attr.size), (FileType::Symlink, 20));
            self.add(dir, &name, Node::Symlink(target), attr.fid);
        }
    }

    fn create(&mut self) {
        let ((index, client), dir, name) = (self.client(), self.dir(), self.name());
        let (exclusive, cuts) = (self.rng.random_bool(0.3), self.rng.random_bool(0.2));
        let append = self.rng.random_bool(0.2);
        let mut flags = OpenFlags::READ | OpenFlags::WRITE;
        if cuts {
            flags = flags | OpenFlags::TRUNCATE;
        }
        if append {
            flags = flags | OpenFlags::APPEND;
        }
        let args = CreateArgs { mode: 0o644, flags, exclusive, layout: None };
        let real = client.create(&Ctx::root(), self.fids[dir], &name, &args);
        let wanted = match self.find(dir, &name) {
            None => Ok(None),
            Some(_) if exclusive => Err(ErrorKind::Exists),
            Some(node) => match self.nodes[node] {
                Node::File { .. } => Ok(Some(node)),
                Node::Dir { .. } => Err(ErrorKind::IsDir),
                Node::Symlink(_) => Err(ErrorKind::Loop),
            },
        };
        let Some((real, found)) = agree("create", real, wanted) else { return };
        assert_eq!(real.created, found.is_none());
        let node = found.unwrap_or_else(|| {
            let file = Node::File { data: Vec::new(), nlink: 1 };
            self.add(dir, &name, file, real.file.fid())
        });
        if cuts {
            self.data(node).clear();
        }
        assert_eq!(real.attr.size, self.data(node).len() as u64, "size at create");
        self.opens.push(Open { client: index, file: real.file, node, append });
    }

    fn open(&mut self) {
        let ((index, client), dir, name) = (self.client(), self.dir(), self.name());
        let Some(node) = self.find(dir, &name) else { return };
        if let Node::File { .. } = self.nodes[node] {
            let flags = OpenFlags::READ | OpenFlags::WRITE;
            let file = client.open(&Ctx::root(), self.fids[node], flags).unwrap();
            self.opens.push(Open { client: index, file, node, append: false });
        }
    }

    /// A random open file and a random range in it.
    fn pick(&mut self) -> Option<(usize, u64, usize)> {
        if self.opens.is_empty() {
            return None;
        }
        let open = self.rng.random_range(0..self.opens.len());
        let offset = self.rng.random_range(0..MAX_SIZE);
        let longest = if self.rng.random_bool(0.5) { 100 } else { 20_000 };
        Some((open, offset, self.rng.random_range(1..longest)))
    }

    fn write(&mut self) {
        let Some((open, mut offset, len)) = self.pick() else { return };
        let data = self.fresh(len);
        let Open { client, ref file, node, append } = self.opens[open];
        let client = self.clients[client].clone();
        assert_eq!(client.write(&Ctx::root(), file, offset, &data).unwrap(), len);
        let content = self.data(node);
        if append {
            offset = content.len() as u64;
        }
        let end = offset as usize + len;
        content.resize(content.len().max(end), 0);
        content[offset as usize..end].copy_from_slice(&data);
    }

    fn read(&mut self) {
        let Some((open, offset, len)) = self.pick() else { return };
        let Open { client, ref file, node, .. } = self.opens[open];
        let mut buf = vec![0xee; len];
        let got = self.clients[client].read(&Ctx::root(), file, offset, &mut buf).unwrap();
        let content = self.data(node);
        let from = content.len().min(offset as usize);
        let wanted = &content[from..content.len().min(from + len)];
        assert_eq!(got, wanted.len(), "length read at {offset}");
        assert!(&buf[..got] == wanted, "data read at {offset}+{len}");
    }

    fn close(&mut self) {
        let Some((open, ..)) = self.pick() else { return };
        let open = self.opens.swap_remove(open);
        self.clients[open.client].close(&Ctx::root(), &open.file, None).unwrap();
    }

    fn truncate(&mut self) {
        let Some((open, size, _)) = self.pick() else { return };
        let Open { client, ref file, node, .. } = self.opens[open];
        let by_handle = self.rng.random_bool(0.5).then_some(file);
        let set = SetAttr { size: Some(size), ..SetAttr::default() };
        let client = self.clients[client].clone();
        let attr = client.setattr(&Ctx::root(), self.fids[node], &set, by_handle).unwrap();
        assert_eq!(attr.size, size);
        self.data(node).resize(size as usize, 0);
    }

    fn allocate(&mut self) {
        let Some((open, offset, len)) = self.pick() else { return };
        let modes = [
            AllocateMode::Reserve { keep_size: false },
            AllocateMode::Reserve { keep_size: true },
            AllocateMode::Zero { keep_size: false },
            AllocateMode::Punch,
        ];
        let mode = modes[self.rng.random_range(0..modes.len())];
        let Open { client, ref file, node, .. } = self.opens[open];
        let client = self.clients[client].clone();
        client.allocate(&Ctx::root(), file, mode, offset, len as u64).unwrap();
        let (content, end) = (self.data(node), offset as usize + len);
        let extends = matches!(
            mode,
            AllocateMode::Reserve { keep_size: false } | AllocateMode::Zero { keep_size: false }
        );
        if extends {
            content.resize(content.len().max(end), 0);
        }
        if !matches!(mode, AllocateMode::Reserve { .. }) {
            let (from, to) = (content.len().min(offset as usize), content.len().min(end));
            content[from..to].fill(0);
        }
    }

    fn unlink(&mut self) {
        let ((_, client), dir, name) = (self.client(), self.dir(), self.name());
        let real = client.unlink(&Ctx::root(), self.fids[dir], &name);
        let wanted = match self.find(dir, &name) {
            None => Err(ErrorKind::NotFound),
            Some(node) if self.is_dir(node) => Err(ErrorKind::IsDir),
            Some(node) => Ok(node),
        };
        if let Some(((), node)) = agree("unlink", real, wanted) {
            self.entries(dir).remove(&name);
            self.drop_link(node);
        }
    }

    fn rmdir(&mut self) {
        let ((_, client), dir, name) = (self.client(), self.dir(), self.name());
        let real = client.rmdir(&Ctx::root(), self.fids[dir], &name);
        let wanted = match self.find(dir, &name) {
            None => Err(ErrorKind::NotFound),
            Some(node) if !self.is_dir(node) => Err(ErrorKind::NotDir),
            Some(node) if !self.is_empty_dir(node) => Err(ErrorKind::NotEmpty),
            Some(node) => Ok(node),
        };
        if let Some(((), node)) = agree("rmdir", real, wanted) {
            self.entries(dir).remove(&name);
            self.drop_link(node);
        }
    }

    /// Whether `dir` is `top` or below it.
    fn is_below(&self, mut dir: usize, top: usize) -> bool {
        loop {
            match &self.nodes[dir] {
                _ if dir == top => return true,
                Node::Dir { parent, .. } if *parent != dir => dir = *parent,
                _ => return false,
            }
        }
    }

    fn rename(&mut self) {
        let (_, client) = self.client();
        let (from, name, to, new_name) = (self.dir(), self.name(), self.dir(), self.name());
        let (from_fid, to_fid) = (self.fids[from], self.fids[to]);
        let real = client.rename(&Ctx::root(), from_fid, &name, to_fid, &new_name, 0);
        let (moved, replaced) = (self.find(from, &name), self.find(to, &new_name));
        let wanted = match (moved, replaced) {
            (None, _) => Err(ErrorKind::NotFound),
            (Some(moved), _) if self.is_dir(moved) && self.is_below(to, moved) => {
                Err(ErrorKind::Invalid)
            }
            (Some(moved), Some(old)) if moved == old => Ok(None),
            (Some(moved), Some(old)) => match (self.is_dir(moved), self.is_dir(old)) {
                (true, false) => Err(ErrorKind::NotDir),
                (false, true) => Err(ErrorKind::IsDir),
                (true, true) if !self.is_empty_dir(old) => Err(ErrorKind::NotEmpty),
                _ => Ok(Some(moved)),
            },
            (Some(moved), None) => Ok(Some(moved)),
        };
        let Some(((), Some(moved))) = agree("rename", real, wanted) else { return };
        if let Some(old) = replaced {
            self.drop_link(old);
        }
        self.entries(from).remove(&name);
        self.entries(to).insert(new_name, moved);
        if let Node::Dir { parent, .. } = &mut self.nodes[moved] {
            *parent = to;
        }
    }

    fn link(&mut self) {
        let (_, client) = self.client();
        let (from, name, to, new_name) = (self.dir(), self.name(), self.dir(), self.name());
        let Some(node) = self.find(from, &name) else { return };
        let Node::File { .. } = self.nodes[node] else { return };
        let real = client.link(&Ctx::root(), self.fids[node], self.fids[to], &new_name);
        let wanted = self.find(to, &new_name).map_or(Ok(()), |_| Err(ErrorKind::Exists));
        if agree("link", real, wanted).is_some() {
            self.entries(to).insert(new_name, node);
            if let Node::File { nlink, .. } = &mut self.nodes[node] {
                *nlink += 1;
            }
        }
    }

    fn lookup(&mut self) {
        let ((_, client), dir, name) = (self.client(), self.dir(), self.name());
        let real = client.lookup(&Ctx::root(), self.fids[dir], &name);
        let wanted = self.find(dir, &name).ok_or(ErrorKind::NotFound);
        let Some((attr, node)) = agree("lookup", real, wanted) else { return };
        assert_eq!(attr.fid, self.fids[node]);
        match &self.nodes[node] {
            Node::File { data, nlink } => {
                assert_eq!((attr.size, attr.nlink), (data.len() as u64, *nlink), "of {name:?}");
            }
            Node::Dir { .. } => assert_eq!(attr.kind, FileType::Directory),
            Node::Symlink(target) => {
                assert_eq!(&client.readlink(&Ctx::root(), attr.fid).unwrap(), target);
            }
        }
    }

    fn readdir(&mut self) {
        let ((_, client), dir) = (self.client(), self.dir());
        let (ctx, few) = (Ctx::root(), self.rng.random_range(1..4));
        let handle = client.opendir(&ctx, self.fids[dir]).unwrap();
        let (mut seen, mut position) = (BTreeMap::new(), 0);
        loop {
            let (mut taken, after) = (0, position);
            let mut take = |entry: &weft_client::DirEntry| {
                if taken == few {
                    return false;
                }
                taken += 1;
                position = entry.position;
                assert!(seen.insert(entry.name.clone(), entry.fid).is_none(), "seen twice");
                true
            };
            client.readdir(&ctx, &handle, after, false, &mut take).unwrap();
            if taken == 0 {
                break;
            }
        }
        client.closedir(&ctx, &handle).unwrap();
        let Node::Dir { parent, .. } = self.nodes[dir] else { unreachable!() };
        assert_eq!(seen.remove(&b"."[..]), Some(self.fids[dir]));
        assert_eq!(seen.remove(&b".."[..]), Some(self.fids[parent]));
        let wanted: BTreeMap<Vec<u8>, usize> = self.entries(dir).clone();
        let wanted: BTreeMap<Vec<u8>, Fid> =
            wanted.into_iter().map(|(name, node)| (name, self.fids[node])).collect();
        assert_eq!(seen, wanted);
    }

    fn sync(&mut self) {
        if let Some((open, ..)) = self.pick() {
            let open = &self.opens[open];
            self.clients[open.client].fsync(&Ctx::root(), &open.file, false).unwrap();
        }
        self.cluster.mds.tick();
    }

    /// Everything as both clients see it, then nothing left over when all is closed.
    fn finish(mut self) {
        let ctx = Ctx::root();
        for number in 0..self.nodes.len() {
            let fid = self.fids[number];
            let Node::File { data, nlink: 1.. } = &self.nodes[number] else { continue };
            for client in &self.clients {
                assert_eq!(client.getattr(&ctx, fid).unwrap().size, data.len() as u64);
                let file = client.open(&ctx, fid, OpenFlags::READ).unwrap();
                let mut buf = vec![0xee; data.len() + 10];
                assert_eq!(client.read(&ctx, &file, 0, &mut buf).unwrap(), data.len());
                assert!(buf[..data.len()] == data[..], "contents of {fid}");
                client.close(&ctx, &file, None).unwrap();
            }
        }
        for open in self.opens.drain(..) {
            self.clients[open.client].close(&ctx, &open.file, None).unwrap();
        }
        self.clients.iter().for_each(|client| client.unmount().unwrap());
        self.cluster.mds.tick();
        let alive: BTreeSet<Fid> = self
            .nodes
            .iter()
            .zip(&self.fids)
            .filter_map(|(node, &fid)| matches!(node, Node::File { nlink: 1.., .. }).then_some(fid))
            .collect();
        for store in &self.cluster.objects {
            use weft_store::ObjectStore;
            for object in store.list(None, 1 << 20).unwrap() {
                assert!(alive.contains(&object.fid), "object {object} left over");
            }
        }
        assert_eq!(self.cluster.mds.counts(), (0, 0, 0), "sessions, opens, locks left");
    }
}

#[test]
fn agrees_with_a_reference_file_system() {
    let given = std::env::var("WEFT_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = given.map_or(1..13, |seed: u64| seed..seed + 1);
    for seed in seeds {
        println!("seed {seed}");
        let mut run = Run::new(seed);
        (0..STEPS).for_each(|_| run.step());
        run.finish();
    }
}

fn two() -> (Cluster, Arc<Client>, Arc<Client>) {
    let cluster = Cluster::start();
    let (a, b) = (cluster.mount(), cluster.mount());
    (cluster, a, b)
}

fn create(client: &Client, name: &[u8], flags: OpenFlags) -> OpenFile {
    let args = CreateArgs { mode: 0o644, flags, ..CreateArgs::default() };
    client.create(&Ctx::root(), client.root(), name, &args).unwrap().file
}

#[test]
fn appends_of_two_clients_fall_side_by_side() {
    let (_cluster, a, b) = two();
    let flags = OpenFlags::READ | OpenFlags::WRITE | OpenFlags::APPEND;
    const EACH: usize = 200;
    std::thread::scope(|scope| {
        for (client, byte) in [(&a, 1u8), (&b, 2), (&a, 3), (&b, 4)] {
            scope.spawn(move || {
                let file = create(client, b"log", flags);
                for _ in 0..EACH {
                    client.write(&Ctx::root(), &file, 0, &[byte; 100]).unwrap();
                }
                client.close(&Ctx::root(), &file, None).unwrap();
            });
        }
    });
    let file = create(&a, b"log", OpenFlags::READ);
    let mut buf = vec![0; 4 * EACH * 100 + 1];
    assert_eq!(a.read(&Ctx::root(), &file, 0, &mut buf).unwrap(), 4 * EACH * 100);
    let mut counts = [0; 5];
    for record in buf[..4 * EACH * 100].chunks(100) {
        assert!(record.iter().all(|&byte| byte == record[0]), "a torn record");
        counts[record[0] as usize] += 1;
    }
    assert_eq!(counts, [0, EACH, EACH, EACH, EACH]);
}

#[test]
fn a_waiting_lock_is_granted_in_turn_and_circles_are_found() {
    let (_cluster, a, b) = two();
    let flags = OpenFlags::READ | OpenFlags::WRITE;
    let (in_a, in_b) = (create(&a, b"f", flags), create(&b, b"f", flags));
    let lock = |kind, start| LockRange { owner: 1, flock: false, kind, start, end: start, pid: 1 };
    let ctx = Ctx::root;
    a.lock(&ctx(), &in_a, &lock(LockKind::Write, 0), false).unwrap();
    b.lock(&ctx(), &in_b, &lock(LockKind::Write, 1), false).unwrap();
    let held = b.test_lock(&ctx(), &in_b, &lock(LockKind::Read, 0)).unwrap().unwrap();
    assert_eq!((held.kind, held.start), (LockKind::Write, 0));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| b.lock(&ctx(), &in_b, &lock(LockKind::Write, 0), true));
        std::thread::sleep(Duration::from_millis(50));
        let circle = a.lock(&ctx(), &in_a, &lock(LockKind::Write, 1), true).unwrap_err();
        assert_eq!(circle.kind, ErrorKind::Deadlock);
        a.flush(&ctx(), &in_a, 1).unwrap();
        waiting.join().unwrap().unwrap();
    });
}

#[test]
fn times_set_by_hand_survive_closing() {
    let (_cluster, a, b) = two();
    let file = create(&a, b"f", OpenFlags::WRITE);
    a.write(&Ctx::root(), &file, 0, b"data").unwrap();
    let then = Timespec { secs: 1_000_000, nanos: 5 };
    let set = SetAttr { mtime: Some(SetTime::At(then)), ..SetAttr::default() };
    assert_eq!(a.setattr(&Ctx::root(), file.fid(), &set, Some(&file)).unwrap().mtime, then);
    a.close(&Ctx::root(), &file, None).unwrap();
    let seen = b.lookup(&Ctx::root(), b.root(), b"f").unwrap();
    assert_eq!((seen.mtime, seen.size, seen.blocks), (then, 4, 8));
}

#[test]
fn holes_are_found_across_stripes_and_ranges_are_copied() {
    let (_cluster, a, _b) = two();
    let ctx = Ctx::root();
    a.set_layout(&ctx, a.root(), &striped()).unwrap();
    let flags = OpenFlags::READ | OpenFlags::WRITE;
    let (file, copy) = (create(&a, b"f", flags), create(&a, b"g", flags));
    a.write(&ctx, &file, 40_960, &[7; 8192]).unwrap();
    let size = SetAttr { size: Some(100_000), ..SetAttr::default() };
    a.setattr(&ctx, file.fid(), &size, None).unwrap();
    assert_eq!(a.seek(&ctx, &file, 0, Whence::Hole).unwrap(), 0);
    assert_eq!(a.seek(&ctx, &file, 0, Whence::Data).unwrap(), 40_960);
    assert_eq!(a.seek(&ctx, &file, 40_960, Whence::Hole).unwrap(), 49_152);
    let none = a.seek(&ctx, &file, 49_152, Whence::Data).unwrap_err();
    assert_eq!(none.kind, ErrorKind::NoSuchOffset);
    assert_eq!(a.copy_range(&ctx, (&file, 40_000), (&copy, 0), 1 << 30).unwrap(), 60_000);
    let mut buf = vec![0; 70_000];
    assert_eq!(a.read(&ctx, &copy, 0, &mut buf).unwrap(), 60_000);
    assert!(buf[960..9152].iter().all(|&byte| byte == 7) && buf[959] == 0 && buf[9152] == 0);
    assert!(a.statfs(&ctx).unwrap().bytes_free > 0);
}
