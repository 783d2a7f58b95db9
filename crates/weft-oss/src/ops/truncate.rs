//! Cuts or extends an object.

use crate::Oss;
use weft_model::Result;
use weft_rpc::pb::{Empty, oss::Truncate};

/// Gives the object the size. A missing object stays missing when the size is 0. With `only_shrink`
/// one that is not larger stays as it is. May be repeated.
///
/// # Errors
/// `FileTooBig`, `NoSpace`, `Checksum` when the block at the cut is damaged.
pub fn truncate(oss: &Oss, request: &Truncate) -> Result<Empty> {
    let id = super::extent(request.object, request.size, 0, "truncate")?;
    let needed = match oss.objects.stat(id)? {
        None => request.size > 0 && !request.only_shrink,
        Some(stat) => !request.only_shrink || stat.size > request.size,
    };
    if needed {
        oss.objects.truncate(id, request.size)?;
    }
    Ok(Empty {})
}
