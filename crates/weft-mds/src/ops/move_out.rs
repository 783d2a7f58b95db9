//! `MoveOut`: the bytes of a small file go to its objects, for good.
//!
//! 1. One transaction notes that there may be objects, so that they are destroyed with the file.
//! 2. Objects that an earlier try has left are cut; the bytes are written to them, and synced.
//! 3. One transaction: the inode is not inline any more, the record goes; it is synced.
//!
//! Until step 3 the record counts, and nobody has been told to write to the objects. A file that was never
//! synced needs no sync here, as long as it is delegated to who asks: should a power cut take step 3 back,
//! that session's next report (`Written.inline` not set) repeats it, and until then nobody else is let in.

use crate::record::Inode;
use crate::txn::Txn;
use crate::{Mds, inline, view};
use weft_model::{ErrorKind, Fid, FsError, Layout, Result};
use weft_rpc::CallInfo;
use weft_rpc::pb::{Empty, mds::MoveOut};

/// Moves them. Nothing to do if they are not here.
///
/// # Errors
/// `BadHandle` when the session has not opened the file for writing; `Checksum`; `NotReady` or `TimedOut`
/// when an OST does not answer, `NoSpace`: everything is as before then.
pub fn run(mds: &Mds, info: &CallInfo, request: &MoveOut) -> Result<Empty> {
    let fid = Fid(request.fid);
    if !mds.committer.with_planner(|planner| planner.opens.writes(info.client, fid)) {
        return Err(
            FsError::new(ErrorKind::BadHandle, "move data out").on(format_args!("fid={fid}"))
        );
    }
    let _busy = mds.truncating.enter(&*mds.env, fid)?;
    let mut committed = &mds.committer.committed;
    let inode = view::inode(&mut committed, fid)?;
    if !inode.inline {
        return Ok(Empty {});
    }
    let held = inline::load(&mut committed, fid, &inode)?;
    let layout: Layout = inode.layout.clone().unwrap_or_default().try_into()?;
    match inode.touched {
        true => mds.objects.truncate(fid, &layout, 0)?,
        false => change(mds, info, fid, |_, inode| {
            inode.touched = true;
            Ok(())
        })?,
    }
    let unsynced = request.unsynced && mds.committer.grants.is_delegated_to(fid, info.client);
    mds.objects.write(fid, &layout, &held.data, !unsynced)?;
    change(mds, info, fid, |txn, inode| {
        if inode.inline && inline::load(txn, fid, inode)? != held {
            return Err(FsError::new(ErrorKind::NotReady, "move data out")
                .because("the file was written meanwhile"));
        }
        inline::leave(txn, fid, inode);
        Ok(())
    })?;
    if !unsynced {
        mds.committer.sync()?;
    }
    Ok(Empty {})
}

/// Changes an inode, unless it is gone.
fn change(
    mds: &Mds,
    info: &CallInfo,
    fid: Fid,
    change: impl Fn(&mut Txn<'_>, &mut Inode) -> Result<()>,
) -> Result<()> {
    mds.committer.transact(info.client, mds.env.now(), |txn| {
        let Some(inode) = txn.find_inode(fid)? else { return Ok(()) };
        let mut inode = inode.as_ref().clone();
        change(txn, &mut inode)?;
        txn.put_inode(fid, inode);
        Ok(())
    })
}
