//! Read-ahead: what readers will want next is fetched while they are busy with what they have.
//! Design: `docs/design/0010-read-ahead.md`.
//!
//! Kept here is only what cannot have changed since it was fetched: the MDT's grant says so for other
//! clients, and [`Changing`] for this one.

mod chunks;
mod pace;
mod queue;
mod streams;

use crate::grants::Grant;
use chunks::Chunks;
pub(crate) use chunks::Look;
use pace::Pace;
pub(crate) use queue::{Job, Queue};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
pub(crate) use streams::Limits;
use streams::Streams;

use crate::inode::OpenInode;

/// What a reader says of what it is going to do; as posix_fadvise(2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Advice {
    /// Nothing in particular.
    Normal,
    /// It will read on from where it begins.
    Sequential,
    /// It will read here and there: nothing is to be read ahead.
    Random,
    /// It will read the range soon.
    WillNeed,
    /// It will not read the range again.
    DontNeed,
}

/// The word of the MDT that nobody else changes a file.
#[derive(Clone, Copy, Debug)]
struct Cover {
    grant: Grant,
    /// Size of the file as long as this client does not change it.
    size: u64,
}

/// The read-ahead of one file.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    cover: Option<Cover>,
    /// When its renewal was last asked for.
    asked: Option<Duration>,
    /// Changes of the file by this client that are under way.
    changing: u32,
    /// Counts their beginnings and ends.
    changes: u64,
    /// What readers said, by handle.
    advice: BTreeMap<u64, Advice>,
    pub(crate) streams: Streams,
    pub(crate) chunks: Chunks,
    pub(crate) pace: Pace,
}

impl Ahead {
    /// Size of the file, and for how long it is known that nobody else changes it. `left` tells how long
    /// a grant counts. What was kept under a grant that is over is dropped.
    pub(crate) fn covered(&mut self, left: impl Fn(&Grant) -> Duration) -> Option<(u64, Duration)> {
        let known = self.cover.map(|cover| (cover.size, left(&cover.grant)));
        let covered = known.filter(|(_, left)| !left.is_zero());
        if covered.is_none() {
            self.uncover();
        }
        covered
    }

    fn uncover(&mut self) {
        self.cover = None;
        self.chunks.clear();
    }

    /// Counts the beginnings and ends of changes by this client.
    pub(crate) const fn changes(&self) -> u64 {
        self.changes
    }

    /// An answer of the MDT says how large the file is, and grants something. `changes`: the count before it
    /// was asked.
    pub(crate) fn learn(
        &mut self,
        (size, grant): (u64, Grant),
        changes: u64,
        left: impl Fn(&Grant) -> Duration,
    ) {
        // What this client does meanwhile may be in the answer or not.
        if self.changing > 0 || self.changes != changes || left(&grant).is_zero() {
            return;
        }
        // One grant after the other without a gap: what was fetched under the first still counts.
        self.covered(left);
        self.cover = Some(Cover { grant, size });
    }

    /// Whether a grant is to be asked for now: not more often than `pause` says.
    pub(crate) fn ask(&mut self, now: Duration, pause: Duration) -> bool {
        let due = self.asked.is_none_or(|asked| now >= asked + pause);
        if due {
            self.asked = Some(now);
        }
        due
    }

    /// Whether this client is changing the file just now.
    pub(crate) const fn is_changing(&self) -> bool {
        self.changing > 0
    }

    /// What the reader behind a handle has said.
    pub(crate) fn advice(&self, handle: u64) -> Advice {
        self.advice.get(&handle).copied().unwrap_or(Advice::Normal)
    }

    /// The reader behind a handle says something, or nothing any more.
    pub(crate) fn advise(&mut self, handle: u64, advice: Advice) {
        match advice {
            Advice::Normal => drop(self.advice.remove(&handle)),
            advice => drop(self.advice.insert(handle, advice)),
        }
    }
}

/// This client is changing a range of a file. What is kept of it is dropped at the beginning, and nothing
/// is fetched until the end.
pub(crate) struct Changing<'a>(&'a OpenInode);

impl OpenInode {
    /// To be held while a range of the file is changed.
    pub(crate) fn changing(&self, range: Range<u64>) -> Changing<'_> {
        let mut ahead = self.ahead();
        ahead.changing += 1;
        ahead.changes += 1;
        ahead.chunks.drop_range(&range);
        if ahead.cover.is_some_and(|cover| range.end > cover.size) {
            ahead.uncover();
        }
        Changing(self)
    }
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        let mut ahead = self.0.ahead();
        ahead.changing -= 1;
        ahead.changes += 1;
    }
}

/// Bytes that all files together hold.
#[derive(Clone, Debug, Default)]
pub(crate) struct Room(Arc<AtomicU64>);

impl Room {
    /// A share for as long as it is held, unless all would be more than `most`.
    pub(crate) fn share(&self, bytes: u64, most: u64) -> Option<Share> {
        let share = Share { room: self.0.clone(), bytes };
        let held = self.0.fetch_add(bytes, Ordering::Relaxed);
        (held + bytes <= most).then_some(share)
    }

    /// Bytes held now.
    pub(crate) fn held(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A part of the room.
#[derive(Debug)]
pub(crate) struct Share {
    room: Arc<AtomicU64>,
    bytes: u64,
}

impl Drop for Share {
    fn drop(&mut self) {
        self.room.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
