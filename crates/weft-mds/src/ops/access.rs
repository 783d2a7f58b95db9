//! `Access`: whether the caller may read, write, execute.

use crate::{Mds, view};
use weft_model::{Fid, Result};
use weft_rpc::pb::{Empty, mds::Access};

/// Checks.
///
/// # Errors
/// `Access`, `NeedGroups`, `Stale`.
pub fn run(mds: &Mds, request: &Access) -> Result<Empty> {
    let mut committed = &mds.committer.committed;
    let cred = view::credentials(&request.cred)?;
    let fid = Fid(request.fid);
    let inode = view::inode(&mut committed, fid)?;
    view::check(&mut committed, &cred, fid, &inode, request.mask as u8 & 7)?;
    Ok(Empty {})
}
