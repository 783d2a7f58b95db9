//! An operator takes a target or a node out of the map.

use crate::{Manager, decide};
use weft_model::Result;
use weft_rpc::convert::target_id;
use weft_rpc::pb::{Empty, manager::Remove};

/// Removes it.
///
/// # Errors
/// Those of [`decide::remove_target`] and [`decide::remove_node`], and what the store says.
pub fn remove(manager: &Manager, request: &Remove) -> Result<Empty> {
    let now = manager.env.monotonic();
    let mut state = manager.state.lock();
    let alive = |target| manager.alive(&state, target, now);
    let next = match request.target {
        0 => decide::remove_node(&state.map, &request.node, request.force, &alive)?,
        target => decide::remove_target(&state.map, target_id(target)?, request.force, &alive)?,
    };
    manager.publish(&mut state, next, "operator")?;
    Ok(Empty {})
}
