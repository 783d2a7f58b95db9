//! The way to an MDT: a session that is opened again when the MDT does not know it (any more).
//!
//! After a restart of the MDT, open handles and locks are reclaimed. When the session had expired, its
//! locks are lost: another client may have had them since, so files that were locked answer `Stale`
//! until they are closed.

use crate::client::Client;
use crate::ctx::Ctx;
use crate::inode::OpenInode;
use crate::wait;
use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use weft_model::{Env, ErrorKind, Fid, FsError, Result, TargetId};
use weft_rpc::pb::{self, mds};
use weft_rpc::router::Patience;
use weft_rpc::{Bulk, Message};

/// Times a request is repeated because one instance of the MDT does not know the session, before the
/// error goes to the caller.
const MAX_REOPENS: u32 = 8;
/// Between two tries to reclaim from an MDT that keeps restarting.
const GATE_POLL: Duration = Duration::from_millis(2);
/// Handles or locks in one Reclaim message.
const RECLAIM_BATCH: usize = 4096;

/// The sessions of a mount, by MDT.
#[derive(Default)]
pub struct Sessions {
    by_mdt: Mutex<BTreeMap<TargetId, Arc<Session>>>,
}

/// The session with one MDT.
pub struct Session {
    mdt: TargetId,
    /// Shared by requests that change what a reclaim would tell, for the request and its bookkeeping;
    /// exclusive while the session is opened and reclaimed.
    gate: RwLock<()>,
    /// Times opened; 0 means not yet.
    opened: AtomicU64,
    /// Of the MDT, when last opened.
    instance: AtomicU64,
    lease_ms: AtomicU64,
    /// For how long the session counts after it was last heard of.
    pub(crate) delegation_ms: AtomicU64,
    /// Until when it counts for certain, milliseconds on our clock.
    pub(crate) counts_until_ms: AtomicU64,
}

impl Sessions {
    pub(crate) fn get(&self, mdt: TargetId) -> Arc<Session> {
        let mut by_mdt = self.by_mdt.lock();
        let session = by_mdt.entry(mdt).or_insert_with(|| {
            Arc::new(Session {
                mdt,
                gate: RwLock::new(()),
                opened: AtomicU64::new(0),
                instance: AtomicU64::new(0),
                lease_ms: AtomicU64::new(0),
                delegation_ms: AtomicU64::new(0),
                counts_until_ms: AtomicU64::new(0),
            })
        });
        session.clone()
    }

    /// The MDTs with an open session.
    pub(crate) fn opened(&self) -> Vec<TargetId> {
        let by_mdt = self.by_mdt.lock();
        let open = by_mdt.values().filter(|s| s.opened.load(Ordering::Acquire) > 0);
        open.map(|session| session.mdt).collect()
    }

    /// The shortest lease of all sessions.
    pub(crate) fn lease(&self) -> Option<Duration> {
        let by_mdt = self.by_mdt.lock();
        let leases = by_mdt.values().map(|s| s.lease_ms.load(Ordering::Relaxed));
        leases.filter(|&ms| ms > 0).min().map(Duration::from_millis)
    }
}

impl Session {
    /// Enters as one of many; others may be in, unless the session is being opened.
    fn enter(&self, env: &dyn Env, patience: &Patience<'_>) -> Result<RwLockReadGuard<'_, ()>> {
        wait::take(env, patience, "wait for session", || self.gate.try_read())
    }

    fn enter_alone(
        &self,
        env: &dyn Env,
        patience: &Patience<'_>,
    ) -> Result<RwLockWriteGuard<'_, ()>> {
        wait::take(env, patience, "wait for session", || self.gate.try_write())
    }
}

impl Client {
    /// The MDT of an inode.
    ///
    /// # Errors
    /// `Stale` when no MDT owns it: the number is not one of this file system.
    pub(crate) fn mdt_of(&self, fid: Fid) -> Result<TargetId> {
        if let Some(mdt) = self.map().mdt_of(fid) {
            return Ok(mdt);
        }
        // Its sequence may have been leased since our map was made.
        self.router.refresh_map()?;
        self.map().mdt_of(fid).ok_or_else(|| {
            FsError::new(ErrorKind::Stale, "find inode").on(format_args!("fid={fid}"))
        })
    }

    /// Asks the MDT of `fid`, opening the session again where needed.
    pub(crate) fn ask<M: Message>(
        &self,
        fid: Fid,
        message: M,
        patience: &Patience<'_>,
    ) -> Result<M::Reply> {
        self.ask_mdt(self.mdt_of(fid)?, message, patience)
    }

    /// Asks an MDT, opening the session again where needed.
    pub(crate) fn ask_mdt<M: Message>(
        &self,
        mdt: TargetId,
        message: M,
        patience: &Patience<'_>,
    ) -> Result<M::Reply> {
        let request = message.into_request();
        let number = self.router.number(mdt, &request);
        self.in_session(mdt, patience, |_| {
            M::reply(self.router.call_as(&number, mdt, &request, Bulk::None, patience)?)
        })
    }

    /// Asks on behalf of a caller; asks again with the supplementary groups when they are needed.
    pub(crate) fn ask_as<M: Message>(
        &self,
        ctx: &Ctx<'_>,
        fid: Fid,
        build: impl Fn(Option<pb::Credentials>) -> M,
    ) -> Result<M::Reply> {
        self.with_groups(ctx, |cred| self.ask(fid, build(Some(cred)), &self.patience(ctx)))
    }

    /// As [`Self::ask_as`], for requests that change what a reclaim would tell: `keep` takes note of
    /// the reply before a reclaim can come between.
    pub(crate) fn ask_and_keep<M: Message, T>(
        &self,
        ctx: &Ctx<'_>,
        fid: Fid,
        build: impl Fn(Option<pb::Credentials>) -> M,
        keep: impl Fn(M::Reply) -> Result<T>,
    ) -> Result<T> {
        let patience = self.patience(ctx);
        self.with_groups(ctx, |cred| {
            self.keeping(fid, build(Some(cred)), &patience, || Ok(()), |(), reply| keep(reply?))
        })
    }

    /// Within the session's gate: `prepare`, the request, then `keep` with its answer.
    pub(crate) fn keeping<M: Message, P, T>(
        &self,
        fid: Fid,
        message: M,
        patience: &Patience<'_>,
        prepare: impl Fn() -> Result<P>,
        keep: impl Fn(P, Result<M::Reply>) -> Result<T>,
    ) -> Result<T> {
        let mdt = self.mdt_of(fid)?;
        let request = message.into_request();
        let number = self.router.number(mdt, &request);
        self.in_session(mdt, patience, |session| {
            let _gate = session.enter(self.env(), patience)?;
            let prepared = prepare()?;
            let answer = self.router.call_as(&number, mdt, &request, Bulk::None, patience);
            if matches!(&answer, Err(error) if error.kind == ErrorKind::NoSession) {
                return Err(ErrorKind::NoSession.into());
            }
            keep(prepared, answer.and_then(M::reply))
        })
    }

    fn with_groups<T>(
        &self,
        ctx: &Ctx<'_>,
        ask: impl Fn(pb::Credentials) -> Result<T>,
    ) -> Result<T> {
        match ask((&ctx.cred).into()) {
            Err(error) if error.kind == ErrorKind::NeedGroups && ctx.cred.groups.is_none() => {
                let mut cred = ctx.cred.clone();
                cred.groups = Some((ctx.groups)());
                ask((&cred).into())
            }
            answer => answer,
        }
    }

    fn in_session<T>(
        &self,
        mdt: TargetId,
        patience: &Patience<'_>,
        attempt: impl Fn(&Session) -> Result<T>,
    ) -> Result<T> {
        let session = self.sessions.get(mdt);
        let (mut reopens, mut instance) = (0, 0);
        loop {
            let seen = session.opened.load(Ordering::Acquire);
            if instance != session.instance.load(Ordering::Acquire) {
                // An MDT that keeps restarting is waited for like one that is down.
                (reopens, instance) = (0, session.instance.load(Ordering::Acquire));
            }
            let sent = self.env().monotonic();
            let lost = match attempt(&session) {
                Err(error) if error.kind == ErrorKind::NoSession => error,
                answer => {
                    if answer.is_ok() {
                        session.heard(sent);
                    }
                    return answer;
                }
            };
            reopens += 1;
            if reopens > MAX_REOPENS {
                return Err(lost);
            }
            match self.reopen(&session, seen, patience) {
                Err(error) if error.kind == ErrorKind::NoSession => {}
                other => other?,
            }
        }
    }

    /// Opens the session with an MDT for the first time.
    pub(crate) fn open_session(&self, mdt: TargetId, patience: &Patience<'_>) -> Result<()> {
        self.reopen(&self.sessions.get(mdt), 0, patience)
    }

    /// Opens the session unless somebody has done so since it had been opened `seen` times.
    fn reopen(&self, session: &Session, seen: u64, patience: &Patience<'_>) -> Result<()> {
        let _gate = session.enter_alone(self.env(), patience)?;
        if session.opened.load(Ordering::Acquire) != seen {
            return Ok(());
        }
        loop {
            match self.open_and_reclaim(session, seen, patience) {
                // The MDT has restarted once more meanwhile. It is waited for like one that is down.
                Err(error) if error.kind == ErrorKind::NoSession && patience.limit.is_none() => {
                    if patience.interrupted.is_some_and(|interrupted| interrupted()) {
                        return Err(FsError::new(ErrorKind::Interrupted, "open session"));
                    }
                    self.env().sleep(GATE_POLL);
                }
                outcome => return outcome,
            }
        }
    }

    fn open_and_reclaim(
        &self,
        session: &Session,
        seen: u64,
        patience: &Patience<'_>,
    ) -> Result<()> {
        let request = mds::OpenSession {
            caches: self.config.caches,
            delegations: self.config.delegations,
            host: self.config.host.clone(),
            mountpoint: self.config.mountpoint.clone(),
        };
        let reply = self.router.ask(session.mdt, request, patience)?;
        let restarted = session.instance.load(Ordering::Relaxed) != reply.instance;
        if seen > 0 {
            self.metrics.count_reopened();
            tracing::info!(mdt = %session.mdt, restarted, known = reply.known, "session reopened");
        }
        // One that is known the first time has outlived the MDT that opened it and lost the answer.
        if reply.known && restarted || seen > 0 && !reply.known {
            self.reclaim(session.mdt, reply.known, patience)?;
        }
        session.instance.store(reply.instance, Ordering::Relaxed);
        session.lease_ms.store(reply.lease_ms.into(), Ordering::Relaxed);
        session.delegation_ms.store(reply.delegation_ms.into(), Ordering::Relaxed);
        session.opened.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Tells the MDT what this client has: after its restart everything; where it does not know the
    /// session any more, the open handles only.
    fn reclaim(&self, mdt: TargetId, known: bool, patience: &Patience<'_>) -> Result<()> {
        let inodes = self.inodes.of_mdt(|fid| self.map().mdt_of(fid) == Some(mdt));
        if !known {
            inodes.iter().for_each(|inode| self.lose(inode));
        }
        let opens: Vec<_> = inodes.iter().flat_map(|inode| inode.open_handles()).collect();
        let locks: Vec<_> = inodes.iter().flat_map(|inode| inode.held_locks()).collect();
        let appends: Vec<_> = inodes.iter().filter_map(|inode| inode.append_under_way()).collect();
        let delegated = inodes.iter().filter(|inode| inode.is_delegated());
        let delegated: Vec<u64> = delegated.map(|inode| inode.fid().0).collect();
        let mut messages: Vec<mds::Reclaim> = Vec::new();
        for appends in appends.chunks(RECLAIM_BATCH) {
            messages.push(mds::Reclaim { appends: appends.to_vec(), ..Default::default() });
        }
        for opens in opens.chunks(RECLAIM_BATCH) {
            messages.push(mds::Reclaim { opens: opens.to_vec(), ..Default::default() });
        }
        for locks in locks.chunks(RECLAIM_BATCH) {
            messages.push(mds::Reclaim { locks: locks.to_vec(), ..Default::default() });
        }
        for delegations in delegated.chunks(RECLAIM_BATCH) {
            messages.push(mds::Reclaim { delegations: delegations.to_vec(), ..Default::default() });
        }
        messages.push(mds::Reclaim { done: true, ..Default::default() });
        for message in messages {
            let has_locks = !message.locks.is_empty();
            let has_delegations = !message.delegations.is_empty();
            match self.router.ask(mdt, message, patience) {
                Ok(_) => {}
                // Refused for good: somebody else has got them.
                Err(error) if has_locks && is_refusal(error.kind) => {
                    tracing::warn!(%mdt, %error, "locks lost");
                    inodes.iter().for_each(|inode| inode.lose_locks());
                }
                Err(error) if has_delegations && is_refusal(error.kind) => {
                    tracing::warn!(%mdt, %error, "delegations lost");
                    inodes.iter().for_each(|inode| self.lose_delegation(inode));
                }
                Err(error) => return Err(error),
            }
        }
        if known { Ok(()) } else { self.look_for_removed(mdt, &inodes, patience) }
    }

    /// Without the session nothing has kept open files that lost their last name.
    fn look_for_removed(
        &self,
        mdt: TargetId,
        inodes: &[Arc<OpenInode>],
        patience: &Patience<'_>,
    ) -> Result<()> {
        for inode in inodes {
            let look = mds::GetAttr { fid: inode.fid().0, want_layout: false };
            match self.router.ask(mdt, look, patience) {
                Err(error) if error.kind == ErrorKind::Stale => inode.note_removed(),
                answer => drop(answer?),
            }
        }
        Ok(())
    }

    /// What a file had from a session that has ended.
    fn lose(&self, inode: &OpenInode) {
        inode.lose_locks();
        self.lose_delegation(inode);
    }

    fn lose_delegation(&self, inode: &OpenInode) {
        let dropped = inode.lose_delegation();
        self.behind.count(dropped, 0);
    }
}

const fn is_refusal(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Busy | ErrorKind::Invalid | ErrorKind::Stale)
}
