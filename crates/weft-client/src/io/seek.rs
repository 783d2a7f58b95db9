//! `SEEK_DATA` and `SEEK_HOLE` over striped objects.
//!
//! In each object, file offsets grow with object offsets. So the first object byte at or after a file
//! offset is known from the layout, one request per object finds its first data or hole from there,
//! and the smallest of their file offsets is the answer: one parallel round, whatever the file's size.

use crate::client::Client;
use crate::ctx::Ctx;
use crate::inode::OpenFile;
use crate::metrics::Op;
use weft_model::layout::ObjectRef;
use weft_model::{ErrorKind, FsError, Layout, Result};
use weft_rpc::pb::oss;

/// What to look for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Whence {
    /// The next byte of data.
    Data,
    /// The next byte of a hole; the end of the file is one.
    Hole,
}

impl Client {
    /// Finds the next data or hole at or after `offset`.
    ///
    /// # Errors
    /// `NoSuchOffset` at or beyond the end of the file, and when no data follows; those of the targets.
    pub fn seek(&self, ctx: &Ctx<'_>, file: &OpenFile, offset: u64, whence: Whence) -> Result<u64> {
        self.timed(Op::Seek, || {
            let patience = self.patience(ctx);
            self.write_back(&file.inode, false, &patience)?;
            let size = self.current_attr(file.fid(), &patience)?.size;
            let nothing = || FsError::new(ErrorKind::NoSuchOffset, "seek");
            if offset >= size {
                return Err(nothing());
            }
            if let Some(bytes) = self.inline_bytes(&file.inode, &patience)? {
                let end = bytes.data.len() as u64;
                return match whence {
                    Whence::Data if offset >= end => Err(nothing()),
                    Whence::Data => Ok(offset),
                    Whence::Hole => Ok(offset.max(end)),
                };
            }
            let layout = file.layout();
            let asked = candidates(&layout, file, offset, size);
            let messages = asked.iter().map(|&(found, from)| {
                let hole = whence == Whence::Hole;
                let object = Some(found.object.into());
                (found.target, oss::Seek { object, offset: from, hole })
            });
            let mut nearest = None::<u64>;
            for (answer, &(found, from)) in self.ask_many(messages, &patience).iter().zip(&asked) {
                let told = answer.as_ref().map_err(FsError::again)?.offset;
                let at = match whence {
                    Whence::Data => told,
                    // Nothing at or after `from`: the object ends before it.
                    Whence::Hole => Some(told.unwrap_or(from)),
                };
                let place = at.and_then(|at| file_offset(&layout, found, at, size));
                nearest = place.into_iter().chain(nearest).min();
            }
            match whence {
                Whence::Data => nearest.ok_or_else(nothing),
                Whence::Hole => Ok(nearest.unwrap_or(size)),
            }
        })
    }
}

/// The objects that have bytes of the file in `[offset, size)`, each with its first one.
fn candidates(layout: &Layout, file: &OpenFile, offset: u64, size: u64) -> Vec<(ObjectRef, u64)> {
    let first = |found: ObjectRef| {
        let from = layout.object_size(found.object.index, offset);
        (from < layout.object_size(found.object.index, size)).then_some((found, from))
    };
    layout.objects_below(file.fid(), size).filter_map(first).collect()
}

/// File offset of a byte of an object, if it lies below `size`.
fn file_offset(layout: &Layout, found: ObjectRef, at: u64, size: u64) -> Option<u64> {
    let index = found.object.index;
    let inside = at < layout.object_size(index, size);
    inside.then(|| layout.size_from_object(index, at + 1) - 1)
}
