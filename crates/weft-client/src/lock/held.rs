//! The record of held locks of one file: disjoint ranges per owner.

use super::{LockKind, LockRange};
use weft_model::Fid;
use weft_rpc::pb::mds;

/// The locks this client holds on one file.
#[derive(Debug, Default)]
pub struct HeldLocks {
    /// Of one owner and family: ordered by nothing, disjoint, neighbours of one kind joined.
    ranges: Vec<LockRange>,
}

impl HeldLocks {
    /// Makes `range` hold for its owner, as POSIX has it: what the owner had there before gives way,
    /// is cut or split; neighbours of the same kind become one.
    pub(crate) fn set(&mut self, range: &LockRange) {
        let mut new = *range;
        let mut kept = Vec::with_capacity(self.ranges.len() + 2);
        for old in self.ranges.drain(..) {
            if (old.owner, old.flock) != (new.owner, new.flock) {
                kept.push(old);
            } else if old.kind == new.kind && touches(&old, &new) {
                (new.start, new.end) = (new.start.min(old.start), new.end.max(old.end));
            } else {
                kept.extend(without(&old, range));
            }
        }
        if new.kind != LockKind::Unlock {
            kept.push(new);
        }
        self.ranges = kept;
    }

    /// All of them.
    pub(crate) fn ranges(&self) -> &[LockRange] {
        &self.ranges
    }

    /// Whether this owner has any lock of the family.
    pub(crate) fn has_owner(&self, owner: u64, flock: bool) -> bool {
        self.ranges.iter().any(|range| range.owner == owner && range.flock == flock)
    }

    /// Forgets an owner's locks of one family.
    pub(crate) fn remove_owner(&mut self, owner: u64, flock: bool) {
        self.ranges.retain(|range| range.owner != owner || range.flock != flock);
    }

    /// Forgets everything; whether there was anything.
    pub(crate) fn clear(&mut self) -> bool {
        let any = !self.ranges.is_empty();
        self.ranges.clear();
        any
    }

    /// As a reclaim tells it.
    pub(crate) fn to_wire(&self, fid: Fid) -> Vec<mds::Lock> {
        self.ranges.iter().map(|range| range.to_wire(fid, false)).collect()
    }
}

/// Whether two ranges overlap or one begins where the other ends.
const fn touches(a: &LockRange, b: &LockRange) -> bool {
    a.start <= b.end.saturating_add(1) && b.start <= a.end.saturating_add(1)
}

/// What is left of `old` outside of `cut`.
fn without(old: &LockRange, cut: &LockRange) -> impl Iterator<Item = LockRange> + use<> {
    let overlap = old.start <= cut.end && cut.start <= old.end;
    let whole = (!overlap).then_some(*old);
    let before = (overlap && old.start < cut.start)
        .then(|| LockRange { end: cut.start.saturating_sub(1), ..*old });
    let after = (overlap && old.end > cut.end)
        .then(|| LockRange { start: cut.end.saturating_add(1), ..*old });
    [whole, before, after].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::TO_END;
    use rand::{Rng, SeedableRng, rngs::SmallRng};

    fn range(owner: u64, kind: LockKind, start: u64, end: u64) -> LockRange {
        LockRange { owner, flock: false, kind, start, end, pid: 1 }
    }

    #[test]
    fn splits_and_joins() {
        let mut held = HeldLocks::default();
        held.set(&range(1, LockKind::Write, 0, TO_END));
        held.set(&range(1, LockKind::Unlock, 10, 19));
        assert_eq!(held.ranges.len(), 2);
        held.set(&range(1, LockKind::Write, 10, 19));
        assert_eq!(held.ranges, vec![range(1, LockKind::Write, 0, TO_END)]);
        held.set(&range(2, LockKind::Read, 0, 5));
        assert!(held.has_owner(2, false) && !held.has_owner(2, true));
        held.set(&range(2, LockKind::Unlock, 0, TO_END));
        assert!(!held.has_owner(2, false) && held.has_owner(1, false));
    }

    #[test]
    fn agrees_with_a_byte_map() {
        let mut rng = SmallRng::seed_from_u64(7);
        for _ in 0..200 {
            let mut held = HeldLocks::default();
            let mut bytes = [[None::<LockKind>; 64]; 2];
            for _ in 0..30 {
                let owner = rng.random_range(0..2u64);
                let (a, b) = (rng.random_range(0..64u64), rng.random_range(0..64u64));
                let kinds = [LockKind::Read, LockKind::Write, LockKind::Unlock];
                let kind = kinds[rng.random_range(0..3)];
                held.set(&range(owner, kind, a.min(b), a.max(b)));
                for at in a.min(b)..=a.max(b) {
                    let free = kind == LockKind::Unlock;
                    bytes[owner as usize][at as usize] = (!free).then_some(kind);
                }
            }
            for (owner, bytes) in bytes.iter().enumerate() {
                for (at, want) in bytes.iter().enumerate() {
                    let covers = |r: &&LockRange| {
                        r.owner == owner as u64 && (r.start..=r.end).contains(&(at as u64))
                    };
                    let found: Vec<_> = held.ranges.iter().filter(covers).collect();
                    assert!(found.len() <= 1);
                    assert_eq!(found.first().map(|r| r.kind), *want);
                }
            }
        }
    }
}
