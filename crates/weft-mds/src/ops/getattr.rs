//! `GetAttr`: the attributes of an inode.

use crate::{Mds, namespace, view};
use weft_model::{Fid, Result};
use weft_rpc::CallInfo;
use weft_rpc::pb::mds::{Entry, GetAttr};

/// Answers with the attributes. Nobody needs a permission for that.
///
/// # Errors
/// `Stale`.
pub fn run(mds: &Mds, info: &CallInfo, request: &GetAttr) -> Result<Entry> {
    let fid = Fid(request.fid);
    let inode = view::inode(&mut &mds.committer.committed, fid)?;
    Ok(match request.want_layout {
        true => namespace::entry_with_layout(fid, &inode, info.client),
        false => namespace::entry(fid, &inode, info.client),
    })
}
