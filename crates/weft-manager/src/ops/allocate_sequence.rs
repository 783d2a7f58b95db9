//! Gives an MDT a FID sequence.

use crate::{Manager, decide};
use weft_model::{ErrorKind, FsError, Result};
use weft_rpc::pb::manager::{AllocateSequence, AllocateSequenceReply};

/// A sequence that nobody has had, on stable storage before it is told. A resent request gets
/// another one; the first is then never used, which costs nothing.
///
/// # Errors
/// Those of [`decide::allocate_sequence`], and what the store says.
pub fn allocate_sequence(
    manager: &Manager,
    request: &AllocateSequence,
) -> Result<AllocateSequenceReply> {
    let mdt = u16::try_from(request.mdt).map_err(|_| {
        FsError::new(ErrorKind::Protocol, "allocate sequence")
            .on(format_args!("mdt={}", request.mdt))
    })?;
    let mut state = manager.state.lock();
    let (sequence, next) = decide::allocate_sequence(&state.map, mdt)?;
    manager.publish(&mut state, next, "sequence allocated")?;
    Ok(AllocateSequenceReply { sequence, map: Some((&state.map).into()) })
}
