//! The one file in which a study keeps everything.

use crate::point::Point;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use weft_eval::record::{Machine, Record, Stats};

/// Version of the form of the file; raised when a reader of the old form would misread it.
pub const FORMAT: u32 = 2;

/// How much of a study is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Size {
    /// Ends in a few minutes on two processors.
    Quick,
    /// As the report had it, as far as one machine allows.
    Full,
}

impl Size {
    /// `quick` for one, `full` for the other.
    pub fn pick<T>(self, quick: T, full: T) -> T {
        match self {
            Size::Quick => quick,
            Size::Full => full,
        }
    }

    /// How often each point is measured unless told otherwise.
    pub fn repeats(self) -> u32 {
        self.pick(1, 3)
    }
}

/// A study as far as it is done.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Results {
    /// [`FORMAT`].
    pub format: u32,
    /// Name of the study.
    pub study: String,
    /// Its size.
    pub size: Size,
    /// How often each point is measured.
    pub repeats: u32,
    /// What ran, with its version.
    pub program: String,
    /// The machine.
    pub machine: Machine,
    /// Where and how, by name: directory, file system, kind of clients.
    pub settings: BTreeMap<String, String>,
    /// When the first point began, seconds since 1970.
    pub started: u64,
    /// Points that were measured, in the order in which they were.
    pub points: Vec<Outcome>,
}

/// A point and what came of it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// The point.
    pub point: Point,
    /// What came of it.
    #[serde(flatten)]
    pub measured: Measured,
    /// When it began, seconds since 1970.
    pub started: u64,
    /// Time that all of it took, seconds, with starting the cluster.
    pub seconds: f64,
    /// Load average of the machine over one minute, before.
    pub load_before: f64,
    /// Why there are no figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// What came of a point.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Measured {
    /// The figures.
    pub figures: Vec<Figure>,
    /// Command lines that do it again.
    pub commands: Vec<String>,
    /// What a reader has to know, one sentence each.
    pub notes: Vec<String>,
}

/// A figure.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Figure {
    /// What was measured: `write`, `File creation`.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// The middle one of the repetitions.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// All that were measured, in that order. A real tool may tell only their mean, and min and max.
    pub values: Vec<f64>,
    /// Processor seconds of clients' programs and of servers and mounts, per GiB or per 1,000
    /// operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<[f64; 2]>,
}

impl Figure {
    /// A figure measured once.
    pub fn once(name: &str, unit: &str, value: f64) -> Figure {
        Figure {
            name: name.into(),
            unit: unit.into(),
            median: value,
            min: value,
            max: value,
            values: vec![value],
            cpu: None,
        }
    }

    /// The same figure with what a further repetition of its point has given.
    fn with(&self, other: &Figure) -> Figure {
        let values = [&self.values[..], &other.values].concat();
        let (own, more) = (self.values.len() as f64, other.values.len() as f64);
        let mean = |a: f64, b: f64| (a * own + b * more) / (own + more);
        let cpu = |(a, b): ([f64; 2], [f64; 2])| [mean(a[0], b[0]), mean(a[1], b[1])];
        Figure {
            median: Stats::of(values.iter().copied()).median,
            min: self.min.min(other.min),
            max: self.max.max(other.max),
            values,
            cpu: self.cpu.zip(other.cpu).map(cpu),
            ..self.clone()
        }
    }

    /// The figures of a run of a tool, but for those of a handful of operations, which are no rates:
    /// removing the files of IOR, making the trees of mdtest.
    pub fn of(record: &Record) -> Vec<Figure> {
        let figure = |phase: &weft_eval::record::Phase| {
            let single: Vec<f64> = record.of(&phase.phase).map(|sample| sample.rate).collect();
            Figure {
                // A survey names its phases by the point, too, which a study has chosen itself.
                name: phase.phase.split(" rsz ").next().unwrap_or_default().into(),
                unit: phase.unit.clone(),
                median: phase.rate.median,
                min: phase.rate.min,
                max: phase.rate.max,
                values: if single.is_empty() { vec![phase.rate.mean] } else { single },
                cpu: if phase.unit == "ops/s" { phase.cpu_per_1000 } else { phase.cpu_per_gib },
            }
        };
        let counts = |phase: &&weft_eval::record::Phase| {
            phase.phase != "remove" && !phase.phase.starts_with("Tree")
        };
        record.phases.iter().filter(counts).map(figure).collect()
    }
}

impl Measured {
    /// Takes in what a further repetition of the same point has given.
    pub fn add(&mut self, other: Measured) {
        for figure in other.figures {
            match self.figures.iter_mut().find(|known| known.name == figure.name) {
                Some(known) => *known = known.with(&figure),
                None => self.figures.push(figure),
            }
        }
        let new = |notes: &[String], note: &String| !notes.contains(note);
        let notes: Vec<String> =
            other.notes.into_iter().filter(|note| new(&self.notes, note)).collect();
        self.notes.extend(notes);
    }
}

impl Results {
    /// Nothing measured yet, on this machine.
    pub fn begin(
        study: &str,
        (size, repeats): (Size, u32),
        settings: BTreeMap<String, String>,
    ) -> Results {
        Results {
            format: FORMAT,
            study: study.into(),
            size,
            repeats,
            program: format!("weft {}", env!("CARGO_PKG_VERSION")),
            machine: Machine::here(),
            settings,
            started: unix_time(),
            points: Vec::new(),
        }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// A sentence that names the file and says what is wrong.
    pub fn load(file: &Path) -> Result<Results, String> {
        let named = |why: String| format!("file={}: {why}", file.display());
        let text = fs::read_to_string(file).map_err(|error| named(error.to_string()))?;
        let strange = |error| named(format!("not the results of a study: {error}"));
        let value: serde_json::Value = serde_json::from_str(&text).map_err(strange)?;
        if value["format"] != FORMAT {
            return Err(named(format!("format {} is not {FORMAT}", value["format"])));
        }
        serde_json::from_value(value).map_err(strange)
    }

    /// Writes the file, or leaves it as it was.
    ///
    /// # Errors
    /// A sentence that names the file.
    pub fn save(&self, file: &Path) -> Result<(), String> {
        let text = serde_json::to_string_pretty(self).map_err(|error| error.to_string())?;
        write_atomically(file, text.as_bytes())
    }

    /// The outcome of a point; none when it was not measured, or in vain.
    pub fn of(&self, point: &Point) -> Option<&Outcome> {
        self.points.iter().find(|outcome| outcome.point == *point && outcome.failed.is_none())
    }

    /// Takes in an outcome, in place of an earlier one of the same point.
    pub fn add(&mut self, outcome: Outcome) {
        self.points.retain(|earlier| earlier.point != outcome.point);
        self.points.push(outcome);
    }

    /// The points of a part that have figures.
    pub fn part<'a>(&'a self, part: &'a str) -> impl Iterator<Item = &'a Outcome> {
        self.points.iter().filter(move |o| o.point.part == part && o.failed.is_none())
    }
}

impl Outcome {
    /// A figure by its name.
    pub fn figure(&self, name: &str) -> Option<&Figure> {
        self.measured.figures.iter().find(|figure| figure.name == name)
    }

    /// The share of what the devices allow.
    pub fn efficiency(&self, figure: &Figure) -> Option<f64> {
        Some(figure.median / self.point.cluster.limit(&figure.unit)?)
    }
}

/// Seconds since 1970.
pub fn unix_time() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Replaces a file by way of one beside it.
///
/// # Errors
/// A sentence that names the file.
pub fn write_atomically(file: &Path, bytes: &[u8]) -> Result<(), String> {
    let beside = file.with_extension("new");
    let write = || {
        let mut new = File::create(&beside)?;
        new.write_all(bytes)?;
        new.sync_all()?;
        fs::rename(&beside, file)
    };
    write().map_err(|error| format!("cannot write file={}: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_are_kept_and_their_median_counts() {
        let point = |write: f64, cpu: f64, notes: &[&str]| Measured {
            figures: vec![Figure {
                cpu: Some([cpu, 0.0]),
                ..Figure::once("write", "MiB/s", write)
            }],
            commands: vec!["weft bench ior".into()],
            notes: notes.iter().map(|note| note.to_string()).collect(),
        };
        let mut measured = point(7.0, 1.0, &["a"]);
        measured.add(point(100.0, 2.0, &["a"]));
        measured.add(point(5.0, 6.0, &["a", "b"]));
        let figure = &measured.figures[0];
        assert_eq!(figure.values, [7.0, 100.0, 5.0]);
        assert_eq!((figure.median, figure.min, figure.max), (7.0, 5.0, 100.0));
        assert_eq!(figure.cpu, Some([3.0, 0.0]));
        assert_eq!((measured.figures.len(), measured.commands.len()), (1, 1));
        assert_eq!(measured.notes, ["a", "b"]);
    }
}
