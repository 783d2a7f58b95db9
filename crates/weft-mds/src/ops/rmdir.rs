//! `Rmdir`: removes an empty directory.

use crate::txn::Txn;
use crate::{namespace, view};
use weft_model::{ErrorKind, Fid, FileType, Result, cred};
use weft_rpc::pb::mds::{Removed, Rmdir};

/// Plans it.
///
/// # Errors
/// `NotFound`, `NotDir`, `NotEmpty`, `Access`, `Perm` (sticky directory), `Invalid` for `.`.
pub fn plan(txn: &mut Txn<'_>, request: &Rmdir) -> Result<Removed> {
    match request.name.as_slice() {
        b"." => return Err(ErrorKind::Invalid.into()),
        b".." => return Err(ErrorKind::NotEmpty.into()),
        _ => {}
    }
    let cred = view::credentials(&request.cred)?;
    let dir = Fid(request.parent);
    let parent = view::searchable(txn, &cred, dir)?;
    let fid = Fid(txn.dirent(dir, &request.name)?.fid);
    view::check(txn, &cred, dir, &parent, cred::WRITE)?;
    let inode = txn.inode(fid)?;
    cred::check_sticky(&cred, &parent.attr(dir), &inode.attr(fid))?;
    if !inode.is_dir() {
        return Err(ErrorKind::NotDir.into());
    }
    if inode.entries > 0 {
        return Err(ErrorKind::NotEmpty.into());
    }
    namespace::detach(txn, dir, &parent, &request.name, FileType::Directory);
    namespace::drop_name(txn, fid, &inode, dir, &request.name)?;
    Ok(Removed::default())
}
