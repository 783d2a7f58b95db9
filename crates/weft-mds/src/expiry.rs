//! The end of a session, asked for or because the client is gone: handles are closed, locks dropped,
//! and the sizes of files it may have written are read from their objects.

use crate::ops::written::Observed;
use crate::record::Inode;
use crate::{Mds, keys, ops};
use std::ops::ControlFlow;
use weft_model::{ClientId, ErrorKind, Fid, FsError, Result};

/// Ends a session. What cannot be finished now (an OST is down) is kept marked, and is finished by
/// [`adopt_writers`] later.
///
/// # Errors
/// Those of the store.
pub fn end_session(mds: &Mds, client: ClientId, why: &str) -> Result<()> {
    if mds.sessions.remove(client).is_none() {
        return Ok(());
    }
    tracing::info!(%client, why, "session ended");
    mds.unfinished.lock().clients.insert(client);
    mds.committer.grants.close(client);
    mds.locks.change(|table| table.drop_client(client));
    for handle in mds.committer.with_planner(|planner| planner.opens.of_client(client)) {
        close_handle(mds, client, handle)?;
    }
    let replies = keys::replies(client);
    let mut saved = Vec::new();
    mds.committer.committed.kv.scan(
        &replies,
        &weft_store::kv::prefix_end(&replies),
        &mut |k, _| {
            saved.push(k.to_vec());
            ControlFlow::Continue(())
        },
    )?;
    mds.committer.transact(ClientId::NONE, mds.env.now(), |txn| {
        txn.put_raw(keys::session(client), None);
        saved.iter().for_each(|key| txn.put_raw(key.clone(), None));
        Ok(())
    })?;
    if adopt_writers(mds, client)? {
        mds.unfinished.lock().clients.remove(&client);
    }
    Ok(())
}

/// Closes one handle without a report; the writer's mark stays until the size is known.
fn close_handle(mds: &Mds, client: ClientId, handle: u64) -> Result<()> {
    let open = mds.committer.with_planner(|planner| planner.opens.get(client, handle));
    let Some(file) = open else { return Ok(()) };
    mds.committer.transact(ClientId::NONE, mds.env.now(), |txn| {
        txn.planner.opens.close(client, handle);
        if let Some(inode) = txn.find_inode(file.fid)?
            && inode.nlink == 0
        {
            ops::close::finish(txn, file.fid, inode.as_ref().clone(), false)?;
        }
        Ok(())
    })
}

/// Finds the sizes of all files that a session without a client may have written. Whether all are
/// known now: an OST that does not answer leaves the file marked.
///
/// # Errors
/// Those of the store.
pub fn adopt_writers(mds: &Mds, client: ClientId) -> Result<bool> {
    let mut all = true;
    for fid in marked(mds, client)? {
        if mds.is_stopping() {
            return Ok(false);
        }
        if let Err(error) = find_size(mds, client, fid) {
            tracing::warn!(%error, %fid, "size of a dead client's file not known yet");
            all = false;
        }
    }
    Ok(all)
}

/// After a restart: takes away the marks of files that a client has closed, without having written to
/// them, just before the crash (see [`crate::commit::Committer::transact_lazily`]).
///
/// # Errors
/// When an OST does not answer; the client has to reclaim again.
pub fn adopt_closed(mds: &Mds, client: ClientId) -> Result<()> {
    for fid in marked(mds, client)? {
        if !mds.committer.with_planner(|planner| planner.opens.writes(client, fid)) {
            find_size(mds, client, fid)?;
        }
    }
    Ok(())
}

fn marked(mds: &Mds, client: ClientId) -> Result<Vec<Fid>> {
    let prefix = keys::writers(client);
    let mut marked = Vec::new();
    mds.committer.committed.kv.scan(
        &prefix,
        &weft_store::kv::prefix_end(&prefix),
        &mut |k, _| {
            marked.extend(keys::last_number(k).map(Fid));
            ControlFlow::Continue(())
        },
    )?;
    Ok(marked)
}

fn find_size(mds: &Mds, client: ClientId, fid: Fid) -> Result<()> {
    let Some(inode) = mds.committer.committed.inode(fid)? else {
        return adopt(mds, client, fid, None);
    };
    // Objects of an inline file are void.
    let size = if inode.inline { inode.size } else { mds.objects.size(fid, &inode)? };
    adopt(mds, client, fid, Some(Observed { size, size_epoch: inode.size_epoch }))
}

fn adopt(mds: &Mds, client: ClientId, fid: Fid, observed: Option<Observed>) -> Result<()> {
    mds.committer.transact(ClientId::NONE, mds.env.now(), |txn| {
        txn.put_raw(keys::writer(client, fid), None);
        let Some(inode) = txn.find_inode(fid)? else { return Ok(()) };
        let mut inode: Inode = inode.as_ref().clone();
        if observed.is_none_or(|observed| observed.size_epoch != inode.size_epoch) {
            return Err(FsError::new(ErrorKind::NotReady, "find size")
                .on(format_args!("fid={fid}"))
                .because("the file was truncated meanwhile"));
        }
        inode.writers.retain(|&writer| writer != client.0);
        if let Some(Observed { size, .. }) = observed.filter(|seen| seen.size > inode.size) {
            inode.size = size;
            inode.touch_entries(txn.now);
        }
        inode.touched = true;
        txn.put_inode(fid, inode);
        Ok(())
    })
}
