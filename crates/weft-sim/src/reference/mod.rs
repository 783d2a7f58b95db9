//! The reference: what a file system has to look like from outside, kept in memory.
//!
//! A [`Tree`] is a directory of the simulated file system with all below it. One client at a time
//! works in a tree, with another after it, while others work in other trees: so the reference always
//! knows what must come out, and the servers still have several things to do at once.

mod data;
mod names;
mod stream;

use crate::kept::Kept;
use crate::world::World;
use std::collections::BTreeMap;
use std::sync::Arc;
use weft_client::{Client, Ctx, OpenFile};
use weft_model::{ErrorKind, Fid, Result};

/// Numbers of the step that change nothing.
const LOOKS: std::ops::Range<usize> = 97..120;

/// A client at work.
#[derive(Clone)]
pub struct Hand {
    /// Where it lives.
    pub world: Arc<World>,
    /// Its mount.
    pub client: Arc<Client>,
    /// The number of its process.
    pub number: u64,
    /// What it keeps.
    pub kept: Arc<Kept>,
}

/// An inode of the reference; none is ever removed.
#[derive(Clone, Debug)]
pub enum Node {
    /// A regular file.
    File {
        /// Its contents.
        data: Vec<u8>,
        /// Its names.
        nlink: u32,
        /// The contents at the last fsync and after each change since; empty if never synced.
        images: Vec<Vec<u8>>,
    },
    /// A directory.
    Dir {
        /// Names and the numbers of their nodes.
        entries: BTreeMap<Vec<u8>, usize>,
        /// The node it is in.
        parent: usize,
        /// It was removed.
        gone: bool,
    },
    /// A symbolic link.
    Symlink(Vec<u8>),
}

/// An open file.
pub struct Open {
    client: u64,
    file: OpenFile,
    node: usize,
    append: bool,
}

/// A directory with all below it, and who has what open in it.
pub struct Tree {
    /// Its number among the trees.
    pub number: usize,
    nodes: Vec<Node>,
    fids: Vec<Fid>,
    opens: Vec<Open>,
    readers: Vec<stream::Reader>,
    byte: u8,
    /// What the power may take.
    pub history: Vec<Moment>,
    /// When the last fsync that has returned was asked for, in events.
    pub synced: u64,
}

/// The names of a tree at some time: path, inode, target of a symbolic link.
pub type Names = BTreeMap<Vec<u8>, (Fid, Option<Vec<u8>>)>;

/// A change of names.
pub struct Moment {
    /// When it was asked for and answered, in events.
    pub span: (u64, u64),
    /// The names after it.
    pub names: Names,
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

fn ctx() -> Ctx<'static> {
    Ctx::root()
}

impl Hand {
    fn below(&self, bound: usize) -> usize {
        self.world.below(bound as u64) as usize
    }

    fn one_in(&self, n: u64) -> bool {
        self.world.one_in(n)
    }

    /// Leaves. Servers that do not answer soon are left to the lease.
    pub fn unmount(&self) {
        self.kept.end();
        if let Err(error) = self.client.unmount() {
            let legal = matches!(error.kind, ErrorKind::TimedOut | ErrorKind::NoSession);
            assert!(legal, "unmount: {error}");
        }
    }

    /// The answer to what must not fail.
    pub fn must<T>(&self, what: &str, result: Result<T>) -> T {
        result.unwrap_or_else(|error| panic!("{what}: {error}"))
    }
}

impl Tree {
    /// A new, empty directory in the root.
    pub fn new(hand: &Hand, number: usize) -> Tree {
        let name = format!("tree{number}");
        let begun = hand.world.digest().1;
        let attr = hand.client.mkdir(&ctx(), hand.client.root(), name.as_bytes(), 0o755);
        let fid = hand.must("make a tree", attr).fid;
        let top = Node::Dir { entries: BTreeMap::new(), parent: 0, gone: false };
        let mut tree = Tree {
            number,
            nodes: vec![top],
            fids: vec![fid],
            opens: Vec::new(),
            readers: Vec::new(),
            byte: 0,
            history: vec![Moment { span: (0, 0), names: Names::new() }],
            synced: 0,
        };
        tree.remember(begun, hand.world.digest().1);
        tree
    }

    /// One random operation by a client.
    pub fn step(&mut self, hand: &Hand) {
        let begun = hand.world.digest().1;
        let what = hand.below(LOOKS.end);
        if !LOOKS.contains(&what) {
            hand.kept.forget(&self.fids);
        }
        match what {
            0..8 => self.mkdir(hand),
            8..20 => self.create(hand),
            20..26 => self.open(hand),
            26..44 => self.write(hand),
            44..58 if hand.world.plan.reads_ahead && hand.one_in(2) => self.stream(hand),
            44..58 => self.read(hand),
            58..64 => self.close(hand),
            64..69 => self.truncate(hand),
            69..75 => self.unlink(hand),
            75..78 => self.rmdir(hand),
            78..85 => self.rename(hand),
            85..88 => self.link(hand),
            88..90 => self.symlink(hand),
            90..92 => self.allocate(hand),
            92..94 => self.readdir(hand),
            94..97 => self.sync(hand),
            // Several, so that there is something to keep.
            _ => (0..6).for_each(|_| self.lookup(hand)),
        }
        if hand.world.plan.power {
            self.remember(begun, hand.world.digest().1);
        }
    }

    /// Whether a client had something open here that is no more: what it wrote last may have gone with it.
    pub fn was_left_open(&self, is_alive: impl Fn(u64) -> bool) -> bool {
        self.opens.iter().any(|open| !is_alive(open.client))
    }

    /// Forgets what a client had open that is no more.
    pub fn forget_dead(&mut self, is_alive: impl Fn(u64) -> bool) {
        self.opens.retain(|open| is_alive(open.client));
        self.readers.retain(|reader| is_alive(reader.client));
    }

    /// Closes everything that a client has open.
    pub fn close_all(&mut self, hand: &Hand) {
        let (own, others) = self.opens.drain(..).partition(|open| open.client == hand.number);
        self.opens = others;
        let own: Vec<Open> = own;
        for open in own {
            hand.must("close", hand.client.close(&ctx(), &open.file, None));
        }
        self.close_readers(hand);
    }

    fn remember(&mut self, begun: u64, ended: u64) {
        let names = self.names();
        if self.history.last().is_none_or(|last| last.names != names) {
            self.history.push(Moment { span: (begun, ended), names });
        }
    }

    /// All names, with the path from the root of the file system.
    pub fn names(&self) -> Names {
        let mut names = Names::new();
        let mut to_visit = vec![(format!("tree{}", self.number).into_bytes(), 0)];
        while let Some((path, node)) = to_visit.pop() {
            let link = match &self.nodes[node] {
                Node::Symlink(target) => Some(target.clone()),
                _ => None,
            };
            if let Node::Dir { entries, .. } = &self.nodes[node] {
                let below =
                    entries.iter().map(|(name, &node)| ([&path, &b"/"[..], name].concat(), node));
                to_visit.extend(below);
            }
            names.insert(path, (self.fids[node], link));
        }
        names
    }

    /// Every regular file with a name: its inode and contents, and what it may be after a power cut.
    pub fn files(&self) -> impl Iterator<Item = (Fid, &Vec<u8>, &Vec<Vec<u8>>)> {
        self.nodes.iter().zip(&self.fids).filter_map(|(node, &fid)| match node {
            Node::File { data, nlink: 1.., images } => Some((fid, data, images)),
            _ => None,
        })
    }
}
