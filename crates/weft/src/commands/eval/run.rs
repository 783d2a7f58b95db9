//! `weft eval run`.

use super::bed::ClusterBed;
use super::output;
use crate::outcome::{Outcome, Usage};
use crate::signals::stop_flag;
use anyhow::{Context, Error, bail};
use clap::Args;
use std::path::{Path, PathBuf};
use weft_study::engine::{self, Plan};
use weft_study::progress::Progress;
use weft_study::results::{Results, Size};
use weft_study::studies::{self, Study};

/// Run studies, or what is left of them. Clusters are started, filled and removed in a directory of
/// their own.
#[derive(Args)]
#[command(after_help = "\
Examples:
  weft eval run all --quick -o results        every study in its small size
  weft eval run sonexion -o results           one study in full; what is there already is kept
Each study leaves NAME.json (every figure), NAME.html (the report) and NAME.plots/*.svg.")]
pub struct Run {
    /// Names of studies, or all.
    #[arg(required = true)]
    names: Vec<String>,
    /// A size that ends in a few minutes on two processors.
    #[arg(long)]
    quick: bool,
    /// How often each point is measured: reports tell the median, with the smallest and the largest
    /// [default: 3, with --quick 1].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    repeat: Option<u32>,
    /// Only this part of a study; may be given again.
    #[arg(long = "part", value_name = "PART")]
    parts: Vec<String>,
    /// Directory of results and reports.
    #[arg(short, long, default_value = "weft-eval")]
    out: PathBuf,
    /// Directory for clusters and their data, which must not exist or be empty [default: OUT/work].
    #[arg(long)]
    dir: Option<PathBuf>,
}

impl Run {
    /// Runs them one after the other.
    ///
    /// # Errors
    /// [`Usage`] for a name that is unknown; those of the directories. Points that fail are in the
    /// report, and make the outcome [`Outcome::Partly`].
    pub fn run(self) -> anyhow::Result<Outcome> {
        let studies = self.studies()?;
        let size = if self.quick { Size::Quick } else { Size::Full };
        std::fs::create_dir_all(&self.out)
            .with_context(|| format!("cannot make dir={}", self.out.display()))?;
        let work = self.dir.clone().unwrap_or_else(|| self.out.join("work"));
        let work = std::path::absolute(&work)?;
        let mut bed = ClusterBed::new(&work, stop_flag()?)?;
        let mut outcome = Outcome::Done;
        for study in studies {
            let file = self.out.join(format!("{}.json", study.name));
            let repeats = self.repeat.unwrap_or(size.repeats());
            let plan = Plan { study, size, repeats, parts: &self.parts };
            let results = run_one(plan, &file, &mut bed)?;
            output::write(study, &results, &file)?;
            if engine::Testbed::interrupted(&bed) {
                bail!("stopped; the same command goes on where it was");
            }
            if results.points.iter().any(|point| point.failed.is_some()) {
                outcome = Outcome::Partly;
            }
        }
        Ok(outcome)
    }

    fn studies(&self) -> anyhow::Result<Vec<&'static Study>> {
        if self.names.iter().any(|name| name == "all") {
            return Ok(studies::ALL.iter().collect());
        }
        let found: Result<_, String> = self.names.iter().map(|name| studies::find(name)).collect();
        found.map_err(|why| Usage(why).into())
    }
}

/// Runs a study on a testbed.
///
/// # Errors
/// Those of [`engine::run`].
pub fn run_one(
    plan: Plan<'_>,
    file: &Path,
    bed: &mut dyn engine::Testbed,
) -> anyhow::Result<Results> {
    engine::run(plan, file, bed, &mut Progress::new()).map_err(Error::msg)
}
