//! On which CPU a worker runs.
//!
//! Callers that come one at a time are served best on their own CPU, which costs no wake-up of
//! another one. A caller that has many requests under way at once is served best by all CPUs. A
//! worker tells the two apart by how many requests of its queue others took since its last one.

/// As many requests taken by others in between, or more, are many.
const MANY: u64 = 4;
/// Requests in a row that have to agree before a worker moves.
const STREAK: u32 = 16;

/// Where a worker should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// On the CPU of its queue.
    Home,
    /// Wherever there is time.
    Anywhere,
}

/// What a worker knows of its queue. It starts at home.
pub(super) struct Placement {
    side: Side,
    last: u64,
    disagreeing: u32,
}

impl Placement {
    /// Of a worker that takes its first request, number `taken` of the queue.
    pub(super) fn new(taken: u64) -> Placement {
        Placement { side: Side::Home, last: taken, disagreeing: 0 }
    }

    /// The worker takes request number `taken` of its queue. Answers where to move, if anywhere.
    pub(super) fn take(&mut self, taken: u64) -> Option<Side> {
        let others = taken.saturating_sub(self.last + 1);
        self.last = taken;
        let side = if others >= MANY { Side::Anywhere } else { Side::Home };
        self.disagreeing = if side == self.side { 0 } else { self.disagreeing + 1 };
        (self.disagreeing >= STREAK).then(|| {
            (self.side, self.disagreeing) = (side, 0);
            side
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moves(placement: &mut Placement, step: u64) -> Vec<Side> {
        (0..100).filter_map(|_| placement.take(placement.last + step)).collect()
    }

    #[test]
    fn goes_away_under_many_requests_and_comes_back() {
        let mut placement = Placement::new(7);
        assert_eq!(moves(&mut placement, 1), []);
        assert_eq!(moves(&mut placement, 2), []);
        assert_eq!(moves(&mut placement, 8), [Side::Anywhere]);
        assert_eq!(moves(&mut placement, 1), [Side::Home]);
    }

    #[test]
    fn does_not_move_for_a_moment() {
        let mut placement = Placement::new(0);
        for round in 0..100 {
            assert_eq!(placement.take(placement.last + 1 + 10 * (round % 2)), None);
        }
    }
}
