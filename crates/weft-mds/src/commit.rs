//! The commit path: plan under one lock, write in groups, answer when written.
//!
//! A request is planned by the thread that brought it, under the planner's lock, against what is
//! committed and what is planned before it; its changes join the pending group. Then one of the
//! waiting threads takes the whole group and writes it as one batch, without the planner's lock, so
//! that the next group fills meanwhile. Nobody else is woken for a request that is alone.
//!
//! Readers outside see committed state only: a group is published to the cache after its batch is in
//! the log. So no answer ever rests on something that a crash could take back.
//!
//! The planner's lock is never held over a write to the store, an fsync or a network wait. Design:
//! `docs/design/0001-commit-path.md`.

use crate::committed::Committed;
use crate::grants::{Claim, Conflict, Grants};
use crate::txn::{Group, Planner, Txn};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use weft_model::{ClientId, FsError, Result, Timespec};

/// When a change is acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Durability {
    /// When it is in the log in the page cache: survives `kill -9`. A power cut takes back what was
    /// acknowledged since the last background sync (some milliseconds) and not fsynced.
    #[default]
    Cache,
    /// When it is on stable storage; concurrent requests share the sync.
    Sync,
}

/// Plans and commits.
pub struct Committer {
    /// What is committed.
    pub committed: Committed,
    /// What sessions keep of it.
    pub grants: Grants,
    planner: Mutex<Planner>,
    /// Held by the thread that writes a group.
    writer: Mutex<()>,
    /// Every generation up to this has been written or has failed.
    settled: AtomicU64,
    failures: Mutex<Vec<Failure>>,
    syncer: Mutex<()>,
    written_lsn: AtomicU64,
    synced_lsn: AtomicU64,
    durability: Durability,
}

/// Generations that could not be written.
struct Failure {
    first: u64,
    last: u64,
    error: FsError,
}

/// Records that may wait to be written.
const MAX_LAZY: usize = 4096;
/// Failures remembered: every waiting thread finds its own long before as many have followed.
const MAX_FAILURES: usize = 64;

impl Committer {
    /// Starts from what is in the store.
    pub fn new(
        committed: Committed,
        grants: Grants,
        planner: Planner,
        durability: Durability,
    ) -> Committer {
        Committer {
            committed,
            grants,
            settled: AtomicU64::new(planner.generation - 1),
            planner: Mutex::new(planner),
            writer: Mutex::new(()),
            failures: Mutex::default(),
            syncer: Mutex::new(()),
            written_lsn: AtomicU64::new(0),
            synced_lsn: AtomicU64::new(0),
            durability,
        }
    }

    /// Plans a request of `by` ([`ClientId::NONE`] for the MDT itself) and returns when its changes are
    /// as durable as the target promises. When the plan fails, nothing is changed. It is made again
    /// when others have to be told of the change first.
    ///
    /// # Errors
    /// Those of the plan, and of the store: `NoSpace` and nothing happened, `Poisoned`.
    pub fn transact<R>(
        &self,
        by: ClientId,
        now: Timespec,
        plan: impl FnMut(&mut Txn<'_>) -> Result<R>,
    ) -> Result<R> {
        self.persist(by, now, plan, false)
    }

    /// Plans a request whose changes a crash may take back without harm, and returns before they are
    /// written: they go with the next group, or with the next sync. Readers see them at once.
    ///
    /// Only for what nobody can tell from its not having happened.
    ///
    /// # Errors
    /// As [`Self::transact`].
    pub fn transact_lazily<R>(
        &self,
        by: ClientId,
        now: Timespec,
        plan: impl FnMut(&mut Txn<'_>) -> Result<R>,
    ) -> Result<R> {
        self.persist(by, now, plan, self.durability == Durability::Cache)
    }

    /// Tries until nobody has to be told of the change first.
    fn persist<R>(
        &self,
        by: ClientId,
        now: Timespec,
        mut plan: impl FnMut(&mut Txn<'_>) -> Result<R>,
        lazily: bool,
    ) -> Result<R> {
        loop {
            match self.attempt(by, now, &mut plan, lazily) {
                Ok(answer) => return answer,
                Err(conflict) => self.grants.resolve(conflict),
            }
        }
    }

    fn attempt<R>(
        &self,
        by: ClientId,
        now: Timespec,
        plan: &mut impl FnMut(&mut Txn<'_>) -> Result<R>,
        lazily: bool,
    ) -> Result<Result<R>, Conflict> {
        let mut planner = self.planner.lock();
        let mut txn = Txn::new(&mut planner, &self.committed, now);
        let answer = plan(&mut txn);
        let (quiet, saw_uncommitted) = (txn.is_read_only(), txn.saw_uncommitted);
        for (fid, inode) in &txn.looked_at {
            self.grants.look(*fid, &inode.writers, by)?;
        }
        let visibly = lazily && !saw_uncommitted;
        let _claim: Claim<'_>;
        match &answer {
            Ok(_) if !quiet => {
                _claim = self.grants.claim(by, txn.changed_inodes())?;
                if visibly { txn.stage_visibly() } else { txn.stage() }
            }
            _ if !saw_uncommitted => return Ok(answer),
            // An error, too, may rest on something that is not committed yet: wait for that.
            _ => {}
        }
        let generation = planner.generation;
        let full = planner.pending.len() >= MAX_LAZY;
        drop(planner);
        if visibly && !full {
            return Ok(answer);
        }
        let mut settled = self.settle(generation);
        if self.durability == Durability::Sync && !quiet {
            settled = settled.and_then(|()| self.sync());
        }
        Ok(settled.and(answer))
    }

    /// Writes what was planned lazily.
    fn flush(&self) -> Result<()> {
        let generation = {
            let planner = self.planner.lock();
            if planner.pending.is_empty() {
                return Ok(());
            }
            planner.generation
        };
        self.settle(generation)
    }

    /// Changes or reads what is kept in memory only.
    pub fn with_planner<R>(&self, action: impl FnOnce(&mut Planner) -> R) -> R {
        action(&mut self.planner.lock())
    }

    /// Returns when the group `generation` is in the log, writing it if nobody else does.
    fn settle(&self, generation: u64) -> Result<()> {
        while self.settled.load(Ordering::Acquire) < generation {
            let _writing = self.writer.lock();
            if self.settled.load(Ordering::Acquire) < generation {
                self.write_pending();
            }
        }
        let failures = self.failures.lock();
        match failures.iter().find(|f| (f.first..=f.last).contains(&generation)) {
            Some(failure) => Err(failure.error.again()),
            None => Ok(()),
        }
    }

    /// Writes what is pending. The caller holds the writer's lock.
    fn write_pending(&self) {
        let (group, generation) = {
            let mut planner = self.planner.lock();
            let group = Arc::new(std::mem::take(&mut planner.pending));
            planner.committing = Some(group.clone());
            planner.generation += 1;
            (group, planner.generation - 1)
        };
        let written = self.write(&group);
        let mut planner = self.planner.lock();
        planner.committing = None;
        let mut settled = generation;
        if let Err(error) = written {
            // What was planned meanwhile may rest on what has just failed, so it fails, too.
            group.forget(&self.committed);
            std::mem::take(&mut planner.pending).forget(&self.committed);
            settled = planner.generation;
            planner.generation += 1;
            let mut failures = self.failures.lock();
            if failures.len() == MAX_FAILURES {
                failures.remove(0);
            }
            failures.push(Failure { first: generation, last: settled, error });
        }
        self.settled.store(settled, Ordering::Release);
    }

    fn write(&self, group: &Group) -> Result<()> {
        if group.is_empty() {
            return Ok(());
        }
        let lsn = self.committed.kv.write(&group.batch())?;
        self.written_lsn.fetch_max(lsn, Ordering::AcqRel);
        group.publish(&self.committed);
        Ok(())
    }

    /// Returns when everything acknowledged before is on stable storage. Concurrent callers share.
    ///
    /// # Errors
    /// Those of the store; it takes itself out of service after a failed sync.
    pub fn sync(&self) -> Result<()> {
        self.flush()?;
        let wanted = self.written_lsn.load(Ordering::Acquire);
        if self.synced_lsn.load(Ordering::Acquire) >= wanted {
            return Ok(());
        }
        let _syncing = self.syncer.lock();
        if self.synced_lsn.load(Ordering::Acquire) >= wanted {
            return Ok(());
        }
        let synced = self.committed.kv.sync()?;
        self.synced_lsn.fetch_max(synced.max(wanted), Ordering::AcqRel);
        Ok(())
    }
}
