//! `Create`: makes a regular file and opens it, or opens the one that is there.

use crate::namespace::{self, NewInode};
use crate::opens::OpenFile;
use crate::record::Inode;
use crate::txn::Txn;
use crate::{Mds, ops, view};
use weft_model::{ErrorKind, Fid, FileType, Result, name};
use weft_rpc::CallInfo;
use weft_rpc::pb::mds::{Create, CreateReply};

/// Plans it. An existing file is opened without being cut; the client cuts it afterwards if it was
/// asked to, as with `Open`.
///
/// # Errors
/// `Exists` if exclusive, `NotFound`, `NotDir`, `IsDir`, `Access`, `NoSpace`.
pub fn plan(
    txn: &mut Txn<'_>,
    mds: &Mds,
    info: &CallInfo,
    request: &Create,
) -> Result<CreateReply> {
    name::check(&request.name)?;
    let cred = view::credentials(&request.cred)?;
    let dir = Fid(request.parent);
    view::searchable(txn, &cred, dir)?;
    if let Some(dirent) = txn.find_dirent(dir, &request.name)? {
        if request.exclusive {
            return Err(ErrorKind::Exists.into());
        }
        let fid = Fid(dirent.fid);
        let entry = ops::open::open(txn, info, &cred, fid, request.flags, request.handle)?;
        return Ok(CreateReply { entry: Some(entry), created: false });
    }
    let parent = view::changeable(txn, &cred, dir)?;
    let mode = FileType::Regular.mode_bits() | request.mode & 0o7777;
    let new = NewInode { parent: dir, mode, umask: request.umask, cred: &cred };
    let (fid, mut inode) = namespace::make(txn, &parent, &new)?;
    inode.name = request.name.clone();
    inode.layout = Some(mds.place(txn, &request.layout, &parent)?);
    namespace::attach(txn, dir, &parent, &request.name, fid, FileType::Regular);
    Ok(open_new(txn, info, fid, inode, request.flags, request.handle))
}

/// Opens a file that was just made: whatever its mode says, its maker may do what it asked for.
pub fn open_new(
    txn: &mut Txn<'_>,
    info: &CallInfo,
    fid: Fid,
    mut inode: Inode,
    flags: u32,
    handle: u64,
) -> CreateReply {
    ops::open::note_writer(txn, info.client, fid, &mut inode, flags);
    txn.planner.opens.open(info.client, handle, OpenFile { fid, flags });
    let entry = namespace::entry_of_open(fid, &inode, info.client, false);
    txn.put_inode(fid, inode);
    CreateReply { entry: Some(entry), created: true }
}
