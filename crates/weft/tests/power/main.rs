//! Power cuts under real servers: their targets are on lossy mounts, which forget what was not synced.
//!
//! `WEFT_SEED=n` runs one seed, `WEFT_POWER_SEEDS=a-b` runs some; a failure prints its seed. A seed fixes
//! what is done and what the disks lose, not when the threads get to run.

mod check;
mod cluster;
mod model;
mod work;

use cluster::{Cluster, Disks, Fate};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;
use work::Worker;

/// Clients that work at a time.
const WORKERS: u64 = 3;

fn seeds() -> RangeInclusive<u64> {
    let number = |text: &str| text.parse().unwrap_or_else(|_| panic!("no seed: {text}"));
    if let Ok(seed) = std::env::var("WEFT_SEED") {
        return number(&seed)..=number(&seed);
    }
    let Ok(given) = std::env::var("WEFT_POWER_SEEDS") else { return 1..=3 };
    let (first, last) = given.split_once('-').unwrap_or(("1", &given));
    number(first)..=number(last)
}

#[test]
fn what_was_synced_survives_a_power_cut() {
    if !Path::new("/dev/fuse").exists() {
        return eprintln!("SKIPPED: this machine has no /dev/fuse");
    }
    let formatted = cluster::format();
    let mut failed = Vec::new();
    for seed in seeds() {
        let run = std::panic::AssertUnwindSafe(|| run(seed, &formatted));
        match std::panic::catch_unwind(run) {
            Ok(()) => println!("seed {seed}: passed"),
            Err(_) => {
                println!("seed {seed}: FAILED");
                failed.push(seed);
            }
        }
    }
    assert!(failed.is_empty(), "failed with seeds {failed:?}");
}

fn run(seed: u64, formatted: &Disks) {
    let mut rng = SmallRng::seed_from_u64(seed);
    let fates = Fate::choose(&mut rng);
    let (mode, work_for) = (cluster::mode(&mut rng), rng.random_range(30..1500));
    println!("seed {seed}: {mode:?}, {fates:?}, {work_for} ms");
    let mut cluster = Cluster::start(formatted, mode, &mut rng);
    check::wait_for_osts(&cluster.client());
    let workers: Vec<Worker> =
        (0..WORKERS).map(|n| Worker::new(&cluster, n, rng.random())).collect();
    let trees: Vec<model::Tree> = std::thread::scope(|scope| {
        let running: Vec<_> =
            workers.into_iter().map(|worker| scope.spawn(move || worker.run())).collect();
        std::thread::sleep(Duration::from_millis(work_for));
        assert!(!running.iter().any(|worker| worker.is_finished()), "a client failed by itself");
        cluster.fail(&fates);
        running.into_iter().map(|worker| worker.join().unwrap()).collect()
    });
    for tree in &trees {
        let (names, end) = (tree.history.len() - tree.synced, tree.end.as_ref().unwrap());
        println!("  {} steps, {names} names not synced, then {end}", tree.steps);
    }
    cluster.come_back(&fates, &mut rng);
    check::everything(&cluster, &trees);
    cluster.stop();
}
