//! What goes on without a request: the periodic sync, destroying garbage, ending sessions, finishing
//! truncations after a restart. Driven by [`crate::Mds::tick`], by a thread or by the simulation.

use crate::record::{self, Garbage, Truncation};
use crate::{Mds, expiry, keys, ops, truncate};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use weft_model::{ClientId, Fid, Layout, Result};

/// Files destroyed per step, so that a step ends in reasonable time.
const GARBAGE_STEP: usize = 256;

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
    log("destroying objects", destroy_garbage(mds));
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
    let mut clients = BTreeSet::new();
    let end = [keys::kind::WRITER + 1];
    let mut from = vec![keys::kind::WRITER];
    // One look per client, not one per file.
    loop {
        let mut found = None;
        mds.committer.committed.kv.scan(&from, &end, &mut |key, _| {
            found = keys::number(key).map(ClientId);
            ControlFlow::Break(())
        })?;
        let Some(client) = found else { break };
        from = weft_store::kv::prefix_end(&keys::writers(client));
        clients.insert(client);
    }
    clients.retain(|&client| mds.sessions.get(client).is_none());
    clients.into_iter().try_for_each(|client| expiry::adopt_writers(mds, client))
}

/// Destroys objects of files that are gone.
fn destroy_garbage(mds: &Mds) -> Result<()> {
    mds.committer.with_planner(|planner| planner.new_garbage = false);
    loop {
        let prefix = [keys::kind::GARBAGE];
        let mut found: Vec<(Fid, Garbage)> = Vec::new();
        let end = weft_store::kv::prefix_end(&prefix);
        mds.committer.committed.kv.scan(&prefix, &end, &mut |key, value| {
            if let (Some(fid), Ok(garbage)) = (keys::number(key), record::decode(key, value)) {
                found.push((Fid(fid), garbage));
            }
            if found.len() < GARBAGE_STEP {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })?;
        if !found.is_empty() {
            // What is destroyed cannot come back, so the removal of its last name must not, either.
            mds.committer.sync()?;
        }
        for (fid, garbage) in &found {
            if let Some(layout) = garbage.layout.clone() {
                mds.objects.destroy(*fid, &Layout::try_from(layout)?)?;
            }
        }
        mds.committer.transact(mds.env.now(), |txn| {
            found.iter().for_each(|(fid, _)| txn.put_raw(keys::garbage(*fid), None));
            Ok(())
        })?;
        if found.len() < GARBAGE_STEP || mds.is_stopping() {
            return Ok(());
        }
    }
}

/// Finishes truncations that were begun before a restart, or whose client gave up on a slow OST.
fn finish_truncations(mds: &Mds) -> Result<()> {
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
