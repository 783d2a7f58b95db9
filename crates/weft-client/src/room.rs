//! How much the OSTs have room for, as far as known: only what surely fits is written behind.

use parking_lot::RwLock;
use std::collections::HashMap;
use std::time::Duration;
use weft_model::TargetId;

/// What an OST told longer ago than this is not relied upon.
const MAX_AGE: Duration = Duration::from_secs(10);

/// Free bytes by OST, and when they were told.
#[derive(Default)]
pub(crate) struct Room(RwLock<HashMap<TargetId, (u64, Duration)>>);

impl Room {
    /// An OST has told how much it has room for.
    pub(crate) fn told(&self, ost: TargetId, free: u64, now: Duration) {
        self.0.write().insert(ost, (free, now));
    }

    /// Whether an OST has told lately that it has room for more than `bytes`.
    pub(crate) fn is_ample(&self, ost: TargetId, bytes: u64, now: Duration) -> bool {
        let told = self.0.read().get(&ost).copied();
        told.is_some_and(|(free, at)| free > bytes && now < at + MAX_AGE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_news_is_no_news() {
        let (room, ost, now) = (Room::default(), TargetId::ost(1), Duration::from_secs(5));
        assert!(!room.is_ample(ost, 0, now));
        room.told(ost, 1000, now);
        assert!(room.is_ample(ost, 999, now) && !room.is_ample(ost, 1000, now));
        assert!(!room.is_ample(ost, 999, now + MAX_AGE));
    }
}
