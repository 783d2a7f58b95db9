//! What the MDTs have granted this client, and what they have called back.
//!
//! Nothing is kept here but the log of recalls: a grant travels with what it was granted for, and the
//! log tells whether it still counts. Design: `docs/design/0004-grants.md`.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use weft_model::Fid;

/// Recalls remembered. A grant outlives its recall in the log only by a term, so this is far more than
/// there can be of any use.
const MAX_LOGGED: usize = 65_536;

/// A promise about an inode: that it, or the names in it, stay as they are for a while.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grant {
    fid: Fid,
    /// On the monotonic clock.
    until: Duration,
    /// Recalls known when it was asked for.
    seen: u64,
}

impl Grant {
    /// No promise.
    pub const NONE: Grant = Grant { fid: Fid(0), until: Duration::ZERO, seen: 0 };
}

/// When something was asked for: what grants in the answer are counted from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    at: Duration,
    seen: u64,
    /// Own reports known when it was asked.
    reports: u64,
    /// Own changes of directories known then.
    changes: u64,
}

impl Asked {
    /// A grant of `ms` milliseconds in the answer.
    pub(crate) fn grant(&self, fid: Fid, ms: u32) -> Grant {
        if ms == 0 {
            return Grant::NONE;
        }
        Grant { fid, until: self.at + Duration::from_millis(ms.into()), seen: self.seen }
    }
}

/// The log of recalls.
#[derive(Default)]
pub(crate) struct Grants {
    /// Recalls so far.
    seen: AtomicU64,
    log: Mutex<Log>,
    /// Own reports of writes so far.
    reports: AtomicU64,
    /// Own changes of directories so far whose answers did not tell what they have changed.
    changes: AtomicU64,
}

#[derive(Default)]
struct Log {
    /// Number of the last recall of an inode.
    last: HashMap<Fid, u64>,
    /// Recalls up to this one may be missing in `last`.
    forgotten: u64,
}

impl Grants {
    /// Before a request is sent.
    pub(crate) fn ask(&self, now: Duration) -> Asked {
        let reports = self.reports.load(Ordering::Acquire);
        let changes = self.changes.load(Ordering::Acquire);
        Asked { at: now, seen: self.seen.load(Ordering::Acquire), reports, changes }
    }

    /// How long a grant still counts. Zero from the moment it is recalled.
    pub(crate) fn left(&self, grant: &Grant, now: Duration) -> Duration {
        let left = grant.until.saturating_sub(now);
        if left.is_zero() {
            return left;
        }
        if self.last_recall(grant.fid) > grant.seen { Duration::ZERO } else { left }
    }

    /// A report of own writes was answered; before they are forgotten here.
    pub(crate) fn note_report(&self) {
        self.reports.fetch_add(1, Ordering::AcqRel);
    }

    /// Whether own writes may have been reported and forgotten since something was asked for, so that an
    /// answer from before the report would be taken for the whole truth.
    pub(crate) fn has_reported_since(&self, asked: &Asked) -> bool {
        self.reports.load(Ordering::Acquire) != asked.reports
    }

    /// This client has changed a directory, nobody knows how.
    pub(crate) fn note_change(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
    }

    /// Whether it may have done so since something was asked for.
    pub(crate) fn has_changed_since(&self, asked: &Asked) -> bool {
        self.changes.load(Ordering::Acquire) != asked.changes
    }

    /// Whether the inode was recalled since something was asked for.
    pub(crate) fn is_recalled(&self, fid: Fid, asked: &Asked) -> bool {
        self.last_recall(fid) > asked.seen
    }

    /// Number of the last recall of an inode, or of one that may have been its.
    fn last_recall(&self, fid: Fid) -> u64 {
        let log = self.log.lock();
        log.last.get(&fid).copied().unwrap_or(0).max(log.forgotten)
    }

    /// From now on grants of this inode that were asked for before do not count.
    pub(crate) fn void(&self, fid: Fid) {
        let mut log = self.log.lock();
        let number = self.seen.load(Ordering::Relaxed) + 1;
        if log.last.len() >= MAX_LOGGED {
            log.last.clear();
            log.forgotten = number;
        }
        log.last.insert(fid, number);
        self.seen.store(number, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recall_voids_what_was_asked_for_before_it() {
        let grants = Grants::default();
        let (fid, other) = (Fid(7), Fid(8));
        let now = Duration::from_secs(5);
        let before = grants.ask(now);
        grants.void(fid);
        let after = grants.ask(now);
        assert_eq!(grants.left(&before.grant(fid, 1000), now), Duration::ZERO);
        assert_eq!(grants.left(&after.grant(fid, 1000), now), Duration::from_secs(1));
        assert_eq!(grants.left(&before.grant(other, 1000), now), Duration::from_secs(1));
        assert_eq!(grants.left(&after.grant(fid, 1000), now * 2), Duration::ZERO);
        assert_eq!(grants.left(&after.grant(fid, 0), now), Duration::ZERO);
    }

    #[test]
    fn a_forgotten_recall_still_voids() {
        let grants = Grants::default();
        let before = grants.ask(Duration::ZERO);
        (0..=MAX_LOGGED as u64).for_each(|number| grants.void(Fid(number)));
        assert!(grants.log.lock().last.len() <= MAX_LOGGED);
        let grant = before.grant(Fid(0), 1000);
        assert_eq!(grants.left(&grant, Duration::ZERO), Duration::ZERO);
    }
}
