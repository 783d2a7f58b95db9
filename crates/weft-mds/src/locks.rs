//! Advisory locks of all clients: byte ranges (fcntl) and whole files (flock), in memory.
//!
//! Waiting is the client's: it asks again, when it has been told that it may be worth while
//! ([`crate::lock_waits`]) or after a pause. A waiter keeps its place in the queue of the file as long
//! as it asks often enough, so that locks are given in the order asked for, and so that circles of
//! waiters are found (fcntl only, as POSIX wants).

use std::collections::HashMap;
use std::time::Duration;
use weft_model::{ClientId, ErrorKind, Fid, Result};

/// A waiter that has not asked for this long has gone.
const WAITER_PATIENCE: Duration = Duration::from_millis(500);
/// Locks of one file; a bound on what one client can make the server keep.
const MAX_LOCKS: usize = 65_536;

/// Whose lock: an owner within a session.
pub type Owner = (ClientId, u64);

/// One lock, held or wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lock {
    /// Who holds or wants it.
    pub owner: Owner,
    /// Exclusive.
    pub write: bool,
    /// First byte.
    pub start: u64,
    /// Last byte, included.
    pub end: u64,
    /// Process, to be shown to others.
    pub pid: u32,
}

impl Lock {
    fn overlaps(&self, other: &Lock) -> bool {
        self.start <= other.end && other.start <= self.end
    }

    fn conflicts(&self, other: &Lock) -> bool {
        self.owner != other.owner && (self.write || other.write) && self.overlaps(other)
    }
}

/// Which of the two families; they do not see each other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Family {
    /// Byte ranges.
    Posix,
    /// Whole files.
    Flock,
}

#[derive(Default)]
struct FileLocks {
    held: Vec<Lock>,
    waiting: Vec<(Lock, Duration)>,
}

impl FileLocks {
    /// The place of a wish in the queue.
    fn place_of(&self, wanted: &Lock) -> Option<usize> {
        self.waiting.iter().position(|(waiter, _)| same(waiter, wanted))
    }

    /// Whether a lock is in the way, or somebody who came first.
    fn blocks(&self, wanted: &Lock) -> bool {
        let queue = &self.waiting[..self.place_of(wanted).unwrap_or(self.waiting.len())];
        // Whoever holds a part already may go on: making it queue behind others would lock both out.
        let holds = self.held.iter().any(|held| held.owner == wanted.owner);
        self.held.iter().any(|held| held.conflicts(wanted))
            || !holds && queue.iter().any(|(first, _)| first.conflicts(wanted))
    }
}

/// The locks of all files.
#[derive(Default)]
pub struct LockTable {
    files: HashMap<(Fid, Family), FileLocks>,
}

impl LockTable {
    /// Tries to take a lock. False: it is not free; with `wait` the place in the queue is kept.
    ///
    /// # Errors
    /// `Deadlock` when waiting would close a circle, `NoMemory` at the bound.
    pub fn lock(
        &mut self,
        fid: Fid,
        family: Family,
        wanted: Lock,
        wait: bool,
        now: Duration,
    ) -> Result<bool> {
        let file = self.files.entry((fid, family)).or_default();
        file.waiting.retain(|(_, seen)| now.saturating_sub(*seen) < WAITER_PATIENCE);
        if file.held.len() >= MAX_LOCKS {
            return Err(ErrorKind::NoMemory.into());
        }
        let ahead = file.place_of(&wanted);
        if !file.blocks(&wanted) {
            if let Some(at) = ahead {
                file.waiting.remove(at);
            }
            put(&mut file.held, wanted, family);
            return Ok(true);
        }
        if wait {
            match ahead {
                Some(at) => file.waiting[at].1 = now,
                None => file.waiting.push((wanted, now)),
            }
            if family == Family::Posix && self.closes_circle(wanted.owner) {
                self.cancel(fid, family, &wanted);
                return Err(ErrorKind::Deadlock.into());
            }
        }
        Ok(false)
    }

    /// Whether one who waits could have the lock now. It counts as having asked.
    pub fn is_free(&mut self, fid: Fid, family: Family, wanted: &Lock, now: Duration) -> bool {
        let Some(file) = self.files.get_mut(&(fid, family)) else { return true };
        if let Some(at) = file.place_of(wanted) {
            file.waiting[at].1 = now;
        }
        file.waiting.retain(|(_, seen)| now.saturating_sub(*seen) < WAITER_PATIENCE);
        !file.blocks(wanted)
    }

    /// Gives up waiting.
    pub fn cancel(&mut self, fid: Fid, family: Family, wanted: &Lock) {
        if let Some(file) = self.files.get_mut(&(fid, family)) {
            file.waiting.retain(|(w, _)| !same(w, wanted));
        }
        self.drop_empty(fid, family);
    }

    /// Releases a range.
    pub fn unlock(&mut self, fid: Fid, family: Family, range: Lock) {
        if let Some(file) = self.files.get_mut(&(fid, family)) {
            cut(&mut file.held, &range);
        }
        self.drop_empty(fid, family);
    }

    /// The first held lock that stands in the way of `wanted`.
    pub fn test(&self, fid: Fid, family: Family, wanted: &Lock) -> Option<Lock> {
        let file = self.files.get(&(fid, family))?;
        file.held
            .iter()
            .filter(|held| held.conflicts(wanted))
            .min_by_key(|held| held.start)
            .copied()
    }

    /// Releases everything a session holds and waits for.
    pub fn drop_client(&mut self, client: ClientId) {
        self.files.retain(|_, file| {
            file.held.retain(|lock| lock.owner.0 != client);
            file.waiting.retain(|(lock, _)| lock.owner.0 != client);
            !file.held.is_empty() || !file.waiting.is_empty()
        });
    }

    /// Number of held locks.
    pub fn len(&self) -> usize {
        self.files.values().map(|file| file.held.len()).sum()
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn drop_empty(&mut self, fid: Fid, family: Family) {
        let empty = |file: &FileLocks| file.held.is_empty() && file.waiting.is_empty();
        if self.files.get(&(fid, family)).is_some_and(empty) {
            self.files.remove(&(fid, family));
        }
    }

    /// Whether following "waits for the holder of" from `start` leads back to it.
    fn closes_circle(&self, start: Owner) -> bool {
        let mut to_visit = vec![start];
        let mut seen = vec![];
        while let Some(owner) = to_visit.pop() {
            for ((_, family), file) in &self.files {
                if *family != Family::Posix {
                    continue;
                }
                for (wanted, _) in file.waiting.iter().filter(|(w, _)| w.owner == owner) {
                    for held in file.held.iter().filter(|held| held.conflicts(wanted)) {
                        if held.owner == start {
                            return true;
                        }
                        if !seen.contains(&held.owner) {
                            seen.push(held.owner);
                            to_visit.push(held.owner);
                        }
                    }
                }
            }
        }
        false
    }
}

/// Whether two wishes are the same one, asked for again.
fn same(a: &Lock, b: &Lock) -> bool {
    (a.owner, a.write, a.start, a.end) == (b.owner, b.write, b.start, b.end)
}

/// Adds a lock, replacing what its owner held in the range and joining neighbours of the same kind.
fn put(held: &mut Vec<Lock>, mut lock: Lock, family: Family) {
    if family == Family::Flock {
        held.retain(|other| other.owner != lock.owner);
        return held.push(lock);
    }
    cut(held, &lock);
    held.retain(|other| {
        let touches = other.end.checked_add(1) == Some(lock.start)
            || lock.end.checked_add(1) == Some(other.start);
        let joins = other.owner == lock.owner && other.write == lock.write && touches;
        if joins {
            lock.start = lock.start.min(other.start);
            lock.end = lock.end.max(other.end);
        }
        !joins
    });
    held.push(lock);
}

/// Takes a range out of what its owner holds.
fn cut(held: &mut Vec<Lock>, range: &Lock) {
    let mut rest = Vec::new();
    held.retain(|lock| {
        if lock.owner != range.owner || !lock.overlaps(range) {
            return true;
        }
        if lock.start < range.start {
            rest.push(Lock { end: range.start - 1, ..*lock });
        }
        if lock.end > range.end {
            rest.push(Lock { start: range.end + 1, ..*lock });
        }
        false
    });
    held.extend(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: Fid = Fid::ROOT;
    const POSIX: Family = Family::Posix;

    fn lock(owner: u64, write: bool, start: u64, end: u64) -> Lock {
        Lock { owner: (ClientId(owner), owner), write, start, end, pid: 1 }
    }

    fn take(table: &mut LockTable, lock: Lock, wait: bool) -> Result<bool> {
        table.lock(FILE, POSIX, lock, wait, Duration::ZERO)
    }

    #[test]
    fn readers_share_writers_do_not() {
        let mut table = LockTable::default();
        assert!(take(&mut table, lock(1, false, 0, 9), false).unwrap());
        assert!(take(&mut table, lock(2, false, 5, 15), false).unwrap());
        assert!(!take(&mut table, lock(3, true, 9, 9), false).unwrap());
        assert!(take(&mut table, lock(3, true, 16, 20), false).unwrap());
        assert_eq!(table.test(FILE, POSIX, &lock(4, true, 12, 30)).unwrap().owner.1, 2);
        table.drop_client(ClientId(2));
        assert!(!take(&mut table, lock(3, true, 9, 9), false).unwrap());
        table.unlock(FILE, POSIX, lock(1, false, 9, 9));
        assert!(take(&mut table, lock(3, true, 9, 9), false).unwrap());
    }

    #[test]
    fn ranges_split_and_join() {
        let mut table = LockTable::default();
        take(&mut table, lock(1, true, 0, 99), false).unwrap();
        table.unlock(FILE, POSIX, lock(1, true, 40, 59));
        assert_eq!(table.len(), 2);
        take(&mut table, lock(1, true, 40, 59), false).unwrap();
        assert_eq!(table.len(), 1);
        take(&mut table, lock(1, false, 10, 19), false).unwrap();
        assert_eq!(table.len(), 3);
        table.unlock(FILE, POSIX, lock(1, true, 0, u64::MAX));
        assert!(table.is_empty() && table.files.is_empty());
    }

    #[test]
    fn waiters_are_served_in_order_and_forgotten_when_silent() {
        let mut table = LockTable::default();
        let at = Duration::from_millis;
        let (a, b, c) = (lock(1, true, 0, 9), lock(2, true, 0, 9), lock(3, true, 0, 9));
        assert!(table.lock(FILE, POSIX, a, true, at(0)).unwrap());
        assert!(!table.lock(FILE, POSIX, b, true, at(1)).unwrap());
        table.unlock(FILE, POSIX, a);
        assert!(!table.lock(FILE, POSIX, c, true, at(2)).unwrap());
        assert!(table.lock(FILE, POSIX, b, true, at(3)).unwrap());
        table.unlock(FILE, POSIX, b);
        assert!(table.lock(FILE, POSIX, c, true, at(600)).unwrap());
    }

    #[test]
    fn circles_are_found() {
        let mut table = LockTable::default();
        take(&mut table, lock(1, true, 0, 0), true).unwrap();
        take(&mut table, lock(2, true, 1, 1), true).unwrap();
        assert!(!take(&mut table, lock(1, true, 1, 1), true).unwrap());
        let error = take(&mut table, lock(2, true, 0, 0), true).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Deadlock);
        table.unlock(FILE, POSIX, lock(2, true, 1, 1));
        assert!(take(&mut table, lock(1, true, 1, 1), true).unwrap());
    }

    #[test]
    fn flock_converts() {
        let mut table = LockTable::default();
        let flock = |t: &mut LockTable, l| t.lock(FILE, Family::Flock, l, false, Duration::ZERO);
        assert!(flock(&mut table, lock(1, false, 0, u64::MAX)).unwrap());
        assert!(flock(&mut table, lock(1, true, 0, u64::MAX)).unwrap());
        assert!(!flock(&mut table, lock(2, false, 0, u64::MAX)).unwrap());
        assert_eq!(table.len(), 1);
    }
}
