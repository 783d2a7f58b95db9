//! `Lookup`: from a directory and a name to an inode.

use crate::{Mds, namespace, view};
use weft_model::{ErrorKind, Fid, FsError, Result};
use weft_rpc::CallInfo;
use weft_rpc::pb::mds::{Entry, Lookup};

/// Answers a lookup. `.` and `..` are names here.
///
/// # Errors
/// `NotFound`, `NotDir`, `Access`.
pub fn run(mds: &Mds, info: &CallInfo, request: &Lookup) -> Result<Entry> {
    let mut committed = &mds.committer.committed;
    let cred = view::credentials(&request.cred)?;
    let dir = Fid(request.parent);
    let parent = view::searchable(&mut committed, &cred, dir)?;
    let fid = match request.name.as_slice() {
        b"." => dir,
        b".." => Fid(parent.parent),
        name if name.len() > weft_model::name::NAME_MAX => {
            return Err(ErrorKind::NameTooLong.into());
        }
        name => match committed.dirent(dir, name)? {
            Some(dirent) => Fid(dirent.fid),
            None => return Err(ErrorKind::NotFound.into()),
        },
    };
    let inode = committed.inode(fid)?.ok_or_else(|| FsError::from(ErrorKind::NotFound))?;
    Ok(namespace::entry(fid, &inode, info.client))
}
