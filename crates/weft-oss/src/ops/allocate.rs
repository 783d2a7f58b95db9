//! Reserves space.

use crate::Oss;
use weft_model::{ErrorKind, FsError, Result};
use weft_rpc::pb::{Empty, oss::Allocate};

/// Reserves space for the range, as fallocate(2); with `zero` its contents become zeros.
///
/// # Errors
/// `Invalid` for an empty range, `FileTooBig`, `NoSpace`, `NotSupported` where the file system
/// below cannot.
pub fn allocate(oss: &Oss, request: &Allocate) -> Result<Empty> {
    oss.check_moment(request.not_after.as_ref())?;
    let (offset, len) = (request.offset, request.len);
    let id = super::extent(request.object, offset, len, "allocate")?;
    if len == 0 {
        return Err(FsError::new(ErrorKind::Invalid, "allocate")
            .on(format_args!("object={id}"))
            .because("the range is empty"));
    }
    if request.zero {
        oss.objects.zero(id, offset, len, request.keep_size)?;
    } else {
        oss.objects.allocate(id, offset, len, request.keep_size)?;
    }
    Ok(Empty {})
}
