//! `Symlink`: a new symbolic link.

use crate::namespace::{self, NewInode};
use crate::txn::Txn;
use crate::view;
use weft_model::{ErrorKind, Fid, FileType, Result, name};
use weft_rpc::CallInfo;
use weft_rpc::pb::mds::{Entry, Symlink};

/// Plans it.
///
/// # Errors
/// `Exists`, `NotFound`, `NotDir`, `Access`, `NameTooLong` for the target.
pub fn plan(txn: &mut Txn<'_>, info: &CallInfo, request: &Symlink) -> Result<Entry> {
    name::check(&request.name)?;
    if request.target.len() > name::SYMLINK_MAX {
        return Err(ErrorKind::NameTooLong.into());
    }
    let cred = view::credentials(&request.cred)?;
    let dir = Fid(request.parent);
    view::searchable(txn, &cred, dir)?;
    if txn.find_dirent(dir, &request.name)?.is_some() {
        return Err(ErrorKind::Exists.into());
    }
    let parent = view::changeable(txn, &cred, dir)?;
    let mode = FileType::Symlink.mode_bits() | 0o777;
    let new = NewInode { parent: dir, mode, umask: 0, cred: &cred };
    let (fid, mut inode) = namespace::make(txn, &parent, &new)?;
    inode.name = request.name.clone();
    inode.symlink = request.target.clone();
    namespace::attach(txn, dir, &parent, &request.name, fid, FileType::Symlink);
    let entry = namespace::entry(fid, &inode, info.client);
    txn.put_inode(fid, inode);
    Ok(entry)
}
