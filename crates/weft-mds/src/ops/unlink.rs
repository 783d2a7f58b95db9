//! `Unlink`: takes a name from anything but a directory.

use crate::txn::Txn;
use crate::{namespace, view};
use weft_model::{ErrorKind, Fid, Result, cred};
use weft_rpc::pb::mds::{Removed, Unlink};

/// Plans it. Without names and opens the inode goes, and its objects become garbage.
///
/// # Errors
/// `NotFound`, `NotDir`, `Access`, `Perm` (sticky directory), `IsDir`.
pub fn plan(txn: &mut Txn<'_>, request: &Unlink) -> Result<Removed> {
    let cred = view::credentials(&request.cred)?;
    let dir = Fid(request.parent);
    let parent = view::searchable(txn, &cred, dir)?;
    let fid = Fid(txn.dirent(dir, &request.name)?.fid);
    view::check(txn, &cred, dir, &parent, cred::WRITE)?;
    let inode = txn.inode(fid)?;
    cred::check_sticky(&cred, &parent.attr(dir), &inode.attr(fid))?;
    if inode.is_dir() {
        return Err(ErrorKind::IsDir.into());
    }
    namespace::detach(txn, dir, &parent, &request.name, inode.kind());
    namespace::drop_name(txn, fid, &inode, dir, &request.name)?;
    Ok(Removed::default())
}
