//! `weft eval compare`.

use super::local::LocalBed;
use super::{output, run};
use crate::outcome::Outcome;
use crate::output::put;
use crate::signals::stop_flag;
use anyhow::{Error, bail};
use clap::Args;
use std::path::{Path, PathBuf};
use weft_study::compare::Comparison;
use weft_study::engine::{Plan, Testbed};
use weft_study::results::{Results, write_atomically};
use weft_study::studies;

/// Show two runs of a study side by side, with ratios.
#[derive(Args)]
#[command(after_help = "\
Examples:
  weft eval compare before/dne.json after/dne.json --html dne.html
  weft eval compare results/dne.json --local /mnt/xfs     does the same work there first")]
pub struct Compare {
    /// Results of a study.
    a: PathBuf,
    /// Results of another run of it.
    #[arg(required_unless_present = "local", conflicts_with = "local")]
    b: Option<PathBuf>,
    /// Do the work of the study in this local directory, and compare with that.
    #[arg(long, value_name = "DIR")]
    local: Option<PathBuf>,
    /// Also write it as an HTML file.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

impl Compare {
    /// Compares and prints.
    ///
    /// # Errors
    /// For files that are no results or of different studies.
    pub fn run(self) -> anyhow::Result<Outcome> {
        let a = Results::load(&self.a).map_err(Error::msg)?;
        let (file, b) = match (&self.b, &self.local) {
            (Some(file), _) => (file.clone(), Results::load(file).map_err(Error::msg)?),
            (None, Some(dir)) => self.run_locally(&a, dir)?,
            (None, None) => bail!("compare with what?"),
        };
        let names = [&self.a, &file].map(|file| file.display().to_string());
        let comparison = Comparison::of(names, &a, &b).map_err(Error::msg)?;
        put(&comparison.text())?;
        if let Some(html) = &self.html {
            write_atomically(html, comparison.html().as_bytes()).map_err(Error::msg)?;
        }
        Ok(Outcome::Done)
    }

    /// Results beside those of `a`, as `NAME.local.json`.
    fn run_locally(&self, a: &Results, dir: &Path) -> anyhow::Result<(PathBuf, Results)> {
        let study = studies::find(&a.study).map_err(Error::msg)?;
        let file = self.a.with_extension("local.json");
        let mut bed = LocalBed::new(dir, stop_flag()?).map_err(Error::msg)?;
        let plan = Plan { study, size: a.size, repeats: a.repeats, parts: &[] };
        let results = run::run_one(plan, &file, &mut bed)?;
        output::write(study, &results, &file)?;
        if bed.interrupted() {
            bail!("stopped; the same command goes on where it was");
        }
        Ok((file, results))
    }
}
