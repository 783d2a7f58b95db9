//! Runs phases on one or several directories in turn and prints their rates side by side.

use clap::Parser;
use std::collections::BTreeMap;
use std::path::PathBuf;
use weft_eval::phase::Sizes;
use weft_eval::team::{self, Team};

/// Rates of small workloads on several directories, in turn, several rounds; medians are printed.
#[derive(Parser)]
struct Options {
    /// NAME=DIRECTORY, the first one is what the others are compared with.
    #[arg(required = true)]
    places: Vec<String>,
    /// Processes at once.
    #[arg(long, default_value_t = 1)]
    processes: usize,
    /// Phases, in order.
    #[arg(long, value_delimiter = ',', default_value = "create,stat,open,unlink")]
    phases: Vec<String>,
    /// Small files per process.
    #[arg(long, default_value_t = 4000)]
    files: u64,
    /// MiB of the large file of each process.
    #[arg(long, default_value_t = 512)]
    mib: u64,
    /// KiB per request.
    #[arg(long, default_value_t = 1024)]
    request_kib: u64,
    /// Random requests per process.
    #[arg(long, default_value_t = 20_000)]
    random: u64,
    /// Rounds over all places.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Empty the page cache before each reading phase (needs root).
    #[arg(long)]
    cold: bool,
}

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, word, dir, numbers @ ..] = &arguments[..]
        && word == "member"
    {
        let number = |i: usize| numbers.get(i).and_then(|n| n.parse().ok()).unwrap_or(0);
        let sizes =
            Sizes { files: number(0), bytes: number(1), request: number(2), random: number(3) };
        return team::member(&PathBuf::from(dir), &sizes);
    }
    measure(&Options::parse())
}

fn measure(options: &Options) -> std::io::Result<()> {
    let sizes = Sizes {
        files: options.files,
        bytes: options.mib << 20,
        request: options.request_kib << 10,
        random: options.random,
    };
    let mut rates: BTreeMap<(usize, usize), Vec<f64>> = BTreeMap::new();
    for round in 0..options.rounds {
        for (place, spec) in options.places.iter().enumerate() {
            let dir = PathBuf::from(spec.split_once('=').map_or(spec.as_str(), |(_, dir)| dir));
            let dir = dir.join(format!("weft-load.{}.{round}", std::process::id()));
            let mut team = Team::start(&dir, options.processes, &sizes)?;
            for (number, phase) in options.phases.iter().enumerate() {
                if options.cold && phase.contains("read") {
                    drop_caches()?;
                }
                let result = team.run(phase)?;
                let amount = match result.done.bytes {
                    0 => result.done.operations as f64,
                    _ if phase.starts_with("random") => result.done.operations as f64,
                    bytes => bytes as f64 / (1 << 20) as f64,
                };
                rates.entry((number, place)).or_default().push(amount / result.seconds);
            }
            drop(team);
            std::fs::remove_dir_all(&dir)?;
        }
    }
    print(options, &mut rates);
    Ok(())
}

fn drop_caches() -> std::io::Result<()> {
    std::process::Command::new("sync").status()?;
    std::fs::write("/proc/sys/vm/drop_caches", "3")
}

fn print(options: &Options, rates: &mut BTreeMap<(usize, usize), Vec<f64>>) {
    let names = options.places.iter().map(|s| s.split_once('=').map_or(s.as_str(), |(n, _)| n));
    println!(
        "{} process(es), {} round(s), requests of {} KiB; ops/s, MiB/s for write and read: median (min-max)",
        options.processes, options.rounds, options.request_kib
    );
    print!("{:<14}", "phase");
    names.for_each(|name| print!("{name:>34}"));
    println!();
    for (number, phase) in options.phases.iter().enumerate() {
        print!("{phase:<14}");
        let mut base = 0.0;
        for place in 0..options.places.len() {
            let mut values = rates.remove(&(number, place)).unwrap_or_default();
            values.sort_by(f64::total_cmp);
            let median = values[values.len() / 2];
            if place == 0 {
                base = median;
            }
            let range = format!("{median:.0} ({:.0}-{:.0})", values[0], values[values.len() - 1]);
            print!("{range:>27} {:>5.2}x", median / base);
        }
        println!();
    }
}
