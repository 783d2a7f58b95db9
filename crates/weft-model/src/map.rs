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
    /// The file system it is on: the same number for targets that share one; 0 if unknown.
    #[serde(default)]
    pub device: u64,
}

/// What targets of one kind add up to: those on one file system get an equal part of it each, so that it
/// is not counted several times.
pub fn divide<'a>(spaces: impl Iterator<Item = &'a mut Space>) {
    let mut spaces: Vec<&mut Space> = spaces.collect();
    let devices: Vec<u64> = spaces.iter().map(|space| space.device).collect();
    for space in spaces.iter_mut().filter(|space| space.device != 0) {
        let sharing = devices.iter().filter(|&&device| device == space.device).count() as u64;
        for figure in [&mut space.total, &mut space.free, &mut space.inodes, &mut space.inodes_free]
        {
            *figure /= sharing;
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_disk_is_divided_and_others_are_not() {
        let space = |total, device| Space { total, free: total / 2, device, ..Space::default() };
        let mut spaces = [space(120, 7), space(120, 7), space(50, 8), space(40, 0), space(40, 0)];
        divide(spaces.iter_mut());
        assert_eq!(spaces.map(|space| space.total), [60, 60, 50, 40, 40]);
        assert_eq!(spaces.map(|space| space.free), [30, 30, 25, 20, 20]);
    }
}
