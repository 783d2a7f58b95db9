//! What goes on without a request: the periodic sync, destroying garbage, ending sessions, finishing
//! truncations after a restart. Driven by [`crate::Mds::tick`], by a thread or by the simulation.

use crate::record::{self, Garbage};
use crate::unfinished::GarbageQueue;
use crate::{Mds, check, expiry, keys, ops, truncate};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::time::Duration;
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
    // Each of these may wait for OSTs.
    if mds.is_stopping() {
        return;
    }
    log("truncations", finish_truncations(mds));
    log("expired sessions", end_expired(mds));
    mds.end_recovery_if_complete();
    log("sizes of dead clients' files", adopt_abandoned(mds));
    log("removing replaced files", remove_replaced(mds));
    log("destroying objects", destroy_garbage(mds));
    log("comparing objects with inodes", check::step(mds));
}

/// Ends sessions that have not been heard of for a lease.
fn end_expired(mds: &Mds) -> Result<()> {
    for client in mds.sessions.expired(mds.env.monotonic(), mds.settings.lease) {
        expiry::end_session(mds, client, "not heard of for longer than its lease")?;
    }
    let idle = |client| {
        let live = mds.sessions.get(client);
        live.map_or(Duration::MAX, |live| live.idle(mds.env.monotonic()))
    };
    for client in mds.committer.grants.unresponsive(idle) {
        expiry::end_session(mds, client, "others wait for files that are delegated to it")?;
        mds.committer.grants.came_back(client);
    }
    Ok(())
}

/// Finds sizes for marks whose session is gone (an OST was down when it ended).
fn adopt_abandoned(mds: &Mds) -> Result<()> {
    let clients: Vec<ClientId> = mds.unfinished.lock().clients.iter().copied().collect();
    for client in clients.into_iter().filter(|&client| mds.sessions.get(client).is_none()) {
        if expiry::adopt_writers(mds, client)? {
            mds.unfinished.lock().clients.remove(&client);
        }
    }
    Ok(())
}

/// Destroys objects of files that are gone.
fn destroy_garbage(mds: &Mds) -> Result<()> {
    loop {
        if mds.committer.with_planner(|planner| planner.garbage.must_load()) {
            let loaded = GarbageQueue::load(mds.committer.committed.kv.as_ref())?;
            mds.committer.with_planner(|planner| planner.garbage.add(loaded));
        }
        let dead = mds.committer.with_planner(|planner| planner.garbage.take(GARBAGE_STEP));
        if dead.is_empty() {
            return Ok(());
        }
        let mut left = dead.into_iter().collect();
        let outcome = destroy(mds, &mut left);
        mds.committer.with_planner(|planner| planner.garbage.put_back(left));
        outcome?;
        if mds.is_stopping() {
            return Ok(());
        }
    }
}

/// Destroys the objects of these files, and takes out those that are done with.
fn destroy(mds: &Mds, dead: &mut BTreeSet<Fid>) -> Result<()> {
    // What is planned may still fail, or have been planned anew; what is in the store has happened. And
    // what is destroyed cannot come back, so the removal of its last name must not, either.
    mds.committer.sync()?;
    let mut files = Vec::with_capacity(dead.len());
    for &fid in dead.iter() {
        let key = keys::garbage(fid);
        let Some(value) = mds.committer.committed.kv.get(&key)? else { continue };
        let layout = record::decode::<Garbage>(&key, &value)?.layout.unwrap_or_default();
        files.push((fid, Layout::try_from(layout)?));
    }
    let outcomes = mds.objects.destroy(&files);
    let (mut left, mut failed) = (BTreeSet::new(), Ok(()));
    for (&(fid, _), outcome) in files.iter().zip(outcomes) {
        if let Err(error) = outcome {
            left.insert(fid);
            failed = Err(error);
        }
    }
    mds.committer.transact(ClientId::NONE, mds.env.now(), |txn| {
        let destroyed = files.iter().filter(|(fid, _)| !left.contains(fid));
        destroyed.for_each(|(fid, _)| txn.put_raw(keys::garbage(*fid), None));
        Ok(())
    })?;
    *dead = left;
    failed
}

/// Finishes truncations that were begun before a restart, or whose client gave up on a slow OST.
fn finish_truncations(mds: &Mds) -> Result<()> {
    let files: Vec<Fid> = mds.unfinished.lock().truncations.iter().copied().collect();
    let mut files = files.into_iter().take_while(|_| !mds.is_stopping());
    files.try_for_each(|fid| truncate::redo(mds, fid))
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
    orphans.into_iter().try_for_each(|fid| remove_orphan(mds, fid))
}

/// Removes files that were replaced a while ago.
fn remove_replaced(mds: &Mds) -> Result<()> {
    let now = mds.env.monotonic();
    let due = mds.committer.with_planner(|planner| planner.lingering.take_due(now));
    due.into_iter().try_for_each(|fid| remove_orphan(mds, fid))
}

/// Removes a file without names, unless somebody has it open.
fn remove_orphan(mds: &Mds, fid: Fid) -> Result<()> {
    mds.committer.transact(ClientId::NONE, mds.env.now(), |txn| {
        match txn.find_inode(fid)? {
            Some(inode) if inode.nlink == 0 => {
                ops::close::finish(txn, fid, inode.as_ref().clone(), false)?;
            }
            _ => txn.put_raw(keys::orphan(fid), None),
        }
        Ok(())
    })
}
