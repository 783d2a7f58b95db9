//! An operator drains a target or uses it again.

use crate::{Manager, decide};
use weft_model::Result;
use weft_rpc::convert::{state_from_wire, target_id};
use weft_rpc::pb::{Empty, manager::SetTargetState};

/// Changes the state; a target used again whose node is silent is down.
///
/// # Errors
/// Those of [`decide::set_target_state`], and what the store says.
pub fn set_target_state(manager: &Manager, request: &SetTargetState) -> Result<Empty> {
    let (target, wanted) = (target_id(request.target)?, state_from_wire(request.state)?);
    let now = manager.env.monotonic();
    let mut state = manager.state.lock();
    let alive = |target| manager.alive(&state, target, now);
    if let Some(next) = decide::set_target_state(&state.map, target, wanted, &alive)? {
        manager.publish(&mut state, next, "operator")?;
    }
    Ok(Empty {})
}
