//! `ReadInline`: the bytes of a small file.

use crate::{Mds, inline, view};
use weft_model::{ErrorKind, Fid, FsError, Result};
use weft_rpc::pb::mds::{Inline, ReadInline, ReadInlineReply};
use weft_rpc::{CallInfo, Role};

/// Answers with all of them.
///
/// # Errors
/// `NotInline` when they are not here (any more); `Access` for a client that has not opened the file;
/// `Checksum`, `Stale`.
pub fn run(mds: &Mds, info: &CallInfo, request: &ReadInline) -> Result<ReadInlineReply> {
    let fid = Fid(request.fid);
    let is_open = || mds.committer.with_planner(|planner| planner.opens.has(info.client, fid));
    if info.role == Role::Client && !is_open() {
        return Err(FsError::new(ErrorKind::Access, "read inline data")
            .on(format_args!("fid={fid}"))
            .because("the file is not open"));
    }
    let mut committed = &mds.committer.committed;
    let inode = view::inode(&mut committed, fid)?;
    if !inode.inline {
        return Err(ErrorKind::NotInline.into());
    }
    let held = inline::load(&mut committed, fid, &inode)?;
    let data = Some(Inline { data: held.data, sums: held.sums });
    Ok(ReadInlineReply { data, size: inode.size })
}
