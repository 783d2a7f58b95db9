//! `Open`: checks permissions and notes that the session has the file open.

use crate::opens::{OpenFile, flags};
use crate::record::Inode;
use crate::txn::Txn;
use crate::{keys, namespace, view};
use weft_model::cred::{EXEC, READ, WRITE};
use weft_model::{ClientId, Credentials, ErrorKind, Fid, FileType, Result};
use weft_rpc::CallInfo;
use weft_rpc::pb::mds::{Entry, Open};

/// Plans it. With `TRUNCATE` the permission to write is checked; cutting is a request of its own,
/// because objects have to be cut with it.
///
/// # Errors
/// `Access`, `IsDir` for writing to a directory, `NotDir`, `Stale`.
pub fn plan(txn: &mut Txn<'_>, info: &CallInfo, request: &Open) -> Result<Entry> {
    let cred = view::credentials(&request.cred)?;
    open(txn, info, &cred, Fid(request.fid), request.flags, request.handle)
}

/// Opens an existing inode.
///
/// # Errors
/// As [`plan`].
pub fn open(
    txn: &mut Txn<'_>,
    info: &CallInfo,
    cred: &Credentials,
    fid: Fid,
    wanted: u32,
    handle: u64,
) -> Result<Entry> {
    let inode = txn.inode(fid)?;
    let writes = wanted & (flags::WRITE | flags::TRUNCATE) != 0;
    match inode.kind() {
        FileType::Directory if writes => return Err(ErrorKind::IsDir.into()),
        FileType::Symlink => return Err(ErrorKind::Loop.into()),
        kind if kind != FileType::Directory && wanted & flags::DIRECTORY != 0 => {
            return Err(ErrorKind::NotDir.into());
        }
        _ => {}
    }
    let need = |flag, access| if wanted & flag != 0 { access } else { 0 };
    let access = need(flags::READ, READ) | need(flags::EXEC, EXEC) | if writes { WRITE } else { 0 };
    view::check(txn, cred, fid, &inode, access)?;
    txn.looked_at.push((fid, inode.clone()));
    let mut changed = inode.as_ref().clone();
    if note_writer(txn, info.client, fid, &mut changed, wanted) {
        txn.put_inode(fid, changed.clone());
    }
    txn.planner.opens.open(info.client, handle, OpenFile { fid, flags: wanted });
    Ok(namespace::entry_of_open(fid, &changed, info.client, !inode.writers.is_empty()))
}

/// Marks durably that the session may write beyond the size known here, so that the size is found
/// again if the session dies. True when the mark is new.
pub fn note_writer(
    txn: &mut Txn<'_>,
    client: ClientId,
    fid: Fid,
    inode: &mut Inode,
    wanted: u32,
) -> bool {
    let regular = inode.kind() == FileType::Regular;
    if !regular || wanted & flags::WRITE == 0 || inode.writers.contains(&client.0) {
        return false;
    }
    inode.writers.push(client.0);
    txn.put_raw(keys::writer(client, fid), Some(Vec::new()));
    true
}
