//! Goes through the points of a study.

use crate::point::{Point, describe};
use crate::progress::Progress;
use crate::results::{Measured, Outcome, Results, Size, unix_time};
use crate::studies::Study;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;
use weft_eval::record::load_average;

/// Where points are measured.
pub trait Testbed {
    /// Where and how, for the report and to tell whether results belong together.
    fn settings(&self) -> BTreeMap<String, String>;

    /// Measures a point. What it starts it keeps for a next point on the same cluster.
    ///
    /// # Errors
    /// A sentence that says why there are no figures.
    fn measure(&mut self, point: &Point) -> Result<Measured, String>;

    /// Whether somebody wants the study to stop.
    fn interrupted(&self) -> bool;
}

/// Which study, and how much of it.
#[derive(Clone, Copy)]
pub struct Plan<'a> {
    /// The study.
    pub study: &'a Study,
    /// Its size.
    pub size: Size,
    /// How often each point is measured, at least once.
    pub repeats: u32,
    /// Only these parts; all when empty.
    pub parts: &'a [String],
}

/// Runs a study, or what is left of it: after each point everything is in `file`.
///
/// # Errors
/// Sentences: a file of another study, size or setting; a file that cannot be written. Points that
/// fail are kept as such, and tried again by the next run.
pub fn run(
    plan: Plan<'_>,
    file: &Path,
    bed: &mut dyn Testbed,
    progress: &mut Progress,
) -> Result<Results, String> {
    let Plan { study, size, repeats, parts } = plan;
    let known = (study.parts)();
    if let Some(part) = parts.iter().find(|part| known.iter().all(|known| known.name != **part)) {
        let names: Vec<&str> = known.iter().map(|part| part.name).collect();
        return Err(format!(
            "study {} has no part {part:?}; there are {}",
            study.name,
            names.join(", ")
        ));
    }
    let mut results = open(plan, file, bed.settings())?;
    let points = (study.points)(size);
    // What an earlier version of the study asked otherwise would stand beside the new answer.
    results.points.retain(|outcome| points.contains(&outcome.point));
    results.save(file)?;
    let asked = |point: &&Point| parts.is_empty() || parts.contains(&point.part);
    let total = points.iter().filter(asked).count();
    let left: Vec<&Point> =
        points.iter().filter(asked).filter(|point| results.of(point).is_none()).collect();
    progress.begin(study.name, total, left.len());
    for point in left {
        if bed.interrupted() {
            break;
        }
        progress.start(&format!("{}: {}", point.part, describe(&point.params)));
        let outcome = measure(point, repeats, bed);
        // What was cut short is not a result.
        if bed.interrupted() && outcome.failed.is_some() {
            break;
        }
        progress.done(&outcome);
        results.add(outcome);
        results.points.sort_by_key(|o| points.iter().position(|point| *point == o.point));
        results.save(file)?;
    }
    progress.end();
    Ok(results)
}

/// One point, as often as asked for. If one time fails, so does the point.
fn measure(point: &Point, repeats: u32, bed: &mut dyn Testbed) -> Outcome {
    let (started, load_before, clock) = (unix_time(), load_average()[0], Instant::now());
    let mut all = bed.measure(point);
    for _ in 1..repeats {
        let Ok(measured) = &mut all else { break };
        if bed.interrupted() {
            all = Err("stopped".into());
            break;
        }
        match bed.measure(point) {
            Ok(again) => measured.add(again),
            Err(why) => all = Err(why),
        }
    }
    let (measured, failed) = match all {
        Ok(measured) => (measured, None),
        Err(why) => (Measured::default(), Some(why)),
    };
    let seconds = clock.elapsed().as_secs_f64();
    Outcome { point: point.clone(), measured, started, seconds, load_before, failed }
}

fn open(
    plan: Plan<'_>,
    file: &Path,
    settings: BTreeMap<String, String>,
) -> Result<Results, String> {
    let here = Results::begin(plan.study.name, (plan.size, plan.repeats), settings);
    if !file.exists() {
        return Ok(here);
    }
    let results = Results::load(file)?;
    let differs = [
        ("study", results.study != here.study),
        ("size", results.size != here.size),
        ("number of repetitions", results.repeats != here.repeats),
        ("program", results.program != here.program),
        ("machine", results.machine != here.machine),
        ("settings", results.settings != here.settings),
    ];
    match differs.iter().find(|(_, differs)| *differs) {
        None => Ok(results),
        Some((what, _)) => Err(format!(
            "file={} holds results of another {what}; move it away, or choose another directory with -o",
            file.display()
        )),
    }
}
