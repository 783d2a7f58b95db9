//! `Close`: the end of an open, with what was written under it.

use crate::ops::written;
use crate::record::Inode;
use crate::txn::Txn;
use crate::{Mds, keys, namespace};
use weft_model::{ClientId, Fid, Result};
use weft_rpc::CallInfo;
use weft_rpc::pb::{Empty, mds::Close};

/// Plans it. Closing what is not open is no error: the request may be a repetition.
///
/// # Errors
/// Those of the store.
pub fn plan(
    txn: &mut Txn<'_>,
    mds: &Mds,
    info: &CallInfo,
    request: &Close,
    observed: Option<written::Observed>,
) -> Result<Empty> {
    let fid = Fid(request.fid);
    let Some(inode) = txn.find_inode(fid)? else {
        txn.planner.opens.close(info.client, request.handle);
        return Ok(Empty {});
    };
    let mut changed = inode.as_ref().clone();
    let dirty = written::apply(txn, mds, info, (fid, &mut changed), &request.written, observed)?;
    txn.planner.opens.close(info.client, request.handle);
    let written = forget_writer(txn, info.client, fid, &mut changed);
    if dirty && !written && changed.nlink > 0 && written::is_access_only(&request.written) {
        txn.put_accessed(fid, changed);
        return Ok(Empty {});
    }
    finish(txn, fid, changed, dirty || written)
}

/// Takes the mark away when the session has no handle left that can write.
pub fn forget_writer(txn: &mut Txn<'_>, client: ClientId, fid: Fid, inode: &mut Inode) -> bool {
    let Some(at) = inode.writers.iter().position(|&writer| writer == client.0) else {
        return false;
    };
    if txn.planner.opens.writes(client, fid) {
        return false;
    }
    inode.writers.swap_remove(at);
    txn.put_raw(keys::writer(client, fid), None);
    true
}

/// Stores the inode, or removes it when it has neither names nor opens left.
///
/// # Errors
/// Those of the store.
pub fn finish(txn: &mut Txn<'_>, fid: Fid, inode: Inode, dirty: bool) -> Result<Empty> {
    let planner = &txn.planner;
    let kept = planner.opens.is_open(fid) || planner.recovering || planner.lingering.has(fid);
    if inode.nlink == 0 && !kept {
        txn.put_raw(keys::orphan(fid), None);
        namespace::remove(txn, fid, &inode)?;
    } else if dirty {
        txn.put_inode(fid, inode);
    }
    Ok(Empty {})
}
