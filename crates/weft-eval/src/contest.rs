//! The same phases in several places, in turn, several rounds.

use crate::caches;
use crate::report::{Report, Sample};
use crate::usage::cpu_seconds;
use crate::workload::{Done, Phase};
use std::io;
use std::time::Duration;

/// Time between two places: the one before may still be removing what it was told to remove.
const SETTLE: Duration = Duration::from_millis(500);

/// Runs phases on all members together.
pub trait Runner {
    /// One phase.
    ///
    /// # Errors
    /// A member's error.
    fn run(&mut self, phase: Phase) -> io::Result<Outcome>;

    /// Removes what is left.
    ///
    /// # Errors
    /// Those of the target.
    fn end(self: Box<Self>) -> io::Result<()>;
}

/// A phase done by all members.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Of all members.
    pub done: Done,
    /// From the common start to the last end.
    pub seconds: f64,
}

/// Makes the runner of a round.
pub type Begin<'a> = dyn Fn(usize) -> io::Result<Box<dyn Runner>> + 'a;

/// One who takes part.
pub struct Place<'a> {
    /// Name in the report.
    pub name: String,
    /// Starts a round.
    pub begin: Box<Begin<'a>>,
    /// Processes that serve it, for their processor time.
    pub servers: Vec<u32>,
}

/// What is run.
pub struct Contest {
    /// In order.
    pub phases: Vec<Phase>,
    /// Over all places.
    pub rounds: usize,
    /// Empty the page cache before phases that read (needs root).
    pub cold: bool,
}

impl Contest {
    /// Runs it.
    ///
    /// # Errors
    /// The first of a place.
    pub fn run(&self, places: &[Place<'_>]) -> io::Result<Report> {
        let mut report = Report::new(&self.phases, places.iter().map(|p| p.name.clone()).collect());
        for round in 0..self.rounds {
            for (number, place) in places.iter().enumerate() {
                std::thread::sleep(SETTLE);
                let mut runner = (place.begin)(round)?;
                for &phase in &self.phases {
                    if self.cold && phase.reads() {
                        caches::drop_all()?;
                    }
                    report.add(phase, number, measure(runner.as_mut(), phase, &place.servers)?);
                }
                runner.end()?;
            }
        }
        Ok(report)
    }
}

fn measure(runner: &mut dyn Runner, phase: Phase, servers: &[u32]) -> io::Result<Sample> {
    let own = || cpu_seconds(std::process::id());
    let theirs = || servers.iter().map(|&pid| cpu_seconds(pid)).sum::<f64>();
    let (own_before, theirs_before) = (own(), theirs());
    let outcome = runner.run(phase)?;
    Ok(Sample { outcome, own_cpu: own() - own_before, server_cpu: theirs() - theirs_before })
}
