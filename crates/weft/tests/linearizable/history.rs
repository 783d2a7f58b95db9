//! Whether a history of a register could have happened one operation after the other, each at some moment
//! between its beginning and its end (linearizability: Herlihy and Wing, TOPLAS 1990). Every value is written once,
//! so this takes no search: Gibbons and Korach, "Testing shared memories", SIAM J. Comput. 1997.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

/// An operation on a register.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Op {
    pub writes: bool,
    pub value: i64,
    /// Nanoseconds. A write that has failed may still take effect at any time: it has no end.
    pub begin: i64,
    pub end: i64,
}

/// When the operations on one value began and ended.
#[derive(Clone, Copy)]
struct Zone {
    value: i64,
    first_end: i64,
    last_begin: i64,
}

impl Zone {
    /// The register had the value from the first end to the last beginning; otherwise, at some moment
    /// between the last beginning and the first end.
    fn is_forward(&self) -> bool {
        self.first_end < self.last_begin
    }
}

impl Display for Zone {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Zone { value, first_end, last_begin } = self;
        write!(f, "{value} (first end {first_end}, last begin {last_begin})")
    }
}

/// Looks for a contradiction. 0 was there from the beginning.
pub fn check(history: &[Op]) -> Result<(), String> {
    let mut zones: BTreeMap<i64, (Op, Zone)> = BTreeMap::new();
    let first = Op { writes: true, value: 0, begin: i64::MIN, end: i64::MIN };
    for write in history.iter().filter(|op| op.writes).chain([&first]) {
        let zone = Zone { value: write.value, first_end: write.end, last_begin: write.begin };
        if zones.insert(write.value, (*write, zone)).is_some() {
            return Err(format!("{} was written twice", write.value));
        }
    }
    for read in history.iter().filter(|op| !op.writes) {
        let Some((write, zone)) = zones.get_mut(&read.value) else {
            return Err(format!("{read:?} of what nobody wrote"));
        };
        if read.end < write.begin {
            return Err(format!("{read:?} before {write:?}"));
        }
        zone.first_end = zone.first_end.min(read.end);
        zone.last_begin = zone.last_begin.max(read.begin);
    }
    let zones = zones.into_values().map(|(_, zone)| zone);
    let (mut forward, backward): (Vec<Zone>, Vec<Zone>) = zones.partition(Zone::is_forward);
    forward.sort_by_key(|zone| zone.first_end);
    for pair in forward.windows(2) {
        if pair[1].first_end < pair[0].last_begin {
            return Err(format!("{} and {} at the same time", pair[0], pair[1]));
        }
    }
    for zone in backward {
        let within = |f: &&Zone| f.first_end < zone.last_begin && zone.first_end < f.last_begin;
        if let Some(around) = forward.iter().find(within) {
            return Err(format!("{zone} in the midst of {around}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(value: i64, begin: i64, end: i64) -> Op {
        Op { writes: true, value, begin, end }
    }

    fn read(value: i64, begin: i64, end: i64) -> Op {
        Op { writes: false, value, begin, end }
    }

    #[test]
    fn what_could_have_happened_is_accepted() {
        let one_after_the_other = [read(0, 1, 2), write(1, 3, 4), read(1, 5, 6), write(2, 7, 8)];
        assert_eq!(check(&one_after_the_other), Ok(()));
        // While a write is under way, some see it already, if nobody sees the old value afterwards.
        let overlapping = [write(1, 0, 10), read(0, 1, 4), read(1, 5, 6), read(0, 2, 5)];
        assert_eq!(check(&overlapping), Ok(()));
        let both = [write(1, 0, 10), write(2, 0, 10), read(1, 11, 12), read(1, 13, 14)];
        assert_eq!(check(&both), Ok(()));
        // A failed write may take effect late, or never.
        let failed = [write(1, 0, i64::MAX), read(0, 5, 6), read(1, 7, 8)];
        assert_eq!(check(&failed), Ok(()));
        assert_eq!(check(&[write(1, 0, i64::MAX), read(0, 5, 6)]), Ok(()));
    }

    #[test]
    fn contradictions_are_found() {
        let stale = [write(1, 0, 1), read(0, 2, 3)];
        let back_and_forth = [write(1, 0, 9), read(1, 1, 2), read(0, 3, 4)];
        let from_the_future = [read(1, 0, 1), write(1, 2, 3)];
        let lost = [write(1, 0, 1), write(2, 2, 3), read(1, 4, 5)];
        let never_written = [read(7, 0, 1)];
        let torn_between =
            [write(1, 0, 1), write(2, 0, 1), read(1, 2, 3), read(2, 4, 5), read(1, 6, 7)];
        for history in
            [&stale[..], &back_and_forth, &from_the_future, &lost, &never_written, &torn_between]
        {
            assert!(check(history).is_err(), "{history:?}");
        }
    }
}
