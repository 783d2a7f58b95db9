//! Several threads of this process that run phases together, each in a directory of its own.

use crate::contest::{Outcome, Runner};
use crate::target::Target;
use crate::workload::{self, Done, Phase, Sizes};
use std::io;
use std::time::Instant;

/// One directory per thread.
pub struct Crew<T> {
    targets: Vec<T>,
    sizes: Sizes,
}

impl<T: Target> Crew<T> {
    /// As many threads as targets.
    pub const fn new(targets: Vec<T>, sizes: Sizes) -> Crew<T> {
        Crew { targets, sizes }
    }
}

impl<T: Target> Runner for Crew<T> {
    fn run(&mut self, phase: Phase) -> io::Result<Outcome> {
        let (start, sizes) = (Instant::now(), &self.sizes);
        let parts = std::thread::scope(|scope| {
            let threads: Vec<_> = (self.targets.iter())
                .map(|target| scope.spawn(move || workload::run(phase, target, sizes)))
                .collect();
            let joined = threads.into_iter().map(|thread| thread.join());
            let died = |_| Err(io::Error::other("a thread has died"));
            joined.map(|part| part.unwrap_or_else(died)).collect::<io::Result<Vec<Done>>>()
        })?;
        let done = parts.into_iter().fold(Done::default(), |sum, part| Done {
            operations: sum.operations + part.operations,
            bytes: sum.bytes + part.bytes,
        });
        Ok(Outcome { done, seconds: start.elapsed().as_secs_f64() })
    }

    fn end(self: Box<Self>) -> io::Result<()> {
        self.targets.iter().try_for_each(Target::remove)
    }
}
