//! The same work at every layer: where the speed goes.

use super::objects::Objects;
use super::sweep::{self, Sweep, Target};
use crate::ranks::job::Server;
use crate::record::Sample;
use std::io;
use std::sync::Arc;

/// A layer between the disk and the application.
pub struct Layer {
    /// Its name in the table.
    pub name: String,
    /// Where its objects go: one store for each target below it, or one for all.
    pub targets: Vec<Arc<dyn Objects>>,
}

/// What every layer does.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// Bytes of all threads.
    pub size: u64,
    /// Bytes per record.
    pub record: u64,
    /// Threads, each with an object of its own.
    pub threads: u32,
    /// An fsync of every object is inside the time of writing.
    pub sync: bool,
    /// How often, over all layers in turn.
    pub rounds: u32,
}

/// Runs it on every layer in turn, round by round, so that a change of the machine touches all. The
/// samples' phases are `LAYER: write` and `LAYER: read`.
///
/// # Errors
/// The first of a layer.
pub fn run(
    layers: &[Layer],
    work: &Workload,
    servers: &[Server],
    told: &mut dyn FnMut(&Sample),
) -> io::Result<Vec<Sample>> {
    let mut samples = Vec::new();
    for iteration in 0..work.rounds {
        for layer in layers {
            let many = layer.targets.len() as u32;
            // As many threads in all, spread over the targets of the layer.
            let threads = (work.threads / many).max(1);
            let size = work.size / u64::from(many);
            let point =
                Sweep { size, record: work.record, objects: threads, threads, sync: work.sync };
            let target = |objects: &Arc<dyn Objects>| Target {
                name: layer.name.clone(),
                objects: objects.clone(),
            };
            let targets: Vec<Target> = layer.targets.iter().map(target).collect();
            for (phase, write) in [("write", true), ("read", false)] {
                let mut sample = sweep::phase(&targets, &point, servers, phase, write)?;
                sample.phase = format!("{}: {phase}", layer.name);
                sample.iteration = iteration;
                told(&sample);
                samples.push(sample);
            }
        }
    }
    for target in layers.iter().flat_map(|layer| &layer.targets) {
        target.remove()?;
    }
    Ok(samples)
}
