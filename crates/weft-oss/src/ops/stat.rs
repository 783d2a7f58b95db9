//! Sizes and times of objects.

use crate::Oss;
use weft_model::{ObjectId, Result};
use weft_rpc::pb::oss::{Object, ObjectStat, Stat, StatReply};

/// Attributes of the objects named, in that order. One that does not exist is told so.
///
/// # Errors
/// `Io`.
pub fn stat(oss: &Oss, request: &Stat) -> Result<StatReply> {
    let one = |&object: &Object| {
        let found = oss.objects.stat(ObjectId::from(object))?;
        Ok(found.map_or_else(ObjectStat::default, |stat| ObjectStat {
            exists: true,
            size: stat.size,
            blocks: stat.blocks,
            mtime: Some(stat.mtime.into()),
        }))
    };
    Ok(StatReply { stats: request.objects.iter().map(one).collect::<Result<_>>()? })
}
