//! The cluster map: which nodes and targets there are, in which state, and who owns which FIDs.
//!
//! The manager keeps it and raises its epoch with every change. Everybody else holds an immutable
//! snapshot and replaces it when a server says that it is out of date.

use crate::id::{Epoch, Fid, NodeId, TargetId, TargetKind};
use serde::{Deserialize, Serialize};

/// Whether a target can be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TargetState {
    /// Serves reads and writes.
    #[default]
    Up,
    /// No heartbeat; clients wait for it.
    Down,
    /// Serves what it has; nothing new is placed on it.
    Drain,
}

/// A server process.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Node {
    /// Its number.
    pub id: NodeId,
    /// Its name, unique in the cluster.
    pub name: String,
    /// Where it listens, `host:port` or `unix:/path`, best first.
    pub addresses: Vec<String>,
}

/// Capacity of a target, bytes and inodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Space {
    /// Bytes in all.
    pub total: u64,
    /// Bytes still free for use.
    pub free: u64,
    /// Inodes (objects on an OST) in all.
    pub inodes: u64,
    /// Inodes still free.
    pub inodes_free: u64,
}

/// A metadata or object storage target.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Target {
    /// Its name.
    pub id: TargetId,
    /// Identity of its superblock.
    pub uuid: String,
    /// The node that serves it now.
    pub node: NodeId,
    /// Its state.
    pub state: TargetState,
    /// Its capacity at the last heartbeat.
    pub space: Space,
}

/// A named set of OSTs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Pool {
    /// Its name.
    pub name: String,
    /// OST indices.
    pub targets: Vec<u16>,
}

/// A namespace with its root.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Volume {
    /// Its name.
    pub name: String,
    /// Its root directory.
    pub root: Fid,
}

/// FID sequences `first..=last` belong to an MDT.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SequenceRange {
    /// First sequence.
    pub first: u32,
    /// Last sequence, included.
    pub last: u32,
    /// Index of the MDT.
    pub mdt: u16,
}

/// One version of the map.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ClusterMap {
    /// Identity of the cluster.
    pub cluster: String,
    /// Version.
    pub epoch: Epoch,
    /// Server processes.
    pub nodes: Vec<Node>,
    /// Targets.
    pub targets: Vec<Target>,
    /// Pools.
    pub pools: Vec<Pool>,
    /// Namespaces.
    pub volumes: Vec<Volume>,
    /// Owners of FIDs.
    pub sequences: Vec<SequenceRange>,
}

impl ClusterMap {
    /// The target's entry.
    pub fn target(&self, id: TargetId) -> Option<&Target> {
        self.targets.iter().find(|target| target.id == id)
    }

    /// The node's entry.
    pub fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.iter().find(|node| node.id == id)
    }

    /// The node that serves a target.
    pub fn node_of(&self, id: TargetId) -> Option<&Node> {
        self.node(self.target(id)?.node)
    }

    /// The MDT that owns a FID.
    pub fn mdt_of(&self, fid: Fid) -> Option<TargetId> {
        let sequence = fid.sequence();
        let range = self.sequences.iter().find(|r| (r.first..=r.last).contains(&sequence))?;
        Some(TargetId::mdt(range.mdt))
    }

    /// All OSTs, by index.
    pub fn osts(&self) -> impl Iterator<Item = &Target> {
        self.targets.iter().filter(|target| target.id.kind == TargetKind::Ost)
    }

    /// All MDTs, by index.
    pub fn mdts(&self) -> impl Iterator<Item = &Target> {
        self.targets.iter().filter(|target| target.id.kind == TargetKind::Mdt)
    }

    /// A pool by name.
    pub fn pool(&self, name: &str) -> Option<&Pool> {
        self.pools.iter().find(|pool| pool.name == name)
    }
}
