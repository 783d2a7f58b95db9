//! What goes on without a request: the periodic sync, destroying garbage, ending sessions, finishing
//! truncations after a restart. Driven by [`crate::Mds::tick`], by a thread or by the simulation.
//!
//! What there is to do is kept in memory, and looked for in the store after a start only: a scan steps over
//! everything that was removed from its range lately, which for marks and garbage is a lot.

use crate::record::{self, Truncation};
use crate::{Mds, expiry, garbage, keys, ops, truncate};
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use weft_model::{Fid, Result};

/// One step. Errors are logged: each of these is tried again at the next step.
pub fn tick(mds: &Mds) {
    let log = |what: &str, result: Result<()>| {
        if let Err(error) = result {
            tracing::warn!(%error, target_id = %mds.target, "{what} not finished, will be tried again");
        }
    };
    log("truncations", finish_truncations(mds));
    log("expired sessions", end_expired(mds));
    mds.end_recovery_if_complete();
    log("sizes of dead clients' files", adopt_abandoned(mds));
    log("destroying objects", garbage::destroy(mds));
}

/// Ends sessions that have not been heard of for a lease.
fn end_expired(mds: &Mds) -> Result<()> {
    for client in mds.sessions.expired(mds.env.monotonic(), mds.settings.lease) {
        expiry::end_session(mds, client, "not heard of for longer than its lease")?;
    }
    Ok(())
}

/// Finds sizes for marks whose session is gone (an OST was down when it ended).
fn adopt_abandoned(mds: &Mds) -> Result<()> {
    let abandoned = mds.abandoned.lock().clone();
    for client in abandoned {
        // One that has come back ends anew at some time.
        if mds.sessions.get(client).is_some() || expiry::adopt_writers(mds, client)? {
            mds.abandoned.lock().remove(&client);
        }
    }
    Ok(())
}

/// Finishes truncations that were begun before a restart, or whose client gave up on a slow OST.
fn finish_truncations(mds: &Mds) -> Result<()> {
    if !mds.truncations_left.swap(false, Ordering::AcqRel) {
        return Ok(());
    }
    redo_truncations(mds).inspect_err(|_| mds.truncations_left.store(true, Ordering::Release))
}

fn redo_truncations(mds: &Mds) -> Result<()> {
    let prefix = [keys::kind::TRUNCATION];
    let mut found: Vec<(Fid, Truncation)> = Vec::new();
    let end = weft_store::kv::prefix_end(&prefix);
    mds.committer.committed.kv.scan(&prefix, &end, &mut |key, value| {
        if let (Some(fid), Ok(intent)) = (keys::number(key), record::decode(key, value)) {
            found.push((Fid(fid), intent));
        }
        ControlFlow::Continue(())
    })?;
    found.into_iter().try_for_each(|(fid, intent)| truncate::redo(mds, fid, intent))
}

/// Removes unlinked files that nobody had open, once all clients have come back.
///
/// # Errors
/// Those of the store.
pub fn sweep_orphans(mds: &Mds) -> Result<()> {
    let prefix = [keys::kind::ORPHAN];
    let mut orphans: Vec<Fid> = Vec::new();
    let end = weft_store::kv::prefix_end(&prefix);
    mds.committer.committed.kv.scan(&prefix, &end, &mut |key, _| {
        orphans.extend(keys::number(key).map(Fid));
        ControlFlow::Continue(())
    })?;
    for fid in orphans {
        mds.committer.transact(mds.env.now(), |txn| {
            match txn.find_inode(fid)? {
                Some(inode) if inode.nlink == 0 => {
                    ops::close::finish(txn, fid, inode.as_ref().clone(), false)?;
                }
                _ => txn.put_raw(keys::orphan(fid), None),
            }
            Ok(())
        })?;
    }
    Ok(())
}
