//! Reads data with its checksums.

use crate::Oss;
use weft_model::{ErrorKind, FsError, Result};
use weft_rpc::Bulk;
use weft_rpc::pb::oss::{Read, ReadReply};
use weft_store::Check;

/// Fills the bulk from the offset on; short at the end of the object.
///
/// Whole blocks go out with their stored checksums, unchecked: the asker checks them, and so also
/// what happened on the way.
///
/// # Errors
/// `Checksum` when a block that is read in part is damaged. `Overloaded`.
pub fn read(oss: &Oss, request: &Read, bulk: Bulk<'_>) -> Result<ReadReply> {
    let buffer: &mut [u8] = match bulk {
        Bulk::Receive(buffer) => buffer,
        Bulk::None => &mut [],
        Bulk::Send(_) => {
            return Err(FsError::new(ErrorKind::Protocol, "read").because("has no room for data"));
        }
    };
    let len = buffer.len().min(request.len as usize);
    let id = super::extent(request.object, request.offset, len as u64, "read")?;
    let _admitted = oss.admission.enter(len)?;
    let mut sums = Vec::new();
    let buffer = &mut buffer[..len];
    let len = oss.objects.read(id, request.offset, buffer, &mut sums, Check::Trust)?;
    Ok(ReadReply { len: len as u32, sums })
}
