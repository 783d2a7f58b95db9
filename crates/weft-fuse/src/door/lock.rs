//! Locks, and those who wait for them.
//!
//! A lock that can be had at once is answered at once. One that has to be waited for is answered
//! by a thread that does nothing else, so that waiters never keep the mount from being served.

use super::Door;
use super::complaints::Complaints;
use super::convert::{lock_found, lock_range};
use super::handle::Handle;
use crate::kernel::{Deferred, Errno, Lock, LockKind, Request, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use weft_client::{Client, Ctx, LockRange};
use weft_model::ErrorKind;

/// Most locks waited for at once.
const MAX_WAITERS: usize = 4096;
/// Stack of a waiter, bytes: what it does is shallow.
const STACK: usize = 256 << 10;

/// Those who wait for locks.
#[derive(Default)]
pub(super) struct Waiters {
    count: AtomicUsize,
    ended: AtomicBool,
}

impl Waiters {
    /// The mount is gone, and nobody waits any more.
    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    /// A place among the waiters, if there is one left.
    fn enter(self: &Arc<Self>) -> Option<Place> {
        let place = Place(self.clone());
        let before = self.count.fetch_add(1, Ordering::Relaxed);
        (before < MAX_WAITERS).then_some(place)
    }
}

/// A place among the waiters, free again when dropped.
struct Place(Arc<Waiters>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A wish for a lock, and all it takes to wait for it without the door.
struct Wait {
    client: Arc<Client>,
    complaints: Arc<Complaints>,
    handle: Arc<Handle>,
    range: LockRange,
    place: Place,
}

impl Wait {
    /// Waits and answers.
    fn run(self, reply: Deferred) {
        let ended = &self.place.0.ended;
        let interrupted = || reply.interrupted() || ended.load(Ordering::Relaxed);
        let ctx = Ctx { interrupted: Some(&interrupted), ..Ctx::root() };
        let outcome = self.client.lock(&ctx, &self.handle.file, &self.range, true);
        reply.send(outcome.map_err(|error| {
            self.complaints.note("lock", self.handle.file.fid(), &error);
            Errno::new(error.errno())
        }));
    }
}

impl Door {
    /// Answers which lock is in the way.
    pub(super) fn test_lock(&self, req: &Request<'_>, node: u64, lock: &Lock) -> Result<Lock> {
        self.act(req, "test lock", node, |ctx, _| {
            let handle = self.file(lock.fh)?;
            let found = self.client.test_lock(ctx, &handle.file, &lock_range(lock))?;
            Ok(lock_found(lock, found))
        })
    }

    /// Sets a lock, or has it waited for.
    pub(super) fn set_lock(
        &self,
        req: &Request<'_>,
        node: u64,
        lock: &Lock,
        wait: bool,
        reply: Deferred,
    ) {
        let range = lock_range(lock);
        let tried = self.act(req, "lock", node, |ctx, _| {
            let handle = self.file(lock.fh)?;
            if !lock.flock && lock.kind != LockKind::Unlock {
                handle.note_owner(lock.owner);
            }
            match self.client.lock(ctx, &handle.file, &range, false) {
                Err(error) if error.kind == ErrorKind::WouldBlock && wait => Ok(Some(handle)),
                outcome => outcome.map(|()| None),
            }
        });
        match tried {
            Ok(Some(handle)) => self.wait(handle, range, reply),
            Ok(None) => reply.send(Ok(())),
            Err(errno) => reply.send(Err(errno)),
        }
    }

    fn wait(&self, handle: Arc<Handle>, range: LockRange, reply: Deferred) {
        let Some(place) = self.waiters.enter() else { return reply.send(Err(Errno::ENOLCK)) };
        let (client, complaints) = (self.client.clone(), self.complaints.clone());
        let wait = Wait { client, complaints, handle, range, place };
        let thread = std::thread::Builder::new().name("weft-lock".into()).stack_size(STACK);
        // A thread that cannot be started drops the reply, which answers `EIO`.
        if let Err(error) = thread.spawn(move || wait.run(reply)) {
            tracing::warn!(%error, "cannot start a thread to wait for a lock");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiters_are_bounded() {
        let waiters = Arc::new(Waiters::default());
        let places: Vec<Place> = (0..MAX_WAITERS).map(|_| waiters.enter().unwrap()).collect();
        assert!(waiters.enter().is_none());
        drop(places);
        assert!(waiters.enter().is_some());
    }
}
