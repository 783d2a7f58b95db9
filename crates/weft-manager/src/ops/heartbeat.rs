//! A node reports itself and its targets.

use crate::Manager;
use crate::decide::{self, Beat, BeatTarget};
use crate::manager::State;
use std::time::Duration;
use weft_model::{Epoch, NodeId, Result, TargetKind};
use weft_rpc::convert::target_id;
use weft_rpc::pb::manager::{Heartbeat, HeartbeatReply};

/// Takes over what the node says and answers with the map, if it has another or needs new figures
/// of space.
///
/// # Errors
/// Those of [`decide::heartbeat`], and what the store says. Nothing has changed then.
pub fn heartbeat(manager: &Manager, request: &Heartbeat) -> Result<HeartbeatReply> {
    let beat = decode(request)?;
    let now = manager.env.monotonic();
    let mut state = manager.state.lock();
    let (node, next) =
        decide::heartbeat(&state.map, &beat, &|target| manager.alive(&state, target, now))?;
    if let Some(next) = next {
        manager.publish(&mut state, next, "heartbeat")?;
    }
    decide::note_space(&mut state.map, &beat);
    note_heard(&mut state, &beat, node, now);
    let mut map = state.map_for(beat.have_epoch);
    if map.is_none() && wants_space(manager, &state, &beat, node, now) {
        map = Some((&state.map).into());
    }
    if map.is_some() {
        state.shown.insert(node, now);
    }
    let interval_ms = manager.settings.heartbeat_interval.as_millis() as u32;
    Ok(HeartbeatReply { node_id: node.0, map, interval_ms })
}

fn note_heard(state: &mut State, beat: &Beat, node: NodeId, now: Duration) {
    for served in &beat.targets {
        if !beat.stopping {
            state.heard.insert(served.id, now);
        } else if state.map.target(served.id).is_some_and(|target| target.node == node) {
            state.heard.remove(&served.id);
        }
    }
}

/// Metadata servers place files and have to know who has room.
fn wants_space(manager: &Manager, state: &State, beat: &Beat, node: NodeId, now: Duration) -> bool {
    let shown = state.shown.get(&node).copied();
    beat.targets.iter().any(|served| served.id.kind == TargetKind::Mdt)
        && shown.is_none_or(|at| now.saturating_sub(at) >= manager.settings.space_interval)
}

fn decode(request: &Heartbeat) -> Result<Beat> {
    let target = |served: &weft_rpc::pb::manager::ServedTarget| {
        Ok(BeatTarget {
            id: target_id(served.id)?,
            uuid: served.uuid.clone(),
            space: served.space.unwrap_or_default().into(),
        })
    };
    Ok(Beat {
        node: request.node.clone(),
        addresses: request.addresses.clone(),
        targets: request.targets.iter().map(target).collect::<Result<_>>()?,
        have_epoch: Epoch(request.have_epoch),
        stopping: request.stopping,
    })
}
