//! A fixed set of seeds passes, a seed always means the same history, and defects are noticed.
//!
//! `weft-sim --seed N --ops M --trace` repeats a failure.

use std::ops::Range;
use weft_sim::plan::Sabotage;
use weft_sim::{Plan, run};

/// Operations of each client.
const OPS: usize = 120;

fn all_pass(seeds: Range<u64>) {
    for seed in seeds {
        if let Some(failure) = run(Plan::of(seed, OPS), false).failure {
            panic!(
                "seed {seed}: {failure}; repeat with weft-sim --seed {seed} --ops {OPS} --trace"
            );
        }
    }
}

#[test]
fn seeds_pass() {
    all_pass(0..250);
}

#[test]
fn more_seeds_pass() {
    all_pass(250..500);
}

#[test]
fn a_seed_has_one_history() {
    for seed in 1000..1020 {
        let twice = [(); 2].map(|()| run(Plan::of(seed, OPS), false));
        assert_eq!(twice[0], twice[1], "seed {seed}");
    }
    assert_ne!(run(Plan::of(1, OPS), false).digest, run(Plan::of(2, OPS), false).digest);
}

/// One of these runs fails with the defect put in, and passes without.
fn is_noticed(sabotage: Sabotage, plan: Plan) {
    let fails =
        |seed, sabotage| run(Plan { seed, sabotage, ..plan.clone() }, false).failure.is_some();
    let caught = (0..20).find(|&seed| fails(seed, Some(sabotage)));
    let seed = caught.unwrap_or_else(|| panic!("{sabotage:?} goes unnoticed"));
    assert!(!fails(seed, None), "seed {seed} fails without {sabotage:?}");
}

fn busy() -> Plan {
    Plan { clients: 2, ops: OPS, loss: 20, kill_every_ms: 100, kill_mds: true, ..Plan::default() }
}

#[test]
fn requests_without_numbers_are_noticed() {
    is_noticed(Sabotage::StripXids, Plan { kill_every_ms: 0, ..busy() });
}

#[test]
fn lost_batches_are_noticed() {
    is_noticed(Sabotage::LoseBatches, busy());
}

#[test]
fn lost_writes_are_noticed() {
    is_noticed(Sabotage::LoseWrites, Plan { loss: 0, kill_every_ms: 0, ..busy() });
}

#[test]
fn syncs_that_do_nothing_are_noticed() {
    is_noticed(Sabotage::SkipSyncs, Plan { loss: 0, kill_every_ms: 0, power: true, ..busy() });
}

#[test]
fn data_read_ahead_and_not_dropped_is_noticed() {
    let plan =
        Plan { loss: 0, kill_every_ms: 0, caches: true, reads_ahead: true, ops: 400, ..busy() };
    is_noticed(Sabotage::MisdirectRecalls, plan);
}

#[test]
fn recalls_that_are_not_carried_out_are_noticed() {
    is_noticed(
        Sabotage::IgnoreRecalls,
        Plan { loss: 0, kill_every_ms: 0, caches: true, ops: 400, ..busy() },
    );
}
