//! Between the message types and the words of the model. Decoding checks what the model demands.

use crate::pb::{self, manager};
use weft_model::layout::{Component, ComponentSpec, Geometry, Layout, LayoutSpec, Pattern};
use weft_model::map::{ClusterMap, Node, Pool, SequenceRange, Space, Target, TargetState, Volume};
use weft_model::{
    Attr, Credentials, Epoch, ErrorKind, Fid, FileType, FsError, NodeId, ObjectId, Result,
    TargetId, Timespec,
};

fn missing(what: &'static str) -> FsError {
    FsError::new(ErrorKind::Protocol, "decode message").on(what)
}

impl From<Timespec> for pb::Time {
    fn from(time: Timespec) -> pb::Time {
        pb::Time { secs: time.secs, nanos: time.nanos }
    }
}

impl From<pb::Time> for Timespec {
    fn from(time: pb::Time) -> Timespec {
        Timespec { secs: time.secs, nanos: time.nanos.min(999_999_999) }
    }
}

impl From<&Credentials> for pb::Credentials {
    fn from(cred: &Credentials) -> pb::Credentials {
        pb::Credentials {
            uid: cred.uid,
            gid: cred.gid,
            groups: cred.groups.clone().unwrap_or_default(),
            groups_known: cred.groups.is_some(),
        }
    }
}

impl From<pb::Credentials> for Credentials {
    fn from(cred: pb::Credentials) -> Credentials {
        let groups = cred.groups_known.then_some(cred.groups);
        Credentials { uid: cred.uid, gid: cred.gid, groups }
    }
}

impl From<&Attr> for pb::Attr {
    fn from(attr: &Attr) -> pb::Attr {
        pb::Attr {
            fid: attr.fid.0,
            mode: attr.kind.mode_bits() | attr.mode,
            nlink: attr.nlink,
            uid: attr.uid,
            gid: attr.gid,
            size: attr.size,
            blocks: attr.blocks,
            rdev: attr.rdev,
            atime: Some(attr.atime.into()),
            mtime: Some(attr.mtime.into()),
            ctime: Some(attr.ctime.into()),
            btime: Some(attr.btime.into()),
            change: attr.change,
        }
    }
}

impl TryFrom<pb::Attr> for Attr {
    type Error = FsError;

    fn try_from(attr: pb::Attr) -> Result<Attr> {
        Ok(Attr {
            fid: Fid(attr.fid),
            kind: FileType::from_mode(attr.mode).ok_or_else(|| missing("file type"))?,
            mode: attr.mode & 0o7777,
            nlink: attr.nlink,
            uid: attr.uid,
            gid: attr.gid,
            size: attr.size,
            blocks: attr.blocks,
            rdev: attr.rdev,
            atime: attr.atime.unwrap_or_default().into(),
            mtime: attr.mtime.unwrap_or_default().into(),
            ctime: attr.ctime.unwrap_or_default().into(),
            btime: attr.btime.unwrap_or_default().into(),
            change: attr.change,
        })
    }
}

impl From<ObjectId> for pb::oss::Object {
    fn from(id: ObjectId) -> pb::oss::Object {
        pb::oss::Object { fid: id.fid.0, index: id.index }
    }
}

impl From<pb::oss::Object> for ObjectId {
    fn from(object: pb::oss::Object) -> ObjectId {
        ObjectId { fid: Fid(object.fid), index: object.index }
    }
}

/// The object of a request to an OST.
///
/// # Errors
/// `Protocol` when it is missing.
pub fn object(object: Option<pb::oss::Object>) -> Result<ObjectId> {
    object.map(ObjectId::from).ok_or_else(|| missing("object"))
}

fn pattern_to_wire(pattern: Pattern) -> (u32, u32, u32) {
    match pattern {
        Pattern::Stripe => (0, 0, 0),
        Pattern::Mirror(copies) => (1, copies as u32, 0),
        Pattern::Ec(k, m) => (2, k as u32, m as u32),
    }
}

fn pattern_from_wire(pattern: u32, k: u32, m: u32) -> Result<Pattern> {
    let byte = |n: u32| u8::try_from(n).map_err(|_| missing("pattern"));
    match pattern {
        0 => Ok(Pattern::Stripe),
        1 => Ok(Pattern::Mirror(byte(k)?)),
        2 => Ok(Pattern::Ec(byte(k)?, byte(m)?)),
        _ => Err(missing("pattern")),
    }
}

fn indices(targets: &[u32]) -> Result<Vec<u16>> {
    targets.iter().map(|&t| u16::try_from(t).map_err(|_| missing("target index"))).collect()
}

impl From<&Layout> for pb::Layout {
    fn from(layout: &Layout) -> pb::Layout {
        let component = |c: &Component| {
            let (pattern, pattern_k, pattern_m) = pattern_to_wire(c.pattern);
            pb::Component {
                id: c.id as u32,
                start: c.start,
                end: c.end,
                pattern,
                pattern_k,
                pattern_m,
                stripe_unit: c.geometry.stripe_unit,
                group_width: c.geometry.group_width,
                group_depth: c.geometry.group_depth,
                targets: c.targets.iter().map(|&t| t as u32).collect(),
            }
        };
        pb::Layout {
            version: layout.version,
            components: layout.components.iter().map(component).collect(),
        }
    }
}

impl TryFrom<pb::Layout> for Layout {
    type Error = FsError;

    fn try_from(layout: pb::Layout) -> Result<Layout> {
        let component = |c: pb::Component| {
            Ok(Component {
                id: u16::try_from(c.id).map_err(|_| missing("component id"))?,
                start: c.start,
                end: c.end,
                pattern: pattern_from_wire(c.pattern, c.pattern_k, c.pattern_m)?,
                geometry: Geometry {
                    stripe_unit: c.stripe_unit,
                    group_width: c.group_width,
                    group_depth: c.group_depth,
                },
                targets: indices(&c.targets)?,
            })
        };
        let components: Result<Vec<_>> = layout.components.into_iter().map(component).collect();
        let layout = Layout { version: layout.version, components: components? };
        layout.check()?;
        Ok(layout)
    }
}

impl From<&LayoutSpec> for pb::LayoutSpec {
    fn from(spec: &LayoutSpec) -> pb::LayoutSpec {
        let component = |c: &ComponentSpec| {
            let (pattern, pattern_k, pattern_m) = pattern_to_wire(c.pattern);
            pb::ComponentSpec {
                end: c.end,
                pattern,
                pattern_k,
                pattern_m,
                stripe_unit: c.stripe_unit,
                stripe_count: c.stripe_count,
                start_index: c.start_index.map(u32::from),
                targets: c.targets.iter().map(|&t| t as u32).collect(),
                pool: c.pool.clone(),
                group_width: c.group_width,
                group_depth: c.group_depth,
            }
        };
        pb::LayoutSpec { components: spec.components.iter().map(component).collect() }
    }
}

impl TryFrom<pb::LayoutSpec> for LayoutSpec {
    type Error = FsError;

    fn try_from(spec: pb::LayoutSpec) -> Result<LayoutSpec> {
        let component = |c: pb::ComponentSpec| {
            let start = c.start_index.map(u16::try_from).transpose();
            Ok(ComponentSpec {
                end: c.end,
                pattern: pattern_from_wire(c.pattern, c.pattern_k, c.pattern_m)?,
                stripe_unit: c.stripe_unit,
                stripe_count: c.stripe_count,
                start_index: start.map_err(|_| missing("start index"))?,
                targets: indices(&c.targets)?,
                pool: c.pool,
                group_width: c.group_width,
                group_depth: c.group_depth,
            })
        };
        let components: Result<Vec<_>> = spec.components.into_iter().map(component).collect();
        Ok(LayoutSpec { components: components? })
    }
}

impl From<Space> for pb::Space {
    fn from(space: Space) -> pb::Space {
        pb::Space {
            total: space.total,
            free: space.free,
            inodes: space.inodes,
            inodes_free: space.inodes_free,
            device: space.device,
        }
    }
}

impl From<pb::Space> for Space {
    fn from(space: pb::Space) -> Space {
        Space {
            total: space.total,
            free: space.free,
            inodes: space.inodes,
            inodes_free: space.inodes_free,
            device: space.device,
        }
    }
}

/// Target states on the wire.
pub fn state_to_wire(state: TargetState) -> u32 {
    match state {
        TargetState::Up => 0,
        TargetState::Down => 1,
        TargetState::Drain => 2,
    }
}

/// Target states from the wire.
///
/// # Errors
/// `Protocol` for a number unknown to this version.
pub fn state_from_wire(state: u32) -> Result<TargetState> {
    match state {
        0 => Ok(TargetState::Up),
        1 => Ok(TargetState::Down),
        2 => Ok(TargetState::Drain),
        _ => Err(missing("target state")),
    }
}

/// A target's name from the wire.
///
/// # Errors
/// `Protocol`.
pub fn target_id(wire: u32) -> Result<TargetId> {
    TargetId::from_wire(wire).ok_or_else(|| missing("target"))
}

impl From<&ClusterMap> for manager::Map {
    fn from(map: &ClusterMap) -> manager::Map {
        let node = |n: &Node| manager::Node {
            id: n.id.0,
            name: n.name.clone(),
            addresses: n.addresses.clone(),
        };
        let target = |t: &Target| manager::Target {
            id: t.id.to_wire(),
            uuid: t.uuid.clone(),
            node: t.node.0,
            state: state_to_wire(t.state),
            space: Some(t.space.into()),
        };
        let pool = |p: &Pool| manager::Pool {
            name: p.name.clone(),
            targets: p.targets.iter().map(|&t| t as u32).collect(),
        };
        let volume = |v: &Volume| manager::Volume { name: v.name.clone(), root: v.root.0 };
        let range = |r: &SequenceRange| manager::SequenceRange {
            first: r.first,
            last: r.last,
            mdt: r.mdt as u32,
        };
        manager::Map {
            cluster: map.cluster.clone(),
            epoch: map.epoch.0,
            nodes: map.nodes.iter().map(node).collect(),
            targets: map.targets.iter().map(target).collect(),
            pools: map.pools.iter().map(pool).collect(),
            volumes: map.volumes.iter().map(volume).collect(),
            sequences: map.sequences.iter().map(range).collect(),
        }
    }
}

impl TryFrom<manager::Map> for ClusterMap {
    type Error = FsError;

    fn try_from(map: manager::Map) -> Result<ClusterMap> {
        let node =
            |n: manager::Node| Node { id: NodeId(n.id), name: n.name, addresses: n.addresses };
        let target = |t: manager::Target| {
            Ok(Target {
                id: target_id(t.id)?,
                uuid: t.uuid,
                node: NodeId(t.node),
                state: state_from_wire(t.state)?,
                space: t.space.unwrap_or_default().into(),
            })
        };
        let pool = |p: manager::Pool| Ok(Pool { name: p.name, targets: indices(&p.targets)? });
        let volume = |v: manager::Volume| Volume { name: v.name, root: Fid(v.root) };
        let range = |r: manager::SequenceRange| {
            let mdt = u16::try_from(r.mdt).map_err(|_| missing("MDT index"))?;
            Ok(SequenceRange { first: r.first, last: r.last, mdt })
        };
        Ok(ClusterMap {
            cluster: map.cluster,
            epoch: Epoch(map.epoch),
            nodes: map.nodes.into_iter().map(node).collect(),
            targets: map.targets.into_iter().map(target).collect::<Result<_>>()?,
            pools: map.pools.into_iter().map(pool).collect::<Result<_>>()?,
            volumes: map.volumes.into_iter().map(volume).collect(),
            sequences: map.sequences.into_iter().map(range).collect::<Result<_>>()?,
        })
    }
}

impl From<&FsError> for pb::ErrorBody {
    fn from(error: &FsError) -> pb::ErrorBody {
        pb::ErrorBody {
            op: error.op.to_string(),
            subject: error.subject.clone(),
            detail: error.detail.clone(),
        }
    }
}

/// An error that came over the wire. The operation's name becomes part of the subject.
pub fn error_from_wire(kind: u16, body: pb::ErrorBody) -> FsError {
    let subject = match body.op.as_str() {
        "" => body.subject,
        op => format!("op={op:?} {}", body.subject),
    };
    FsError { kind: ErrorKind::from_wire(kind), op: "", subject, detail: body.detail }
}
