//! `weft eval`: studies of a whole system, with reports.

mod bed;
mod cluster;
mod compare;
mod local;
mod output;
mod recovery;
mod run;
mod tool;

use crate::outcome::Outcome;
use crate::output as out;
use anyhow::Error;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use weft_study::results::Results;
use weft_study::studies;

/// Commands on evaluations.
#[derive(Subcommand)]
pub enum Command {
    /// Run studies, or what is left of them, and write their reports.
    Run(run::Run),
    /// List the studies.
    List,
    /// Write the report of results that are there.
    Report(Report),
    /// Show two runs of a study side by side.
    Compare(compare::Compare),
}

/// Write the HTML report and the pictures of a study from its results.
#[derive(Args)]
pub struct Report {
    /// Results of a study.
    file: PathBuf,
}

impl Command {
    /// Does it.
    ///
    /// # Errors
    /// Those of the command.
    pub fn run(self) -> anyhow::Result<Outcome> {
        match self {
            Command::Run(command) => command.run(),
            Command::List => list(),
            Command::Report(command) => command.run(),
            Command::Compare(command) => command.run(),
        }
    }
}

fn list() -> anyhow::Result<Outcome> {
    let mut table = out::Table::new(&["NAME", "STUDY", "AFTER"]);
    for study in studies::ALL {
        table.row([study.name, study.title, study.source].map(String::from).to_vec());
    }
    out::put(&table.text())?;
    Ok(Outcome::Done)
}

impl Report {
    fn run(self) -> anyhow::Result<Outcome> {
        let results = Results::load(&self.file).map_err(Error::msg)?;
        let study = studies::find(&results.study).map_err(Error::msg)?;
        output::write(study, &results, &self.file)?;
        Ok(Outcome::Done)
    }
}
