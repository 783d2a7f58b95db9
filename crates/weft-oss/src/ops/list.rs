//! Lists objects.

use crate::Oss;
use weft_model::Result;
use weft_rpc::pb::oss::{ListObjects, ListObjectsReply};

/// Most objects in one answer.
const MAX_OBJECTS: u32 = 10_000;

/// The next objects behind the cursor, at least one and at most `limit` (0: as many as go into an
/// answer); no cursor in the answer at the end.
///
/// # Errors
/// `Invalid` for a cursor that no answer had.
pub fn list(oss: &Oss, request: &ListObjects) -> Result<ListObjectsReply> {
    let after = super::cursor(&request.cursor, "list")?;
    let limit = if request.limit == 0 { MAX_OBJECTS } else { request.limit.min(MAX_OBJECTS) };
    let found = oss.objects.list(after, limit as usize)?;
    Ok(ListObjectsReply {
        cursor: found.last().map(ToString::to_string).unwrap_or_default(),
        objects: found.into_iter().map(Into::into).collect(),
    })
}
