//! `GetAttr`: the attributes of an inode.

use crate::Mds;
use weft_model::{ErrorKind, Fid, Result};
use weft_rpc::CallInfo;
use weft_rpc::pb::mds::{Entry, GetAttr};

/// Answers with the attributes. Nobody needs a permission for that.
///
/// # Errors
/// `Stale`.
pub fn run(mds: &Mds, info: &CallInfo, request: &GetAttr) -> Result<Entry> {
    let fid = Fid(request.fid);
    let (inode, mut entry) = mds.read_granted(fid, info.client)?.ok_or(ErrorKind::Stale)?;
    if request.want_layout {
        entry.layout = inode.layout.clone();
    }
    Ok(entry)
}
