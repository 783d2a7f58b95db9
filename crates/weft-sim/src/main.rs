//! `weft-sim`: runs seeds, and says how to repeat the one that fails.

use clap::Parser;
use std::ops::Range;
use std::process::ExitCode;
use std::time::Instant;
use weft_sim::{Plan, run};

/// Deterministic simulation of a whole Weft cluster.
#[derive(Parser)]
#[command(name = "weft-sim", version)]
struct Arguments {
    /// The seed to run.
    #[arg(long, conflicts_with = "seeds")]
    seed: Option<u64>,
    /// Seeds to run, FROM..TO.
    #[arg(long, value_parser = parse_range, default_value = "0..100")]
    seeds: Range<u64>,
    /// Operations of each client.
    #[arg(long, default_value_t = 300)]
    ops: usize,
    /// Print every event.
    #[arg(long)]
    trace: bool,
}

fn parse_range(text: &str) -> Result<Range<u64>, String> {
    let bad = || format!("expected FROM..TO, got {text:?}");
    let (from, to) = text.split_once("..").ok_or_else(bad)?;
    Ok(from.parse().map_err(|_| bad())?..to.parse().map_err(|_| bad())?)
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let seeds = arguments.seed.map_or(arguments.seeds, |seed| seed..seed + 1);
    let (start, count, mut events) = (Instant::now(), seeds.end.saturating_sub(seeds.start), 0);
    for seed in seeds {
        let outcome = run(Plan::of(seed, arguments.ops), arguments.trace);
        events += outcome.events;
        if let Some(failure) = outcome.failure {
            println!("seed {seed} failed: {failure}");
            println!("replay with weft-sim --seed {seed} --ops {}", arguments.ops);
            return ExitCode::FAILURE;
        }
        if count == 1 {
            println!("seed {seed} passed digest={:016x}", outcome.digest);
        }
    }
    println!("seeds={count} events={events} seconds={:.1}", start.elapsed().as_secs_f64());
    ExitCode::SUCCESS
}
