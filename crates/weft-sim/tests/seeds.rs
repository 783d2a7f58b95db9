//! Some seeds of the simulation, and proof that it notices what is broken on purpose.

use weft_sim::plan::Sabotage;
use weft_sim::{Plan, run};

fn all_pass(seeds: std::ops::Range<u64>, ops: usize) {
    for seed in seeds {
        if let Some(failure) = run(Plan::of(seed, ops), false).failure {
            panic!("seed {seed} failed: {failure}\nreplay with weft-sim --seed {seed} --ops {ops}");
        }
    }
}

#[test]
fn many_short_histories() {
    all_pass(0..150, 100);
}

#[test]
fn some_long_histories() {
    all_pass(1000..1010, 600);
}

#[test]
fn one_seed_is_one_history() {
    for seed in [3, 14, 159] {
        let (first, second) = (run(Plan::of(seed, 150), false), run(Plan::of(seed, 150), false));
        assert_eq!((first.digest, first.events), (second.digest, second.events), "seed {seed}");
    }
    assert_ne!(run(Plan::of(1, 50), false).digest, run(Plan::of(2, 50), false).digest);
}

/// Plans with the fault that makes the defect show.
fn is_noticed(sabotage: Sabotage, prepare: fn(&mut Plan)) {
    let noticed = (0..60).any(|seed| {
        let mut plan = Plan { sabotage: Some(sabotage), ..Plan::of(seed, 200) };
        prepare(&mut plan);
        run(plan, false).failure.is_some()
    });
    assert!(noticed, "{sabotage:?} was not noticed");
}

#[test]
fn requests_without_numbers_are_noticed() {
    is_noticed(Sabotage::StripXids, |plan| plan.loss = 20);
}

#[test]
fn lost_batches_are_noticed() {
    is_noticed(Sabotage::LoseBatches, |plan| (plan.kill_mds, plan.kill_every_ms) = (true, 100));
}

#[test]
fn lost_writes_are_noticed() {
    is_noticed(Sabotage::LoseWrites, |_| {});
}

#[test]
fn skipped_syncs_are_noticed() {
    is_noticed(Sabotage::SkipSyncs, |plan| plan.power = true);
}
