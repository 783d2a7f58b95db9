//! `Append`: reserves the end of a file for one append, so that appends of all clients follow each
//! other.
//!
//! The end is the largest of: the size known here, what the asker has written or seen on the OSTs,
//! and what was reserved before. A session that alone writes the file knows the size; otherwise it
//! has to look at the objects first. Reservations live in memory; after a restart, clients tell the places
//! that their appends under way were given, and until all have, nobody is given one.

use crate::Mds;
use crate::txn::Txn;
use parking_lot::Mutex;
use std::collections::HashMap;
use weft_model::{ErrorKind, Fid, FsError, Result};
use weft_rpc::CallInfo;
use weft_rpc::pb::mds::{Append, AppendReply, ReservedEnd};

/// Ends of reservations, by file. Bounded: what has not been asked for while as many others were is
/// forgotten. An append takes seconds at most; whoever comes later looks at the objects.
#[derive(Default)]
pub struct Reservations(Mutex<Generations>);

#[derive(Default)]
struct Generations {
    young: HashMap<Fid, Reserved>,
    old: HashMap<Fid, Reserved>,
}

#[derive(Clone, Copy)]
struct Reserved {
    end: u64,
    size_epoch: u64,
}

/// Files with reservations that are remembered, of each generation.
const MAX_RESERVATIONS: usize = 65_536;

impl Generations {
    /// The reservation of a file at a count of truncations; an older one means nothing.
    fn of(&mut self, fid: Fid, size_epoch: u64) -> &mut Reserved {
        if self.young.len() >= MAX_RESERVATIONS && !self.young.contains_key(&fid) {
            self.old = std::mem::take(&mut self.young);
        }
        let before = self.old.remove(&fid).unwrap_or(Reserved { end: 0, size_epoch });
        let reserved = self.young.entry(fid).or_insert(before);
        if reserved.size_epoch != size_epoch {
            *reserved = Reserved { end: 0, size_epoch };
        }
        reserved
    }
}

impl Reservations {
    fn reserve(&self, fid: Fid, known: u64, len: u64, size_epoch: u64) -> u64 {
        let mut ends = self.0.lock();
        let reserved = ends.of(fid, size_epoch);
        let offset = reserved.end.max(known);
        reserved.end = offset.saturating_add(len);
        offset
    }

    /// Takes back a reservation that was made before a restart.
    pub fn take_back(&self, append: &ReservedEnd) {
        let mut ends = self.0.lock();
        let reserved = ends.of(Fid(append.fid), append.size_epoch);
        reserved.end = reserved.end.max(append.end);
    }
}

/// Plans it.
///
/// # Errors
/// `Stale`, those of the store; `NotReady` while clients come back after a restart.
pub fn plan(
    txn: &mut Txn<'_>,
    mds: &Mds,
    info: &CallInfo,
    request: &Append,
) -> Result<AppendReply> {
    if txn.planner.recovering {
        return Err(FsError::new(ErrorKind::NotReady, "append")
            .on(format_args!("target={}", mds.target()))
            .because("clients are telling what they were appending"));
    }
    let fid = Fid(request.fid);
    let inode = txn.inode(fid)?;
    // With other writers only the objects know the end, and so after somebody else's truncation. A look
    // from before a restart does not count: what others were given since then is forgotten.
    let stale = request.size_epoch != inode.size_epoch;
    let shared = inode.written_by_others(info.client.0);
    if stale || shared && request.glimpsed_for != mds.instance {
        return Ok(AppendReply {
            offset: 0,
            glimpse_for: mds.instance,
            layout: inode.layout.clone(),
            size_epoch: inode.size_epoch,
        });
    }
    let known = inode.size.max(request.observed);
    let offset = mds.reservations.reserve(fid, known, request.len, inode.size_epoch);
    Ok(AppendReply { offset, glimpse_for: 0, layout: None, size_epoch: inode.size_epoch })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations_follow_each_other() {
        let ends = Reservations::default();
        let fid = Fid::ROOT;
        assert_eq!(ends.reserve(fid, 100, 10, 0), 100);
        assert_eq!(ends.reserve(fid, 100, 10, 0), 110);
        assert_eq!(ends.reserve(fid, 500, 1, 0), 500);
        // After a truncation the old end means nothing.
        assert_eq!(ends.reserve(fid, 0, 5, 1), 0);
    }

    #[test]
    fn what_was_reserved_before_a_restart_is_taken_back() {
        let ends = Reservations::default();
        let append = ReservedEnd { fid: Fid::ROOT.0, end: 300, size_epoch: 2 };
        ends.take_back(&append);
        ends.take_back(&ReservedEnd { end: 200, ..append });
        assert_eq!(ends.reserve(Fid::ROOT, 100, 10, 2), 300);
    }

    #[test]
    fn reservations_are_bounded_and_the_last_ones_stay() {
        let ends = Reservations::default();
        for number in 0..3 * MAX_RESERVATIONS as u64 {
            ends.reserve(Fid(number), 0, 10, 0);
        }
        let held = ends.0.lock();
        assert!(held.young.len() + held.old.len() <= 2 * MAX_RESERVATIONS);
        drop(held);
        assert_eq!(ends.reserve(Fid(2 * MAX_RESERVATIONS as u64 + 1), 0, 10, 0), 10);
    }
}
