//! An operator makes, changes or removes a pool.

use crate::{Manager, decide};
use weft_model::{ErrorKind, FsError, Result};
use weft_rpc::pb::{Empty, manager::SetPool};

/// Sets the pool's targets; none removes it.
///
/// # Errors
/// Those of [`decide::set_pool`], and what the store says.
pub fn set_pool(manager: &Manager, request: &SetPool) -> Result<Empty> {
    let index = |&target: &u32| {
        u16::try_from(target).map_err(|_| {
            FsError::new(ErrorKind::Protocol, "set pool").on(format_args!("index={target}"))
        })
    };
    let targets: Vec<u16> = request.targets.iter().map(index).collect::<Result<_>>()?;
    let mut state = manager.state.lock();
    if let Some(next) = decide::set_pool(&state.map, &request.name, &targets)? {
        manager.publish(&mut state, next, "operator")?;
    }
    Ok(Empty {})
}
