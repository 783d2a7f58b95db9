//! From a map and an event to the next map. Pure: no clock, no store.
//!
//! Every function returns the next map only when something has changed; its epoch is then raised.
//! What is alive is asked of the caller, who knows the time.

use weft_model::map::{ClusterMap, Node, Pool, SequenceRange, Space, Target, TargetState, Volume};
use weft_model::{Epoch, ErrorKind, Fid, FsError, NodeId, Result, TargetId, TargetKind};

/// The first sequence; MDT0000 has it from the first map on.
const FIRST_SEQUENCE: u32 = Fid::ROOT.sequence();
/// A map this much newer than the book's is taken for nonsense, not for a book that was put back.
const MAX_EPOCHS_LOST: u64 = 1 << 32;

/// What a node says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beat {
    /// Its name, unique in the cluster.
    pub node: String,
    /// Where it listens.
    pub addresses: Vec<String>,
    /// What it serves.
    pub targets: Vec<BeatTarget>,
    /// The map it has.
    pub have_epoch: Epoch,
    /// It is about to stop: its targets are down from now on.
    pub stopping: bool,
}

/// A target in a [`Beat`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BeatTarget {
    /// Its name.
    pub id: TargetId,
    /// Identity of its superblock.
    pub uuid: String,
    /// Its capacity.
    pub space: Space,
}

/// The map of a cluster of which nobody has been heard yet.
pub fn first_map(cluster: &str) -> ClusterMap {
    ClusterMap {
        cluster: cluster.to_string(),
        epoch: Epoch(1),
        volumes: vec![Volume { name: "weft".into(), root: Fid::ROOT }],
        sequences: vec![SequenceRange { first: FIRST_SEQUENCE, last: FIRST_SEQUENCE, mdt: 0 }],
        ..ClusterMap::default()
    }
}

/// The next map if it says anything new.
fn next(map: &ClusterMap, mut changed: ClusterMap) -> Option<ClusterMap> {
    if changed == *map {
        return None;
    }
    changed.epoch = Epoch(changed.epoch.0 + 1);
    Some(changed)
}

/// A node has said what it serves. Returns the node's number, and the next map.
///
/// A target nobody knew is added. One that has moved, with the whole superblock, to another node
/// moves in the map. Space is taken from new targets only; see [`note_space`].
///
/// # Errors
/// `Invalid` for a nameless node or target, or a superblock that is known under another name;
/// `Exists` when a target of that name but with another superblock is known; `Busy` when another
/// node serves the target. Nothing changes then.
pub fn heartbeat(
    map: &ClusterMap,
    beat: &Beat,
    alive: &dyn Fn(TargetId) -> bool,
) -> Result<(NodeId, Option<ClusterMap>)> {
    let mut changed = map.clone();
    if beat.have_epoch > map.epoch {
        // The book was put back from a copy. Servers refuse maps older than the one they have.
        if beat.have_epoch.0 - map.epoch.0 > MAX_EPOCHS_LOST {
            return Err(refused(beat, ErrorKind::Invalid)
                .because(format_args!("its epoch {} cannot be right", beat.have_epoch)));
        }
        changed.epoch = beat.have_epoch;
    }
    let node = place_node(&mut changed, beat)?;
    for target in &beat.targets {
        place_target(&mut changed, beat, node, target, alive)?;
    }
    changed.targets.sort_by_key(|target| target.id);
    Ok((node, next(map, changed)))
}

fn refused(beat: &Beat, kind: ErrorKind) -> FsError {
    FsError::new(kind, "heartbeat").on(format_args!("node={}", beat.node))
}

fn place_node(map: &mut ClusterMap, beat: &Beat) -> Result<NodeId> {
    if beat.node.is_empty() {
        return Err(refused(beat, ErrorKind::Invalid).because("a node needs a name"));
    }
    if let Some(node) = map.nodes.iter_mut().find(|node| node.name == beat.node) {
        if node.addresses != beat.addresses {
            node.addresses.clone_from(&beat.addresses);
        }
        return Ok(node.id);
    }
    let id = NodeId(map.nodes.iter().map(|node| node.id.0).max().unwrap_or(0) + 1);
    map.nodes.push(Node { id, name: beat.node.clone(), addresses: beat.addresses.clone() });
    Ok(id)
}

fn place_target(
    map: &mut ClusterMap,
    beat: &Beat,
    node: NodeId,
    served: &BeatTarget,
    alive: &dyn Fn(TargetId) -> bool,
) -> Result<()> {
    let refuse = |kind, why: String| {
        let subject = format!("node={} target={} uuid={}", beat.node, served.id, served.uuid);
        Err(FsError::new(kind, "heartbeat").on(subject).because(why))
    };
    if served.uuid.is_empty() {
        return refuse(ErrorKind::Invalid, "a target needs a uuid".into());
    }
    if let Some(other) =
        map.targets.iter().find(|known| known.uuid == served.uuid && known.id != served.id)
    {
        return refuse(ErrorKind::Invalid, format!("this target is known as {}", other.id));
    }
    let Some(known) = map.targets.iter_mut().find(|known| known.id == served.id) else {
        if !beat.stopping {
            let BeatTarget { id, uuid, space } = served.clone();
            map.targets.push(Target { id, uuid, node, state: TargetState::Up, space });
        }
        return Ok(());
    };
    if known.uuid != served.uuid {
        let why = format!(
            "the cluster has another target of this name, uuid={}; format this one with an index \
             that is free",
            known.uuid
        );
        return refuse(ErrorKind::Exists, why);
    }
    if known.node != node && alive(known.id) {
        let why = format!("{} serves it; stop that one first", known.node);
        return refuse(ErrorKind::Busy, why);
    }
    match (beat.stopping, known.state) {
        // Only the node that has it can give it up.
        (true, _) if known.node != node => return Ok(()),
        (true, TargetState::Up) => known.state = TargetState::Down,
        (false, TargetState::Down) => known.state = TargetState::Up,
        // An operator's drain stays.
        _ => {}
    }
    known.node = node;
    Ok(())
}

/// Takes over figures of space. Not a change of the map.
pub fn note_space(map: &mut ClusterMap, beat: &Beat) {
    for served in &beat.targets {
        if let Some(known) = map.targets.iter_mut().find(|known| known.id == served.id) {
            known.space = served.space;
        }
    }
}

/// Time has passed: targets that are not alive any more are down.
pub fn expire(map: &ClusterMap, alive: &dyn Fn(TargetId) -> bool) -> Option<ClusterMap> {
    let mut changed = map.clone();
    for target in &mut changed.targets {
        if target.state == TargetState::Up && !alive(target.id) {
            target.state = TargetState::Down;
        }
    }
    next(map, changed)
}

/// An operator drains a target or uses it again.
///
/// # Errors
/// `NotFound` for an unknown target; `Invalid` for `Down`, which is found out, not told.
pub fn set_target_state(
    map: &ClusterMap,
    id: TargetId,
    state: TargetState,
    alive: &dyn Fn(TargetId) -> bool,
) -> Result<Option<ClusterMap>> {
    let subject = format!("target={id}");
    let mut changed = map.clone();
    let Some(target) = changed.targets.iter_mut().find(|target| target.id == id) else {
        return Err(FsError::new(ErrorKind::NotFound, "set target state")
            .on(subject)
            .because("the cluster has no such target"));
    };
    target.state = match state {
        TargetState::Down => {
            return Err(FsError::new(ErrorKind::Invalid, "set target state")
                .on(subject)
                .because("a target is down when its server is; stop that, or drain the target"));
        }
        TargetState::Up if !alive(id) => TargetState::Down,
        TargetState::Up | TargetState::Drain => state,
    };
    Ok(next(map, changed))
}

/// An operator takes a target out of the map, which knows nothing of it then. One that comes back is new.
///
/// # Errors
/// `NotFound`; `Busy` for one that is being served, as it would come back at once; `Invalid` for an MDT with
/// the root of a volume; `NotEmpty` unless `force`: what lives on a target that is down cannot be seen.
pub fn remove_target(
    map: &ClusterMap,
    id: TargetId,
    force: bool,
    alive: &dyn Fn(TargetId) -> bool,
) -> Result<ClusterMap> {
    let fail = |kind, why: &str| {
        Err(FsError::new(kind, "remove target").on(format_args!("target={id}")).because(why))
    };
    if map.target(id).is_none() {
        return fail(ErrorKind::NotFound, "the cluster has no such target");
    }
    if alive(id) {
        let why = "its server reports it; stop that first, or take it out of its configuration";
        return fail(ErrorKind::Busy, why);
    }
    if map.volumes.iter().any(|volume| map.mdt_of(volume.root) == Some(id)) {
        return fail(ErrorKind::Invalid, "the root of a volume lives there");
    }
    if !force {
        let why = match id.kind {
            TargetKind::Ost => {
                "files may have data there, which is lost to them then; copy what \
                                needs it, or force the removal"
            }
            _ => "files and directories may live there, which are lost then; force the removal",
        };
        return fail(ErrorKind::NotEmpty, why);
    }
    let mut changed = map.clone();
    changed.targets.retain(|target| target.id != id);
    if id.kind == TargetKind::Ost {
        changed.pools.iter_mut().for_each(|pool| pool.targets.retain(|&index| index != id.index));
        changed.pools.retain(|pool| !pool.targets.is_empty());
    }
    changed.epoch = Epoch(map.epoch.0 + 1);
    Ok(changed)
}

/// An operator takes a node out of the map, with `force` also its targets.
///
/// # Errors
/// `NotFound`; `NotEmpty` for one with targets unless `force`; those of [`remove_target`] for these.
pub fn remove_node(
    map: &ClusterMap,
    name: &str,
    force: bool,
    alive: &dyn Fn(TargetId) -> bool,
) -> Result<ClusterMap> {
    let fail = |kind, why: String| {
        Err(FsError::new(kind, "remove node").on(format_args!("node={name}")).because(why))
    };
    let Some(node) = map.nodes.iter().find(|node| node.name == name) else {
        return fail(ErrorKind::NotFound, "the cluster has no such node".into());
    };
    let here = map.targets.iter().filter(|target| target.node == node.id);
    let targets: Vec<TargetId> = here.map(|target| target.id).collect();
    if !targets.is_empty() && !force {
        let names: Vec<String> = targets.iter().map(ToString::to_string).collect();
        let why = format!(
            "{} belong to it; serve them elsewhere or remove them first, or force the removal of all",
            names.join(", ")
        );
        return fail(ErrorKind::NotEmpty, why);
    }
    let mut changed = map.clone();
    for id in targets {
        changed = remove_target(&changed, id, force, alive)?;
    }
    changed.nodes.retain(|node| node.name != name);
    changed.epoch = Epoch(map.epoch.0 + 1);
    Ok(changed)
}

/// An operator makes, changes or (with no targets) removes a pool.
///
/// # Errors
/// `Invalid` for a name that would not survive a command line, or an OST that does not exist;
/// `NotFound` when there is no pool to remove.
pub fn set_pool(map: &ClusterMap, name: &str, targets: &[u16]) -> Result<Option<ClusterMap>> {
    let fail = |kind, why: String| {
        Err(FsError::new(kind, "set pool").on(format_args!("pool={name:?}")).because(why))
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
        return fail(ErrorKind::Invalid, "a name has 1 to 64 of A-Z a-z 0-9 - _ .".into());
    }
    let unknown = targets.iter().find(|&&index| map.target(TargetId::ost(index)).is_none());
    if let Some(&index) = unknown {
        let why = format!("the cluster has no {}", TargetId::ost(index));
        return fail(ErrorKind::Invalid, why);
    }
    let mut changed = map.clone();
    let at = changed.pools.iter().position(|pool| pool.name == name);
    let mut targets = targets.to_vec();
    targets.sort_unstable();
    targets.dedup();
    match (at, targets.is_empty()) {
        (None, true) => return fail(ErrorKind::NotFound, "there is no such pool".into()),
        (Some(at), true) => drop(changed.pools.remove(at)),
        (Some(at), false) => changed.pools[at].targets = targets,
        (None, false) => changed.pools.push(Pool { name: name.to_string(), targets }),
    }
    changed.pools.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(next(map, changed))
}

/// An MDT gets a sequence that nobody has had.
///
/// # Errors
/// `NotFound` for an unknown MDT, `NoSpace` when all 2^24 sequences are given out.
pub fn allocate_sequence(map: &ClusterMap, mdt: u16) -> Result<(u32, ClusterMap)> {
    let fail = |kind| {
        FsError::new(kind, "allocate sequence")
            .on(format_args!("target={}", TargetId { kind: TargetKind::Mdt, index: mdt }))
    };
    if map.target(TargetId::mdt(mdt)).is_none() {
        return Err(fail(ErrorKind::NotFound)
            .because("the cluster has no such target; its server has to send a heartbeat first"));
    }
    let last = map.sequences.iter().map(|range| range.last).max().unwrap_or(FIRST_SEQUENCE);
    if last >= Fid::MAX_SEQUENCE {
        return Err(fail(ErrorKind::NoSpace).because("all sequences are given out"));
    }
    let sequence = last + 1;
    let mut changed = map.clone();
    match changed.sequences.iter_mut().find(|range| range.last == last && range.mdt == mdt) {
        Some(range) => range.last = sequence,
        None => changed.sequences.push(SequenceRange { first: sequence, last: sequence, mdt }),
    }
    changed.epoch = Epoch(map.epoch.0 + 1);
    Ok((sequence, changed))
}

#[cfg(test)]
mod tests;
