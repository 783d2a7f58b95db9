//! `Mknod`: pipes, sockets, devices, and regular files without opening them.

use crate::namespace::{self, NewInode};
use crate::txn::Txn;
use crate::{Mds, view};
use weft_model::{ErrorKind, Fid, FileType, Result, name};
use weft_rpc::CallInfo;
use weft_rpc::pb::mds::{Entry, Mknod};

/// Plans it.
///
/// # Errors
/// `Exists`, `NotFound`, `NotDir`, `Access`, `Perm` for devices made by others than root
/// (whiteouts excepted), `Invalid`.
pub fn plan(txn: &mut Txn<'_>, mds: &Mds, info: &CallInfo, request: &Mknod) -> Result<Entry> {
    name::check(&request.name)?;
    let cred = view::credentials(&request.cred)?;
    let dir = Fid(request.parent);
    view::searchable(txn, &cred, dir)?;
    if txn.find_dirent(dir, &request.name)?.is_some() {
        return Err(ErrorKind::Exists.into());
    }
    let parent = view::changeable(txn, &cred, dir)?;
    let kind = FileType::from_mode(request.mode).ok_or(ErrorKind::Invalid)?;
    match kind {
        FileType::Directory | FileType::Symlink => return Err(ErrorKind::Invalid.into()),
        // A whiteout is no device that anybody could open.
        FileType::CharDevice if request.rdev == 0 => {}
        FileType::CharDevice | FileType::BlockDevice if !cred.is_root() => {
            return Err(ErrorKind::Perm.into());
        }
        _ => {}
    }
    let new = NewInode { parent: dir, mode: request.mode, umask: request.umask, cred: &cred };
    let (fid, mut inode) = namespace::make(txn, &parent, &new)?;
    inode.rdev = request.rdev;
    inode.name = request.name.clone();
    if kind == FileType::Regular {
        inode.layout = Some(mds.place(txn, &request.layout, &parent)?);
    }
    namespace::attach(txn, dir, &parent, &request.name, fid, kind);
    let entry = namespace::entry(fid, &inode, info.client);
    txn.put_inode(fid, inode);
    Ok(entry)
}
