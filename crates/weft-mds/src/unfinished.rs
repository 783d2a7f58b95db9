//! What has to be finished in the background, in memory.
//!
//! The store has it, too, for the next start. It is not looked for there again and again: in a log
//! structured store a range whose records come and go is full of tombstones, and looking through them
//! costs more than the work itself.

use crate::keys;
use std::collections::{BTreeSet, HashSet, VecDeque};
use std::ops::ControlFlow;
use std::time::Duration;
use weft_model::{ClientId, Fid, Result};
use weft_store::Kv;

/// Work left over by failures and crashes.
#[derive(Debug, Default)]
pub struct Unfinished {
    /// Files whose truncation has begun.
    pub truncations: BTreeSet<Fid>,
    /// Clients without a session that are marked as writers of some file.
    pub clients: BTreeSet<ClientId>,
}

impl Unfinished {
    /// What the store has.
    ///
    /// # Errors
    /// Those of the store.
    pub fn load(kv: &dyn Kv) -> Result<Unfinished> {
        let mut unfinished = Unfinished::default();
        let Unfinished { truncations, clients } = &mut unfinished;
        each_number(kv, keys::kind::TRUNCATION, |fid| truncations.extend([Fid(fid)]))?;
        each_number(kv, keys::kind::WRITER, |client| clients.extend([ClientId(client)]))?;
        Ok(unfinished)
    }
}

/// How long a file stays after another one has taken its last name: whoever has found it opens it
/// within this time.
const LINGER: Duration = Duration::from_secs(2);
/// Files that stay; with more, the oldest go earlier.
const MAX_LINGERING: usize = 65_536;

/// Files that lost their last name to another one and are not removed yet.
#[derive(Debug, Default)]
pub struct Lingering {
    files: HashSet<Fid>,
    /// Until when; the time of those that came since the last look is not set yet.
    until: VecDeque<(Option<Duration>, Fid)>,
}

impl Lingering {
    /// A file is being replaced.
    pub fn push(&mut self, fid: Fid) {
        if self.files.insert(fid) {
            self.until.push_back((None, fid));
        }
    }

    /// Whether a file stays.
    pub fn has(&self, fid: Fid) -> bool {
        self.files.contains(&fid)
    }

    /// Takes those whose time is over.
    pub fn take_due(&mut self, now: Duration) -> Vec<Fid> {
        let fresh = self.until.iter_mut().rev().take_while(|(until, _)| until.is_none());
        fresh.for_each(|(until, _)| *until = Some(now + LINGER));
        let early = self.until.len().saturating_sub(MAX_LINGERING);
        let due = self.until.partition_point(|(until, _)| until.is_some_and(|until| until <= now));
        let due: Vec<Fid> = self.until.drain(..due.max(early)).map(|(_, fid)| fid).collect();
        for fid in &due {
            self.files.remove(fid);
        }
        due
    }
}

/// Files kept in memory at a time.
const MAX_GARBAGE: usize = 1 << 20;

/// Files whose objects are to be destroyed, eight bytes each. With too many, the rest is in the store
/// only, and is looked for there when these are done.
#[derive(Debug, Default)]
pub struct GarbageQueue {
    files: VecDeque<Fid>,
    /// Some came since the last look.
    fresh: bool,
    /// The store has more.
    overflowed: bool,
}

impl GarbageQueue {
    /// What the store has.
    ///
    /// # Errors
    /// Those of the store.
    pub fn load(kv: &dyn Kv) -> Result<GarbageQueue> {
        let mut queue = GarbageQueue::default();
        each_number(kv, keys::kind::GARBAGE, |fid| queue.push(Fid(fid)))?;
        Ok(queue)
    }

    /// Whether the store has to be looked through now; it will have been.
    pub fn must_load(&mut self) -> bool {
        self.files.is_empty() && std::mem::take(&mut self.overflowed)
    }

    /// Adds what the store has. Some may be here already: destroying twice is the same as once.
    pub fn add(&mut self, loaded: GarbageQueue) {
        self.overflowed |= loaded.overflowed;
        self.files.extend(loaded.files);
    }

    /// A file was removed, or will be if its plan is carried out.
    pub fn push(&mut self, fid: Fid) {
        self.fresh = true;
        if self.files.len() < MAX_GARBAGE {
            self.files.push_back(fid);
        } else {
            self.overflowed = true;
        }
    }

    /// Takes up to `count`, the oldest first.
    pub fn take(&mut self, count: usize) -> Vec<Fid> {
        self.fresh = false;
        self.files.drain(..count.min(self.files.len())).collect()
    }

    /// They could not be destroyed now.
    pub fn put_back(&mut self, files: BTreeSet<Fid>) {
        self.files.extend(files);
    }

    /// Whether files were added since the last [`Self::take`].
    pub const fn is_fresh(&self) -> bool {
        self.fresh
    }
}

/// Calls `take` with the first number of every key of a kind.
fn each_number(kv: &dyn Kv, kind: u8, mut take: impl FnMut(u64)) -> Result<()> {
    kv.scan(&[kind], &[kind + 1], &mut |key, _| {
        keys::number(key).into_iter().for_each(&mut take);
        ControlFlow::Continue(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_looked_for_later() {
        let mut queue = GarbageQueue::default();
        (0..=MAX_GARBAGE as u64).for_each(|fid| queue.push(Fid(fid)));
        assert!(queue.is_fresh() && !queue.must_load());
        assert_eq!(queue.take(usize::MAX).len(), MAX_GARBAGE);
        assert!(queue.must_load() && !queue.must_load());
        let mut loaded = GarbageQueue::default();
        loaded.push(Fid(MAX_GARBAGE as u64));
        queue.add(loaded);
        assert_eq!(queue.take(1), [Fid(MAX_GARBAGE as u64)]);
        assert!(queue.take(1).is_empty() && !queue.must_load());
    }

    #[test]
    fn replaced_files_stay_for_their_time() {
        let (mut lingering, now) = (Lingering::default(), Duration::from_secs(100));
        lingering.push(Fid(1));
        assert!(lingering.take_due(now).is_empty());
        lingering.push(Fid(2));
        assert!(lingering.take_due(now + LINGER / 2).is_empty());
        assert_eq!(lingering.take_due(now + LINGER), [Fid(1)]);
        assert!(!lingering.has(Fid(1)) && lingering.has(Fid(2)));
    }
}
