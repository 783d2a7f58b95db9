//! `OpenSession`, `RenewSession`, `CloseSession`, `Reclaim`: coming, staying, going, coming back.

use crate::opens::OpenFile;
use crate::record::Session;
use crate::sessions::Live;
use crate::txn::Txn;
use crate::{Mds, expiry, grants, keys, ops};
use prost::Message as _;
use std::sync::atomic::Ordering;
use weft_model::{ClientId, ErrorKind, Fid, FsError, Result};
use weft_rpc::CallInfo;
use weft_rpc::pb::{Empty, mds};

/// Opens a session, or finds the one the client had before this MDT restarted. In the latter case the
/// client may make requests once it has reclaimed what it had.
///
/// # Errors
/// `Invalid` without a client id, `Overloaded`, those of the store.
pub fn open(
    mds: &Mds,
    info: &CallInfo,
    request: &mds::OpenSession,
) -> Result<mds::OpenSessionReply> {
    if info.client == ClientId::NONE {
        return Err(FsError::new(ErrorKind::Invalid, "open session")
            .because("register with the manager first"));
    }
    let now = mds.env.monotonic();
    let known = mds.sessions.get(info.client);
    if let Some(live) = &known {
        live.hear(now);
        live.greeted.store(true, Ordering::Release);
    } else {
        let record = Session {
            host: request.host.clone(),
            mountpoint: request.mountpoint.clone(),
            local: !info.wire,
            caches: request.caches,
            delegations: request.delegations,
        };
        let stored = record.encode_to_vec();
        mds.committer.transact(info.client, mds.env.now(), |txn| {
            txn.put_raw(keys::session(info.client), Some(stored.clone()));
            Ok(())
        })?;
        mds.sessions.insert(info.client, Live::new(record, true, now))?;
        tracing::info!(client = %info.client, host = request.host, "session opened");
    }
    if request.caches {
        mds.committer.grants.open(info.client);
    }
    if request.delegations {
        mds.committer.grants.take_part_in_delegations(info.client);
    }
    Ok(mds::OpenSessionReply {
        instance: mds.instance,
        lease_ms: mds.settings.lease.as_millis() as u32,
        recovering: mds.is_recovering(),
        known: known.is_some(),
        delegation_ms: grants::LIFE.as_millis() as u32,
    })
}

/// Notes that the client is alive.
///
/// # Errors
/// `NoSession`.
pub fn renew(mds: &Mds, info: &CallInfo) -> Result<Empty> {
    mds.sessions.present(info.client, mds.env.monotonic())?;
    Ok(Empty {})
}

/// Tells the session which grants it has to give back.
///
/// # Errors
/// `NoSession`; `Invalid` from a session that keeps nothing.
pub fn await_recalls(
    mds: &Mds,
    info: &CallInfo,
    request: &mds::AwaitRecalls,
) -> Result<mds::AwaitRecallsReply> {
    let told = mds.committer.grants.await_recalls(info.client, request);
    told.ok_or_else(|| {
        FsError::new(ErrorKind::Invalid, "await recalls").because("the session keeps nothing")
    })
}

/// Ends a session and everything it held. One that is not known has ended already.
///
/// # Errors
/// Those of the store.
pub fn close(mds: &Mds, info: &CallInfo) -> Result<Empty> {
    expiry::end_session(mds, info.client, "closed")?;
    Ok(Empty {})
}

/// Takes back what the client had open and locked before the restart.
///
/// # Errors
/// `NoSession` when the session is not known at all or was not opened since this MDT started, those of
/// the locks.
pub fn reclaim(mds: &Mds, info: &CallInfo, request: &mds::Reclaim) -> Result<Empty> {
    let live = mds.sessions.get(info.client);
    let live = live.filter(|live| live.greeted.load(Ordering::Acquire));
    let live = live.ok_or(ErrorKind::NoSession)?;
    live.hear(mds.env.monotonic());
    mds.committer.transact(info.client, mds.env.now(), |txn| {
        request.opens.iter().try_for_each(|open| take_back(txn, info.client, open))
    })?;
    for lock in &request.locks {
        ops::lock::reclaim(mds, info, lock)?;
    }
    request.appends.iter().for_each(|append| mds.reservations.take_back(append));
    take_back_delegations(mds, info.client, &request.delegations)?;
    if request.done {
        expiry::adopt_closed(mds, info.client)?;
        mds.committer.grants.came_back(info.client);
        live.present.store(true, Ordering::Release);
        tracing::info!(client = %info.client, "session reclaimed");
        mds.end_recovery_if_complete();
    }
    Ok(Empty {})
}

/// All of them, or none.
fn take_back_delegations(mds: &Mds, client: ClientId, fids: &[u64]) -> Result<()> {
    let grants = &mds.committer.grants;
    let taken = |&&fid: &&u64| grants.reclaim_delegation(Fid(fid), client);
    let Some(refused) = fids.iter().find(|fid| !taken(fid)) else { return Ok(()) };
    fids.iter().for_each(|&fid| grants.return_delegation(Fid(fid), client));
    Err(FsError::new(ErrorKind::Stale, "reclaim delegations")
        .on(format_args!("fid={}", Fid(*refused)))
        .because("others may have had the file meanwhile"))
}

/// Notes a file as open, as it was before a restart.
///
/// # Errors
/// Those of the store.
pub fn take_back(txn: &mut Txn<'_>, client: ClientId, open: &mds::OpenHandle) -> Result<()> {
    let fid = Fid(open.fid);
    // One that went with the power stays open, too: its objects are the client's as long as it has them.
    if let Some(inode) = txn.find_inode(fid)? {
        let mut changed = inode.as_ref().clone();
        if ops::open::note_writer(txn, client, fid, &mut changed, open.flags) {
            txn.put_inode(fid, changed);
        }
    }
    txn.planner.opens.open(client, open.handle, OpenFile { fid, flags: open.flags });
    Ok(())
}
