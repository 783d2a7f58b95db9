//! `Append`: reserves the end of a file for one append, so that appends of all clients follow each
//! other.
//!
//! The end is the largest of: the size known here, what the asker has written or seen on the OSTs,
//! and what was reserved before. A session that alone writes the file knows the size; otherwise it
//! has to look at the objects first. Reservations live in memory.

use crate::Mds;
use crate::txn::Txn;
use parking_lot::Mutex;
use std::collections::HashMap;
use weft_model::{Fid, Result};
use weft_rpc::CallInfo;
use weft_rpc::pb::mds::{Append, AppendReply};

/// Ends of reservations, by file. Bounded: what is not asked for again is forgotten.
#[derive(Default)]
pub struct Reservations(Mutex<HashMap<Fid, Reserved>>);

#[derive(Clone, Copy)]
struct Reserved {
    end: u64,
    size_epoch: u64,
}

/// Files with reservations that are remembered.
const MAX_RESERVATIONS: usize = 65_536;

impl Reservations {
    fn reserve(&self, fid: Fid, known: u64, len: u64, size_epoch: u64) -> u64 {
        let mut ends = self.0.lock();
        if ends.len() >= MAX_RESERVATIONS && !ends.contains_key(&fid) {
            // Appends under way are seconds old at most; whoever comes next looks at the objects.
            ends.clear();
        }
        let reserved = ends.entry(fid).or_insert(Reserved { end: 0, size_epoch });
        if reserved.size_epoch != size_epoch {
            *reserved = Reserved { end: 0, size_epoch };
        }
        let offset = reserved.end.max(known);
        reserved.end = offset.saturating_add(len);
        offset
    }

    /// Forgets a file: nobody writes it any more.
    pub fn forget(&self, fid: Fid) {
        self.0.lock().remove(&fid);
    }
}

/// Plans it.
///
/// # Errors
/// `Stale`, those of the store.
pub fn plan(
    txn: &mut Txn<'_>,
    mds: &Mds,
    info: &CallInfo,
    request: &Append,
) -> Result<AppendReply> {
    let fid = Fid(request.fid);
    let inode = txn.inode(fid)?;
    // With other writers only the objects know the end, and so after somebody else's truncation.
    let stale = request.size_epoch != inode.size_epoch;
    let shared = inode.written_by_others(info.client.0);
    if stale || shared && !request.glimpsed {
        return Ok(AppendReply {
            offset: 0,
            glimpse: true,
            layout: inode.layout.clone(),
            size_epoch: inode.size_epoch,
        });
    }
    let known = inode.size.max(request.observed);
    let offset = mds.reservations.reserve(fid, known, request.len, inode.size_epoch);
    Ok(AppendReply { offset, glimpse: false, layout: None, size_epoch: inode.size_epoch })
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
        ends.forget(fid);
        assert_eq!(ends.reserve(fid, 0, 5, 1), 0);
    }
}
