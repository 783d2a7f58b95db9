//! `Tmpfile`: a file without a name, open (`O_TMPFILE`).

use crate::namespace::{self, NewInode};
use crate::txn::Txn;
use crate::{Mds, keys, ops, view};
use weft_model::{Fid, FileType, Result};
use weft_rpc::CallInfo;
use weft_rpc::pb::mds::{CreateReply, Tmpfile};

/// Plans it. The file goes when it is closed without having been linked.
///
/// # Errors
/// `NotFound`, `NotDir`, `Access`, `NoSpace`.
pub fn plan(
    txn: &mut Txn<'_>,
    mds: &Mds,
    info: &CallInfo,
    request: &Tmpfile,
) -> Result<CreateReply> {
    let cred = view::credentials(&request.cred)?;
    let dir = Fid(request.parent);
    let parent = view::changeable(txn, &cred, dir)?;
    let mode = FileType::Regular.mode_bits() | request.mode & 0o7777;
    let new = NewInode { parent: dir, mode, umask: request.umask, cred: &cred };
    let (fid, mut inode) = namespace::make(txn, &parent, &new)?;
    (inode.nlink, inode.parent) = (0, 0);
    inode.layout = Some(mds.place(txn, &None, &parent)?);
    txn.put_raw(keys::orphan(fid), Some(Vec::new()));
    Ok(ops::create::open_new(txn, info, fid, inode, request.flags, request.handle))
}
