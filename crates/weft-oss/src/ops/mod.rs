//! One file per operation.

pub mod allocate;
pub mod destroy;
pub mod list;
pub mod punch;
pub mod read;
pub mod scrub;
pub mod seek;
pub mod stat;
pub mod statfs;
pub mod sync;
pub mod truncate;
pub mod write;

use weft_model::{ErrorKind, FsError, ObjectId, Result};
use weft_rpc::convert;
use weft_rpc::pb::oss::Object;

/// The object and the extent of a request.
///
/// # Errors
/// `Protocol` without an object, `FileTooBig` when the end cannot be expressed.
fn extent(object: Option<Object>, offset: u64, len: u64, op: &'static str) -> Result<ObjectId> {
    let id = convert::object(object)?;
    if offset.checked_add(len).is_none_or(|end| end > weft_store::objects::MAX_SIZE) {
        return Err(FsError::new(ErrorKind::FileTooBig, op)
            .on(format_args!("object={id} offset={offset} len={len}")));
    }
    Ok(id)
}

/// Reads a cursor: the name of the last object of the former answer.
///
/// # Errors
/// `Invalid`.
fn cursor(text: &str, op: &'static str) -> Result<Option<ObjectId>> {
    match text {
        "" => Ok(None),
        name => match name.parse() {
            Ok(id) => Ok(Some(id)),
            Err(why) => Err(FsError::new(ErrorKind::Invalid, op)
                .because(format_args!("{why}; begin again with an empty cursor"))),
        },
    }
}
