//! Locks: fcntl(2) and flock(2), as the MDT of the file grants them.
//!
//! What is held is also recorded here, so that it can be reclaimed after a restart of the MDT, and so
//! that closing files that were never locked costs nothing.

pub mod held;

use crate::client::Client;
use crate::ctx::Ctx;
use crate::inode::OpenFile;
use crate::metrics::Op;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use weft_model::{ErrorKind, Fid, FsError, Result};
use weft_rpc::pb::mds;
use weft_rpc::router::Patience;

/// End of a lock that reaches to the end of the file, whatever that will be.
pub const TO_END: u64 = i64::MAX as u64;
/// First pause between two questions of one who waits for a lock without being told when it is free;
/// doubles up to [`MAX_PAUSE`].
const MIN_PAUSE: Duration = Duration::from_millis(1);
/// Longest pause: what such a waiter may lose after a lock was given back.
const MAX_PAUSE: Duration = Duration::from_millis(50);
/// Longest that the MDT holds the request of a waiter, and so what an interrupt may have to wait.
const TOLD_WITHIN: Duration = Duration::from_millis(250);
/// Waiters that are told, each with a request that the MDT holds: a part of the requests that can be under
/// way. More of them ask now and then.
const MAX_TOLD: usize = 16;
/// Longest wait for the MDT when giving up.
const CANCEL: Duration = Duration::from_secs(2);

/// What is asked of a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockKind {
    /// Shared.
    Read,
    /// Exclusive.
    Write,
    /// Give back.
    Unlock,
}

/// A lock or a wish for one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LockRange {
    /// Who: unique in this mount (the kernel's lock owner).
    pub owner: u64,
    /// True for flock(2), which locks whole files; false for fcntl(2).
    pub flock: bool,
    /// What.
    pub kind: LockKind,
    /// First byte.
    pub start: u64,
    /// Last byte, included; [`TO_END`] for the end of the file.
    pub end: u64,
    /// Process, for those who ask who holds a lock.
    pub pid: u32,
}

impl LockRange {
    fn to_wire(self, fid: Fid, wait: bool) -> mds::Lock {
        mds::Lock {
            fid: fid.0,
            owner: self.owner,
            flock: self.flock,
            kind: match self.kind {
                LockKind::Read => 0,
                LockKind::Write => 1,
                LockKind::Unlock => 2,
            },
            start: self.start,
            end: self.end,
            pid: self.pid,
            wait,
        }
    }

    fn from_wire(lock: &mds::Lock) -> LockRange {
        LockRange {
            owner: lock.owner,
            flock: lock.flock,
            kind: match lock.kind {
                0 => LockKind::Read,
                1 => LockKind::Write,
                _ => LockKind::Unlock,
            },
            start: lock.start,
            end: lock.end,
            pid: lock.pid,
        }
    }
}

impl Client {
    /// Takes, changes or gives back a lock; with `wait`, until it can be had.
    ///
    /// # Errors
    /// `WouldBlock` without `wait`, `Deadlock` when waiting would close a circle, `Interrupted`,
    /// `Invalid` for an empty range, `Stale` when earlier locks were lost, and those of the MDT.
    pub fn lock(
        &self,
        ctx: &Ctx<'_>,
        file: &OpenFile,
        range: &LockRange,
        wait: bool,
    ) -> Result<()> {
        self.timed(Op::Lock, || {
            if range.start > range.end || range.end > TO_END {
                return Err(FsError::new(ErrorKind::Invalid, "lock"));
            }
            let patience = self.patience(ctx);
            let mut pause = MIN_PAUSE;
            while !self.try_lock(file, range, wait, &patience)? {
                if !wait {
                    return Err(FsError::new(ErrorKind::WouldBlock, "lock"));
                }
                if ctx.interrupted.is_some_and(|interrupted| interrupted()) {
                    return self.give_up(file, range);
                }
                if !self.await_lock(file, range) {
                    self.env().sleep(pause);
                    pause = (pause * 2).min(MAX_PAUSE);
                }
            }
            Ok(())
        })
    }

    /// Has the MDT tell when a lock is free, for as long as an interrupt may wait. Whether it has, or some
    /// time has passed; if not, whoever waits has to pause.
    fn await_lock(&self, file: &OpenFile, range: &LockRange) -> bool {
        let told = Told::enter(&self.told_of_locks);
        if self.config.polls_locks || told.is_none() {
            return false;
        }
        let since = self.env().monotonic();
        let lock = Some(range.to_wire(file.fid(), true));
        let request = mds::AwaitLock { lock, wait_ms: TOLD_WITHIN.as_millis() as u32 };
        // What is wrong is met again by whoever asks for the lock.
        let answer = self.ask(file.fid(), request, &Patience::of(TOLD_WITHIN));
        let waited = self.env().monotonic().saturating_sub(since);
        answer.is_ok_and(|reply| reply.free || waited >= MAX_PAUSE)
    }

    /// One question. The record is changed together with the MDT's, so that both see the changes of
    /// one file's locks in the same order.
    fn try_lock(
        &self,
        file: &OpenFile,
        range: &LockRange,
        wait: bool,
        patience: &Patience<'_>,
    ) -> Result<bool> {
        let wait = wait && range.kind != LockKind::Unlock;
        let request = range.to_wire(file.fid(), wait);
        let prepare = || Ok(file.inode.locks());
        self.keeping(file.fid(), request, patience, prepare, |mut held, answer| {
            let granted = answer?.granted;
            if granted {
                held.set(range);
                self.tell_journal(|journal| journal.locked(file.fid(), held.ranges()));
            }
            Ok(granted)
        })
    }

    fn give_up(&self, file: &OpenFile, range: &LockRange) -> Result<()> {
        let cancel = mds::CancelLock { lock: Some(range.to_wire(file.fid(), false)) };
        if let Err(error) = self.ask(file.fid(), cancel, &Patience::of(CANCEL)) {
            // A waiter that does not ask any more is forgotten by the MDT in time.
            tracing::debug!(fid = %file.fid(), %error, "cannot cancel waiting for a lock");
        }
        Err(FsError::new(ErrorKind::Interrupted, "lock"))
    }

    /// The first lock in the way of `range`, if any.
    ///
    /// # Errors
    /// Those of the MDT.
    pub fn test_lock(
        &self,
        ctx: &Ctx<'_>,
        file: &OpenFile,
        range: &LockRange,
    ) -> Result<Option<LockRange>> {
        self.timed(Op::Lock, || {
            let request = mds::TestLock { lock: Some(range.to_wire(file.fid(), false)) };
            let reply = self.ask(file.fid(), request, &self.patience(ctx))?;
            Ok(reply.conflict.as_ref().map(LockRange::from_wire))
        })
    }

    /// Gives back all fcntl(2) locks of `owner` on the file, as closing any descriptor of it does.
    ///
    /// # Errors
    /// Those of the MDT.
    pub fn release_owner(&self, ctx: &Ctx<'_>, file: &OpenFile, owner: u64) -> Result<()> {
        if !file.inode.locks().has_owner(owner, false) {
            return Ok(());
        }
        let kind = LockKind::Unlock;
        let all = LockRange { owner, flock: false, kind, start: 0, end: TO_END, pid: 0 };
        self.lock(ctx, file, &all, false)
    }
}

/// One of those who are told when a lock is free.
struct Told<'a>(&'a AtomicUsize);

impl Told<'_> {
    fn enter(count: &AtomicUsize) -> Option<Told<'_>> {
        let free = |told| (told < MAX_TOLD).then_some(told + 1);
        count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, free).ok()?;
        Some(Told(count))
    }
}

impl Drop for Told<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
