//! Finds data and holes.

use crate::Oss;
use weft_model::{ErrorKind, Result};
use weft_rpc::convert;
use weft_rpc::pb::oss::{Seek, SeekReply};
use weft_store::objects::Seek as What;

/// The next data or hole at or after the offset; absent when there is none, or no object.
///
/// # Errors
/// `Io`.
pub fn seek(oss: &Oss, request: &Seek) -> Result<SeekReply> {
    let id = convert::object(request.object)?;
    let what = if request.hole { What::Hole } else { What::Data };
    match oss.objects.seek(id, request.offset, what) {
        Ok(offset) => Ok(SeekReply { offset: Some(offset) }),
        Err(error) if matches!(error.kind, ErrorKind::NoSuchOffset | ErrorKind::NotFound) => {
            Ok(SeekReply { offset: None })
        }
        Err(error) => Err(error),
    }
}
