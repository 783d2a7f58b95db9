//! `Link`: another name for an inode.

use crate::namespace;
use crate::txn::Txn;
use crate::{keys, view};
use weft_model::{ErrorKind, Fid, Result, name};
use weft_rpc::CallInfo;
use weft_rpc::pb::mds::{Entry, Link};

/// Plans it. An inode without a name (`O_TMPFILE`) gets its first one.
///
/// # Errors
/// `Exists`, `NotFound`, `NotDir`, `Access`, `Perm` for directories, `TooManyLinks`.
pub fn plan(txn: &mut Txn<'_>, info: &CallInfo, request: &Link) -> Result<Entry> {
    name::check(&request.name)?;
    let cred = view::credentials(&request.cred)?;
    let (dir, fid) = (Fid(request.parent), Fid(request.fid));
    view::searchable(txn, &cred, dir)?;
    if txn.find_dirent(dir, &request.name)?.is_some() {
        return Err(ErrorKind::Exists.into());
    }
    let parent = view::changeable(txn, &cred, dir)?;
    let mut inode = txn.find_inode(fid)?.ok_or(ErrorKind::NotFound)?.as_ref().clone();
    if inode.is_dir() {
        return Err(ErrorKind::Perm.into());
    }
    inode.nlink = inode.nlink.checked_add(1).ok_or(ErrorKind::TooManyLinks)?;
    if inode.nlink == 1 {
        txn.put_raw(keys::orphan(fid), None);
    }
    inode.touch_ctime(txn.now);
    (inode.parent, inode.name) = (dir.0, request.name.clone());
    namespace::attach(txn, dir, &parent, &request.name, fid, inode.kind());
    let entry = namespace::entry(fid, &inode, info.client);
    txn.put_inode(fid, inode);
    Ok(entry)
}
