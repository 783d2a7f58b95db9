//! `weft bench ior`.

use super::common::{Common, Wanted};
use super::real;
use crate::cli::Global;
use crate::outcome::Outcome;
use clap::Args;
use std::path::Path;
use weft_eval::driver::Setup;
use weft_eval::ior::{self, Config};
use weft_eval::record::{Record, Sample};

/// Bandwidth of files that all ranks write and read together; options, phases and tables of IOR.
#[derive(Args)]
#[command(
    args_override_self = true,
    after_help = "\
Examples:
  weft bench ior -w -r -t 1m -b 256m -F -N 4 -o /mnt/weft/f
  weft bench ior -w -r -W -t 47008 -b 47008 -s 1000 -N 4 -o /mnt/weft/hard
  weft bench ior -a WEFT -N 4 -F -t 4m -b 1g -o /f
  mpirun -n 8 weft bench ior -a POSIX -F -B -t 1m -b 4g -w -r -k -D 60 -o /mnt/weft/f"
)]
pub struct Ior {
    #[command(flatten)]
    config: Config,
    #[command(flatten)]
    common: Common,
}

impl Ior {
    /// Runs it.
    ///
    /// # Errors
    /// Those of the ranks.
    pub fn run(self, global: Global) -> anyhow::Result<Outcome> {
        let tests = self.config.tests()?;
        let tests: Vec<Config> = tests.iter().map(Config::checked).collect::<Result<_, _>>()?;
        let first = tests.first().unwrap_or(&self.config);
        let path = Path::new(first.file.split('@').next().unwrap_or_default());
        let (ranks, api) = (first.ranks, first.api.as_str());
        let wanted = Wanted { ranks, threads: false, hosts: Vec::new(), api, path };
        let Some(setup) = self.common.setup(&wanted)? else { return Ok(Outcome::Done) };
        let mut records = Vec::new();
        for config in &tests {
            records.push(self.one(config, &setup, global)?);
        }
        self.common.finish(global, &records)
    }

    fn one(&self, config: &Config, setup: &Setup, global: Global) -> anyhow::Result<Record> {
        let before = ior::begin(config, setup)?;
        if let Some(tool) = self.common.with.as_deref().filter(|tool| *tool != "fio") {
            return real::run(tool, setup, before, global);
        }
        Common::say(global, &ior::heading(config, &before))?;
        let mut said = Ok(());
        let mut told = |sample: &Sample| said = Common::say(global, &ior::row(config, sample));
        let record = match self.common.with {
            Some(_) => real::fio(config, setup, &mut told)?,
            None => ior::run(config, setup, &mut told)?,
        };
        said?;
        Common::say(global, &ior::render(config, &record))?;
        Ok(record)
    }
}
