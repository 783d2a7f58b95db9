//! Removes objects.

use crate::Oss;
use weft_model::{ObjectId, Result};
use weft_rpc::pb::{Empty, oss::Destroy};

/// Removes the objects named, for good when it answers; those that do not exist are no error, so it may
/// be repeated.
///
/// # Errors
/// Of the first object that could not be removed; those behind it are left for another try.
pub fn destroy(oss: &Oss, request: &Destroy) -> Result<Empty> {
    let ids: Vec<ObjectId> = request.objects.iter().copied().map(ObjectId::from).collect();
    ids.iter().try_for_each(|&id| oss.objects.destroy(id))?;
    // One sync for all: nobody would ask for them again.
    oss.objects.sync(&ids)?;
    Ok(Empty {})
}
