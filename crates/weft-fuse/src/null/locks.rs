//! POSIX and BSD locks of the null file system.

use crate::kernel::{Deferred, Errno, Lock, LockKind};

/// A lock on a node.
#[derive(Clone, Copy)]
struct Held {
    node: u64,
    lock: Lock,
}

impl Held {
    fn overlaps(&self, other: &Held) -> bool {
        self.node == other.node
            && self.lock.flock == other.lock.flock
            && self.lock.start <= other.lock.end
            && other.lock.start <= self.lock.end
    }

    fn same_owner(&self, other: &Held) -> bool {
        self.lock.owner == other.lock.owner
    }

    fn conflicts(&self, other: &Held) -> bool {
        let exclusive = |held: &Held| held.lock.kind == LockKind::Exclusive;
        self.overlaps(other) && !self.same_owner(other) && (exclusive(self) || exclusive(other))
    }

    /// What is left of this lock outside the range of `cut`.
    fn without(self, cut: &Lock) -> impl Iterator<Item = Held> {
        let below = (self.lock.start < cut.start)
            .then(|| Held { lock: Lock { end: cut.start - 1, ..self.lock }, ..self });
        let above = (self.lock.end > cut.end)
            .then(|| Held { lock: Lock { start: cut.end + 1, ..self.lock }, ..self });
        below.into_iter().chain(above)
    }
}

/// All locks, and those who wait for one.
#[derive(Default)]
pub(super) struct Locks {
    held: Vec<Held>,
    waiting: Vec<(Held, Deferred)>,
}

impl Locks {
    /// A lock in the way of `lock`.
    pub(super) fn conflict(&self, node: u64, lock: &Lock) -> Option<Lock> {
        let wanted = Held { node, lock: *lock };
        self.held.iter().find(|held| held.conflicts(&wanted)).map(|held| held.lock)
    }

    /// Sets or removes a lock, or has it wait.
    pub(super) fn set(&mut self, node: u64, lock: Lock, wait: bool, reply: Deferred) {
        let wanted = Held { node, lock };
        let free = lock.kind == LockKind::Unlock || self.conflict(node, &lock).is_none();
        if free {
            self.place(wanted);
            reply.send(Ok(()));
            self.retry();
        } else if wait {
            self.waiting.push((wanted, reply));
            self.give_up_interrupted();
        } else {
            reply.send(Err(Errno::EAGAIN));
        }
    }

    /// Drops all locks of one kind that an owner has on a node.
    pub(super) fn drop_owner(&mut self, node: u64, owner: u64, flock: bool) {
        let of_owner = |held: &Held| (held.node, held.lock.owner, held.lock.flock);
        self.held.retain(|held| of_owner(held) != (node, owner, flock));
        self.retry();
    }

    /// Drops the POSIX locks that were taken through an open file and outlived it: those that
    /// belong to the open file itself (`F_OFD_SETLK`), of whose end the kernel tells nothing.
    pub(super) fn drop_handle(&mut self, node: u64, fh: u64) {
        let through = |held: &Held| (held.node, held.lock.fh, held.lock.flock);
        self.held.retain(|held| through(held) != (node, fh, false));
        self.retry();
    }

    /// Gives up on waiters that were interrupted.
    pub(super) fn give_up_interrupted(&mut self) {
        for (_, reply) in self.waiting.extract_if(.., |(_, reply)| reply.interrupted()) {
            reply.send(Err(Errno::EINTR));
        }
    }

    /// Replaces the owner's locks in the range.
    fn place(&mut self, wanted: Held) {
        let own = |held: &mut Held| held.overlaps(&wanted) && held.same_owner(&wanted);
        let replaced: Vec<Held> = self.held.extract_if(.., own).collect();
        self.held.extend(replaced.into_iter().flat_map(|held| held.without(&wanted.lock)));
        if wanted.lock.kind != LockKind::Unlock {
            self.held.push(wanted);
        }
    }

    /// Grants what has become free, first come first served.
    fn retry(&mut self) {
        for (wanted, reply) in std::mem::take(&mut self.waiting) {
            self.set(wanted.node, wanted.lock, true, reply);
        }
    }
}
