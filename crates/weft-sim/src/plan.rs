//! What a run is made of: sizes, and how often what goes wrong.

use rand::{Rng, SeedableRng, rngs::SmallRng};

/// A run. Rates are "once in so many times"; 0 is never.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The seed.
    pub seed: u64,
    /// Clients at work at a time.
    pub clients: usize,
    /// Operations of each of them.
    pub ops: usize,
    /// Messages lost on their way, and answers as well.
    pub loss: u64,
    /// Requests that arrive twice.
    pub twice: u64,
    /// Requests before or behind which their server is killed.
    pub kill_at_message: u64,
    /// Changes of a disk before or behind which its server is killed.
    pub kill_at_disk: u64,
    /// Milliseconds between two processes killed at random moments, on average.
    pub kill_every_ms: u64,
    /// Metadata servers may be killed.
    pub kill_mds: bool,
    /// Milliseconds between two clients dying, on average.
    pub client_dies_every_ms: u64,
    /// Clients keep what they are granted.
    pub caches: bool,
    /// Files that nobody else has open are delegated to clients; small ones go to the MDT then.
    pub delegations: bool,
    /// Clients write behind what they write to such files.
    pub writes_behind: bool,
    /// Clients read ahead in files that nobody else writes.
    pub reads_ahead: bool,
    /// Bytes on each object server's disk.
    pub capacity: Option<u64>,
    /// Ends with the power failing everywhere.
    pub power: bool,
    /// What is deliberately broken, to see whether it is noticed.
    pub sabotage: Option<Sabotage>,
}

/// A defect put in on purpose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sabotage {
    /// Requests lose their number in the session, so that repeated ones are carried out again.
    StripXids,
    /// Batches are acknowledged and not written, now and then.
    LoseBatches,
    /// A sync of a disk does nothing.
    SkipSyncs,
    /// Writes of data are acknowledged and not made, now and then.
    LoseWrites,
    /// Clients confirm recalls and go on using what they had to give back.
    IgnoreRecalls,
}

impl Plan {
    /// The run that a seed stands for: a mix of faults, so that some runs have many of one kind.
    pub fn of(seed: u64, ops: usize) -> Plan {
        let mut rng = SmallRng::seed_from_u64(seed ^ 0x57ef);
        let mut pick = |from: &[u64]| from[rng.random_range(0..from.len())];
        let mut plan = Plan {
            seed,
            clients: pick(&[1, 2, 3, 4]) as usize,
            ops,
            loss: pick(&[0, 20, 60, 200]),
            twice: pick(&[0, 20, 100]),
            kill_at_message: pick(&[0, 0, 100, 500]),
            kill_at_disk: pick(&[0, 0, 50, 300]),
            kill_every_ms: pick(&[0, 100, 400]),
            kill_mds: pick(&[0, 1, 1]) == 1,
            client_dies_every_ms: pick(&[0, 0, 200, 1000]),
            capacity: (pick(&[0, 0, 0, 1]) == 1).then(|| pick(&[200_000, 1_000_000])),
            power: pick(&[0, 0, 1]) == 1,
            caches: pick(&[0, 1, 1]) == 1,
            sabotage: None,
            delegations: false,
            writes_behind: false,
            reads_ahead: false,
        };
        // A full disk is told of at the next fsync, when the reference has long taken the write for done.
        plan.writes_behind = plan.caches && plan.capacity.is_none() && pick(&[0, 1, 1]) == 1;
        plan.delegations = plan.writes_behind || plan.caches && pick(&[0, 1, 1]) == 1;
        plan.reads_ahead = plan.caches && pick(&[0, 1, 1]) == 1;
        plan
    }
}
