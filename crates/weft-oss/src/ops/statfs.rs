//! Space of the target.

use crate::Oss;
use weft_model::Result;
use weft_rpc::pb::oss::StatfsReply;

/// Space, at most a second old.
///
/// # Errors
/// `Io`.
pub fn statfs(oss: &Oss) -> Result<StatfsReply> {
    Ok(StatfsReply { space: Some(oss.space()?.into()) })
}
