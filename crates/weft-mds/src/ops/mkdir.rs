//! `Mkdir`: a new directory.

use crate::namespace::{self, NewInode};
use crate::txn::Txn;
use crate::view;
use weft_model::{ErrorKind, Fid, FileType, Result, name};
use weft_rpc::CallInfo;
use weft_rpc::pb::mds::{Entry, Mkdir};

/// Plans it.
///
/// # Errors
/// `Exists`, `NotFound`, `NotDir`, `Access`.
pub fn plan(txn: &mut Txn<'_>, info: &CallInfo, request: &Mkdir) -> Result<Entry> {
    name::check(&request.name)?;
    let cred = view::credentials(&request.cred)?;
    let dir = Fid(request.parent);
    view::searchable(txn, &cred, dir)?;
    if txn.find_dirent(dir, &request.name)?.is_some() {
        return Err(ErrorKind::Exists.into());
    }
    let parent = view::changeable(txn, &cred, dir)?;
    let mode = FileType::Directory.mode_bits() | request.mode & 0o7777;
    let new = NewInode { parent: dir, mode, umask: request.umask, cred: &cred };
    let (fid, mut inode) = namespace::make(txn, &parent, &new)?;
    inode.name = request.name.clone();
    namespace::attach(txn, dir, &parent, &request.name, fid, FileType::Directory);
    let entry = namespace::entry(fid, &inode, info.client);
    txn.put_inode(fid, inode);
    Ok(entry)
}
