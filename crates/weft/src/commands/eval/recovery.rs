//! How long clients wait when servers end and are started again.

use super::cluster::Cluster;
use std::path::Path;
use std::time::{Duration, Instant};
use weft_study::probe::{Probe, Task};
use weft_study::results::{Figure, Measured};

/// Quiet time before and after.
const SETTLE: Duration = Duration::from_secs(1);
/// Longest wait until everything goes on.
const PATIENCE: Duration = Duration::from_secs(120);
/// Files written to; with a stripe each they are spread over the OSTs in turn.
const FILES: u32 = 4;

/// Ends the components while clients work, starts them again at once, and waits until all goes on.
///
/// # Errors
/// When a server cannot be ended or started, or work does not go on in time.
pub fn measure(
    cluster: &Cluster,
    components: &[String],
    orderly: bool,
) -> Result<Measured, String> {
    let dirs = cluster.work_dirs();
    let start = |number: u32, task| {
        let dir = Path::new(&dirs[number as usize % dirs.len()]);
        Probe::start(dir, &format!("probe{number}"), task)
            .map_err(|error| format!("probe: {error}"))
    };
    let writers: Vec<Probe> =
        (0..FILES).map(|number| start(number, Task::Write)).collect::<Result<_, _>>()?;
    let makers: Vec<Probe> =
        (FILES..FILES + 2).map(|number| start(number, Task::Create)).collect::<Result<_, _>>()?;
    std::thread::sleep(SETTLE);
    let began = Instant::now();
    cluster.end(components, orderly)?;
    let ended = began.elapsed();
    cluster.start_again()?;
    let restarted = began.elapsed();
    wait_until_all_go_on(writers.iter().chain(&makers))?;
    std::thread::sleep(SETTLE);
    let longest = |probes: Vec<Probe>| -> Result<(f64, u64), String> {
        let mut worst = (0.0, 0);
        for probe in probes {
            let seen = probe.stop().map_err(|error| format!("probe: {error}"))?;
            worst = (seen.longest.as_secs_f64().max(worst.0), worst.1 + seen.errors);
        }
        Ok(worst)
    };
    let ((data, data_errors), (metadata, metadata_errors)) = (longest(writers)?, longest(makers)?);
    let how = if orderly { "stopped in order" } else { "killed" };
    Ok(Measured {
        figures: vec![
            Figure::once("data", "s", data),
            Figure::once("metadata", "s", metadata),
            Figure::once("stop", "s", ended.as_secs_f64()),
            Figure::once("restart", "s", (restarted - ended).as_secs_f64()),
            Figure::once("failed operations", "", (data_errors + metadata_errors) as f64),
        ],
        commands: vec![format!("# {} {how}, then weft dev up", components.join(", "))],
        notes: Vec::new(),
    })
}

/// Waits until each has done more than it has now, and after that once more.
fn wait_until_all_go_on<'a>(probes: impl Iterator<Item = &'a Probe>) -> Result<(), String> {
    let deadline = Instant::now() + PATIENCE;
    for probe in probes {
        let before = probe.operations();
        while probe.operations() < before + 2 {
            if Instant::now() > deadline {
                return Err(format!("clients still wait after {} s", PATIENCE.as_secs()));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    Ok(())
}
