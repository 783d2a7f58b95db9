//! What has been written to a file and the MDS does not know yet.
//!
//! It stays here until the MDS has acknowledged a report of it, so that attributes never go back. The
//! end stays longer: between two truncations a file only grows, so it remains true.

use weft_model::layout::Piece;
use weft_model::{Attr, Timespec};
use weft_rpc::pb::mds;

/// Unreported writes and reads of one inode.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unreported {
    end: u64,
    /// `end` has grown since it was reported.
    grown: bool,
    /// End of what is written behind, once it is on the OSTs.
    pending_end: u64,
    /// Bytes that wait for that.
    waiting: usize,
    mtime: Option<Timespec>,
    atime: Option<Timespec>,
    /// Count of truncations known when `end` was written; the smallest while any of it is unreported,
    /// so that the MDS asks the OSTs if there was a truncation somewhere between these writes.
    size_epoch: u64,
    touched: Touched,
    /// Grows with `touched`: what was written since a report was sent must be reported again.
    version: u64,
}

/// Which objects were written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Touched {
    /// None.
    #[default]
    None,
    /// This one, which had this many 512-byte blocks after its last write.
    One(u32, u64),
    /// Several, or blocks changed in another way.
    Many,
}

impl Unreported {
    /// Notes a finished write of a piece; `blocks` are those of its object.
    pub(crate) fn record_piece(&mut self, piece: &Piece, blocks: u64) {
        self.version += 1;
        let index = piece.object.index;
        self.touched = match self.touched {
            Touched::None => Touched::One(index, blocks),
            Touched::One(known, _) if known == index => Touched::One(index, blocks),
            _ => Touched::Many,
        };
    }

    /// Notes that blocks changed by something else than a write.
    pub(crate) const fn record_blocks_changed(&mut self) {
        self.version += 1;
        self.touched = Touched::Many;
    }

    /// Notes that the file was changed up to `end` (0: no new end).
    pub(crate) fn record_change(&mut self, end: u64, now: Timespec, size_epoch: u64) {
        self.rest_on(size_epoch);
        self.mtime = self.mtime.max(Some(now));
        self.record_stored(end);
    }

    /// Notes a write that is not on the OSTs yet.
    pub(crate) fn record_pending(&mut self, end: u64, now: Timespec, size_epoch: u64) {
        self.rest_on(size_epoch);
        self.mtime = self.mtime.max(Some(now));
        self.pending_end = self.pending_end.max(end);
    }

    /// Notes that data up to `end` is on the OSTs, which was written under the same count of truncations.
    pub(crate) fn record_stored(&mut self, end: u64) {
        self.grown |= end > self.end;
        self.end = self.end.max(end);
    }

    /// Notes that the MDT has taken data up to `end`, and so knows.
    pub(crate) fn record_reported(&mut self, end: u64) {
        self.end = self.end.max(end);
    }

    /// Writes that waited are lost.
    pub(crate) const fn forget_pending(&mut self) {
        self.pending_end = 0;
    }

    /// Says how many bytes wait.
    pub(crate) const fn set_waiting(&mut self, waiting: usize) {
        self.waiting = waiting;
    }

    fn rest_on(&mut self, size_epoch: u64) {
        if self.is_dirty() {
            self.size_epoch = self.size_epoch.min(size_epoch);
        } else if self.size_epoch != size_epoch {
            (self.end, self.pending_end, self.size_epoch) = (0, 0, size_epoch);
        }
    }

    /// Notes a read.
    pub(crate) const fn record_read(&mut self, now: Timespec) {
        self.atime = Some(now);
    }

    /// This client has set the size, while it wrote nothing: the end is void.
    pub(crate) const fn truncated(&mut self, size_epoch: u64) {
        (self.end, self.pending_end, self.grown) = (0, 0, false);
        self.size_epoch = size_epoch;
        self.touched = Touched::Many;
        self.version += 1;
    }

    /// After the report of `sent` was acknowledged: forgets what has not changed since.
    pub(crate) fn acknowledge(&mut self, sent: &Unreported) {
        self.mtime = self.mtime.filter(|&mtime| Some(mtime) != sent.mtime);
        self.atime = self.atime.filter(|&atime| Some(atime) != sent.atime);
        self.grown &= self.end != sent.end || self.size_epoch != sent.size_epoch;
        if self.version == sent.version {
            self.touched = Touched::None;
        }
    }

    /// Largest end written, true or not any more; 0 for none.
    pub(crate) fn end(&self) -> u64 {
        self.end.max(self.pending_end)
    }

    /// Largest end written that is true for this count of truncations; 0 for none.
    pub(crate) fn end_at(&self, size_epoch: u64) -> u64 {
        if self.size_epoch == size_epoch { self.end() } else { 0 }
    }

    /// Which objects were written.
    pub(crate) const fn touched(&self) -> Touched {
        self.touched
    }

    /// Whether contents have changed.
    pub(crate) const fn is_dirty(&self) -> bool {
        self.mtime.is_some() || self.grown
    }

    /// Count of truncations that the unreported writes rest on, if there are any.
    pub(crate) fn dirty_epoch(&self) -> Option<u64> {
        self.is_dirty().then_some(self.size_epoch)
    }

    /// As the MDS wants it, or nothing if there is nothing to tell.
    pub(crate) fn to_wire(&self, blocks: Option<u64>) -> Option<mds::Written> {
        if !self.is_dirty() && self.atime.is_none() {
            return None;
        }
        Some(mds::Written {
            end: if self.is_dirty() { self.end } else { 0 },
            mtime: self.mtime.map(Into::into),
            size_epoch: self.size_epoch,
            blocks,
            kill_suidgid: false,
            atime: self.atime.map(Into::into),
            ..mds::Written::default()
        })
    }

    /// Lays what is unreported over attributes that came with `size_epoch`.
    pub(crate) fn overlay(&self, attr: &mut Attr, size_epoch: u64) {
        attr.size = attr.size.max(self.end_at(size_epoch));
        if let Some(mtime) = self.mtime {
            attr.mtime = attr.mtime.max(mtime);
            attr.ctime = attr.ctime.max(mtime);
        }
        if let Some(atime) = self.atime {
            attr.atime = attr.atime.max(atime);
        }
        if let Touched::One(_, blocks) = self.touched {
            attr.blocks = attr.blocks.max(blocks);
        }
        attr.blocks += self.waiting.div_ceil(512) as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_after_a_report_is_reported_again() {
        let mut unreported = Unreported::default();
        unreported.record_change(10, Timespec { secs: 1, nanos: 0 }, 0);
        let sent = unreported.clone();
        unreported.record_change(5, Timespec { secs: 2, nanos: 0 }, 0);
        unreported.acknowledge(&sent);
        assert_eq!((unreported.end(), unreported.is_dirty()), (10, true));
        let sent = unreported.clone();
        unreported.acknowledge(&sent);
        assert_eq!((unreported.end(), unreported.is_dirty()), (10, false));
        assert!(unreported.to_wire(None).is_none());
    }

    #[test]
    fn writes_around_a_truncation_by_others_rest_on_the_older_count() {
        let now = Timespec { secs: 1, nanos: 0 };
        let mut unreported = Unreported::default();
        unreported.record_change(100, now, 1);
        unreported.record_change(10, now, 2);
        assert_eq!((unreported.end(), unreported.dirty_epoch()), (100, Some(1)));
        unreported.acknowledge(&unreported.clone());
        unreported.record_change(20, now, 2);
        assert_eq!((unreported.end(), unreported.dirty_epoch()), (20, Some(2)));
    }
}
