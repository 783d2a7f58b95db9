//! `Fsync` and `SyncTarget`: stable storage.

use crate::ops::written;
use crate::{Mds, Result};
use weft_model::Fid;
use weft_rpc::CallInfo;
use weft_rpc::pb::Empty;
use weft_rpc::pb::mds::{Fsync, UpdateWritten};

/// Takes over what was written, then returns when the target's log is on stable storage.
///
/// # Errors
/// Those of the store.
pub fn run(mds: &Mds, info: &CallInfo, request: &Fsync) -> Result<Empty> {
    let observed = written::observe(mds, Fid(request.fid), &request.written)?;
    let update =
        UpdateWritten { fid: request.fid, written: request.written.clone(), returned: false };
    let now = mds.env.now();
    mds.committer
        .transact(info.client, now, |txn| written::plan(txn, mds, info, &update, observed))?;
    sync_target(mds)
}

/// Returns when everything acknowledged before is on stable storage.
///
/// # Errors
/// Those of the store.
pub fn sync_target(mds: &Mds) -> Result<Empty> {
    mds.committer.sync()?;
    Ok(Empty {})
}
