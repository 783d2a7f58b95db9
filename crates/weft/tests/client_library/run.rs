//! A run: the reference file system, the clients, and the choice of what comes next.

use crate::cluster::Cluster;
use crate::striped;
use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use weft_client::{Client, Ctx, OpenFile, OpenFlags};
use weft_model::{ErrorKind, Fid, Result};

/// The reference: inodes by number, never removed.
pub enum Node {
    File { data: Vec<u8>, nlink: u32 },
    Dir { entries: BTreeMap<Vec<u8>, usize>, parent: usize, gone: bool },
    Symlink(Vec<u8>),
}

pub struct Open {
    pub client: usize,
    pub file: OpenFile,
    pub node: usize,
    pub append: bool,
}

pub struct Run {
    pub rng: SmallRng,
    pub cluster: Cluster,
    pub clients: Vec<Arc<Client>>,
    pub nodes: Vec<Node>,
    pub fids: Vec<Fid>,
    pub opens: Vec<Open>,
    pub byte: u8,
}

/// Both succeed, or both fail for the same reason.
pub fn agree<T, U>(what: &str, real: Result<T>, wanted: Result<U, ErrorKind>) -> Option<(T, U)> {
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
    pub fn new(seed: u64) -> Run {
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

    pub fn client(&mut self) -> (usize, Arc<Client>) {
        let index = self.rng.random_range(0..self.clients.len());
        (index, self.clients[index].clone())
    }

    pub fn dir(&mut self) -> usize {
        let alive: Vec<usize> = (0..self.nodes.len())
            .filter(|&node| matches!(&self.nodes[node], Node::Dir { gone: false, .. }))
            .collect();
        alive[self.rng.random_range(0..alive.len())]
    }

    pub fn name(&mut self) -> Vec<u8> {
        vec![b'a' + self.rng.random_range(0..6)]
    }

    pub fn entries(&mut self, dir: usize) -> &mut BTreeMap<Vec<u8>, usize> {
        match &mut self.nodes[dir] {
            Node::Dir { entries, .. } => entries,
            _ => unreachable!("node {dir} is no directory"),
        }
    }

    pub fn find(&mut self, dir: usize, name: &[u8]) -> Option<usize> {
        self.entries(dir).get(name).copied()
    }

    pub fn data(&mut self, node: usize) -> &mut Vec<u8> {
        match &mut self.nodes[node] {
            Node::File { data, .. } => data,
            _ => unreachable!("node {node} is no file"),
        }
    }

    pub fn is_dir(&self, node: usize) -> bool {
        matches!(self.nodes[node], Node::Dir { .. })
    }

    pub fn is_empty_dir(&self, node: usize) -> bool {
        matches!(&self.nodes[node], Node::Dir { entries, .. } if entries.is_empty())
    }

    pub fn add(&mut self, dir: usize, name: &[u8], node: Node, fid: Fid) -> usize {
        let number = self.nodes.len();
        self.nodes.push(node);
        self.fids.push(fid);
        self.entries(dir).insert(name.to_vec(), number);
        number
    }

    pub fn drop_link(&mut self, node: usize) {
        match &mut self.nodes[node] {
            Node::File { nlink, .. } => *nlink -= 1,
            Node::Dir { gone, .. } => *gone = true,
            Node::Symlink(_) => {}
        }
    }

    pub fn fresh(&mut self, len: usize) -> Vec<u8> {
        self.byte = self.byte.wrapping_add(1).max(1);
        vec![self.byte; len]
    }

    pub fn step(&mut self) {
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

    /// Everything as both clients see it, then nothing left over when all is closed.
    pub fn finish(mut self) {
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
        // Replaced files stay a little.
        std::thread::sleep(Duration::from_millis(2200));
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
