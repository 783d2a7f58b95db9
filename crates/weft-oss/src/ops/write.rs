//! Writes data with its checksums.

use crate::Oss;
use weft_model::{ErrorKind, FsError, Result};
use weft_rpc::pb::oss::{Write, WriteReply};
use weft_rpc::{Bulk, CallInfo};
use weft_store::Check;

/// Stores the bulk at the offset; the object appears if there is none. May be repeated.
///
/// # Errors
/// `Checksum` when data and checksums do not belong together: nothing is written. `NoSpace`: a part
/// may have been written. `Fenced` when the writer's time is over. `FileTooBig`, `Poisoned`, `Overloaded`.
pub fn write(oss: &Oss, info: &CallInfo, request: &Write, bulk: Bulk<'_>) -> Result<WriteReply> {
    let data = match bulk {
        Bulk::Send(data) => data,
        Bulk::None => &[],
        Bulk::Receive(_) => {
            return Err(FsError::new(ErrorKind::Protocol, "write").because("brings no data"));
        }
    };
    oss.check_moment(request.not_after.as_ref())?;
    let id = super::extent(request.object, request.offset, data.len() as u64, "write")?;
    let _admitted = oss.admission.enter(data.len())?;
    // Within the process nothing can have changed on the way here.
    let check = if info.wire { Check::Verify } else { Check::Trust };
    oss.objects.write(id, request.offset, &request.sums, data, check)?;
    if request.sync {
        oss.objects.sync(&[id])?;
    }
    let blocks = oss.objects.stat(id)?.map_or(0, |stat| stat.blocks);
    let free = oss.space().map_or(0, |space| space.free);
    Ok(WriteReply { blocks, free })
}
