//! Removes objects.

use crate::Oss;
use weft_model::{ObjectId, Result};
use weft_rpc::pb::{Empty, oss::Destroy};

/// Removes the objects named; those that do not exist are no error, so it may be repeated.
///
/// # Errors
/// Of the first object that could not be removed; those behind it are left for another try.
pub fn destroy(oss: &Oss, request: &Destroy) -> Result<Empty> {
    for &object in &request.objects {
        oss.objects.destroy(ObjectId::from(object))?;
    }
    Ok(Empty {})
}
