//! Brings what was written to stable storage.

use crate::Oss;
use weft_model::{ObjectId, Result};
use weft_rpc::pb::{Empty, oss::Sync};

/// Syncs the objects named, or the whole target when none is. Missing objects are skipped.
///
/// # Errors
/// What the disk says; the target is `Poisoned` then, since nobody knows what it has lost.
pub fn sync(oss: &Oss, request: &Sync) -> Result<Empty> {
    if request.objects.is_empty() {
        oss.objects.sync_all()?;
    } else {
        let ids: Vec<ObjectId> = request.objects.iter().copied().map(ObjectId::from).collect();
        oss.objects.sync(&ids)?;
    }
    Ok(Empty {})
}
