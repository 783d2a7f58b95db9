//! Runs phases on one or several directories in turn and prints their rates side by side.

use clap::Parser;
use std::io;
use std::path::PathBuf;
use weft_eval::contest::{Contest, Place, Runner};
use weft_eval::team::{self, Team};
use weft_eval::workload::{Phase, SizeOptions, Sizes};

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
    phases: Vec<Phase>,
    /// Small files per process.
    #[arg(long, default_value_t = 4000)]
    files: u64,
    #[command(flatten)]
    sizes: SizeOptions,
    /// Rounds over all places.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Empty the page cache before each reading phase (needs root).
    #[arg(long)]
    cold: bool,
    /// Do not look whether what is read is what was written: one of the places stores nothing.
    #[arg(long)]
    unchecked: bool,
}

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, word, dir, numbers @ ..] = &arguments[..]
        && word == "member"
    {
        let number = |i: usize| numbers.get(i).and_then(|n| n.parse().ok()).unwrap_or(0);
        let sizes = Sizes {
            files: number(0),
            bytes: number(1),
            request: number(2),
            random: number(3),
            checked: number(4) != 0,
        };
        return team::member(&PathBuf::from(dir), &sizes);
    }
    measure(Options::parse())
}

fn measure(options: Options) -> io::Result<()> {
    let sizes = options.sizes.sizes(options.files, !options.unchecked);
    let place = |spec: &String| {
        let (name, dir) = spec.split_once('=').unwrap_or((spec, spec));
        let (dir, processes) = (PathBuf::from(dir), options.processes);
        let begin = move |round| {
            let dir = dir.join(format!("weft-load.{}.{round}", std::process::id()));
            Ok(Box::new(Team::start(&dir, processes, &sizes)?) as Box<dyn Runner>)
        };
        Place { name: name.to_string(), begin: Box::new(begin), servers: Vec::new() }
    };
    let places: Vec<Place<'_>> = options.places.iter().map(place).collect();
    let contest = Contest { phases: options.phases, rounds: options.rounds, cold: options.cold };
    println!(
        "{} process(es), {} round(s), requests of {} KiB; ops/s, MiB/s for write and read: median (min-max)",
        options.processes, options.rounds, options.sizes.request_kib
    );
    print!("{}", contest.run(&places)?.rates());
    Ok(())
}
