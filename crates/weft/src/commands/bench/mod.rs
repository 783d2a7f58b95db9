//! `weft bench`: the benchmarks of the field, on any directory and on the client library.

mod common;
mod io500;
mod ior;
mod iozone;
mod layers;
mod library;
mod mdtest;
mod real;
mod serve;
mod store;
mod survey;

use crate::cli::Global;
use crate::outcome::Outcome;
use clap::Subcommand;

/// Benchmarks.
#[derive(Subcommand)]
pub enum Command {
    /// Bandwidth of files written and read by all ranks together, as IOR.
    Ior(ior::Ior),
    /// Rates of making, looking at and removing files and directories, as mdtest.
    Mdtest(mdtest::Mdtest),
    /// Throughput of a file for each process, as iozone -t.
    Iozone(iozone::Iozone),
    /// The phases and the score of the IO500, as a look-alike.
    Io500(io500::Io500),
    /// Raw speed of targets, as obdfilter-survey; and of every layer above them.
    Survey(survey::Survey),
    /// Compare clusters through the client library, side by side.
    Library(library::Library),
    /// Let drivers on other machines run ranks here.
    Serve(serve::Serve),
    /// A rank over the socket that is its standard input.
    #[command(hide = true)]
    Rank,
}

impl Command {
    /// Does it.
    ///
    /// # Errors
    /// Those of the benchmark.
    pub fn run(self, global: Global) -> anyhow::Result<Outcome> {
        crate::process::raise_file_limit();
        match self {
            Command::Ior(command) => command.run(global),
            Command::Mdtest(command) => command.run(global),
            Command::Iozone(command) => command.run(global),
            Command::Io500(command) => command.run(global),
            Command::Survey(command) => command.run(global),
            Command::Library(command) => command.run(),
            Command::Serve(command) => command.run(),
            Command::Rank => serve::rank(),
        }
    }
}
