//! Locks, and those who wait until one is free: a request that is held for a while, not a lock that is
//! given to somebody who may have gone.

use crate::locks::{Family, Lock, LockTable};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use weft_model::{Env, Fid};

/// Longest wait within one request.
const MAX_WAIT: Duration = Duration::from_secs(1);
/// While it waits, a waiter tells this often that it is there.
const REFRESH: Duration = Duration::from_millis(200);
/// Requests held at a time, each of them on a thread; others are answered at once.
const MAX_HELD: usize = 256;

/// The locks of an MDT.
#[derive(Default)]
pub struct Locks {
    table: Mutex<LockTable>,
    changed: Condvar,
    held: AtomicUsize,
}

impl Locks {
    /// The table, to look at.
    pub fn table(&self) -> MutexGuard<'_, LockTable> {
        self.table.lock()
    }

    /// Changes the table; whoever waits looks whether that has helped.
    pub fn change<R>(&self, change: impl FnOnce(&mut LockTable) -> R) -> R {
        let changed = change(&mut self.table.lock());
        self.changed.notify_all();
        changed
    }

    /// Waits until the lock could be had, or for `wait`. Whether it could.
    pub fn wait(
        &self,
        env: &dyn Env,
        (fid, family, wanted): (Fid, Family, &Lock),
        wait: Duration,
    ) -> bool {
        let held = Held::enter(&self.held);
        let wait = if held.is_one_too_many() { Duration::ZERO } else { wait };
        let deadline = Instant::now() + wait.min(MAX_WAIT);
        let mut table = self.table.lock();
        loop {
            if table.is_free(fid, family, wanted, env.monotonic()) {
                return true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            self.changed.wait_for(&mut table, left.min(REFRESH));
        }
    }
}

/// A request being held.
struct Held<'a>(&'a AtomicUsize);

impl Held<'_> {
    fn enter(count: &AtomicUsize) -> Held<'_> {
        count.fetch_add(1, Ordering::Relaxed);
        Held(count)
    }

    fn is_one_too_many(&self) -> bool {
        self.0.load(Ordering::Relaxed) > MAX_HELD
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
