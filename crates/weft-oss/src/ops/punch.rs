//! Makes a hole.

use crate::Oss;
use weft_model::Result;
use weft_rpc::pb::{Empty, oss::Punch};
use weft_store::objects::MAX_SIZE;

/// Gives back the space of the range, which then reads as zeros; the size stays. A range that
/// reaches beyond the largest object ends there. May be repeated.
///
/// # Errors
/// `Checksum` when a block that is changed in part is damaged.
pub fn punch(oss: &Oss, request: &Punch) -> Result<Empty> {
    oss.check_moment(request.not_after.as_ref())?;
    let len = request.len.min(MAX_SIZE.saturating_sub(request.offset));
    let id = super::extent(request.object, request.offset.min(MAX_SIZE), len, "punch")?;
    if len > 0 && oss.objects.stat(id)?.is_some() {
        oss.objects.punch(id, request.offset, len)?;
    }
    Ok(Empty {})
}
