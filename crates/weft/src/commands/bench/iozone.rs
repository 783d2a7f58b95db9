//! `weft bench iozone`.

use super::common::{Common, Wanted};
use super::real;
use crate::cli::Global;
use crate::outcome::{Outcome, Usage};
use anyhow::Context;
use clap::Args;
use std::path::Path;
use weft_eval::iozone::config::clients;
use weft_eval::iozone::{self, Config};

/// Throughput of a file for each process; options, units and lines of iozone's throughput mode.
#[derive(Args)]
#[command(
    args_override_self = true,
    after_help = "\
Examples:
  weft bench iozone -i 0 -c -e -w -r 256k -s 4g -t 8 -+n
  weft bench iozone -i 1 -c -e -w -r 1024k -s 4g -t 4 -+n -+m clients --bench-key FILE"
)]
pub struct Iozone {
    #[command(flatten)]
    config: Config,
    #[command(flatten)]
    common: Common,
}

impl Iozone {
    /// Runs it.
    ///
    /// # Errors
    /// Those of the ranks.
    pub fn run(self, global: Global) -> anyhow::Result<Outcome> {
        let mut config = self.config.checked()?;
        let mut hosts = Vec::new();
        if let Some(file) = &config.clients {
            let named = || format!("-+m {}", file.display());
            let list = clients(&std::fs::read_to_string(file).with_context(named)?)?;
            if list.len() < config.ranks as usize {
                let why = format!("-+m: {} lines for {} processes", list.len(), config.ranks);
                return Err(Usage(why).into());
            }
            (hosts, config.dirs) = list.into_iter().map(|line| (line.host, line.dir)).unzip();
        }
        let path = config.path(0);
        let wanted = Wanted {
            ranks: Some(config.ranks),
            threads: config.threads,
            hosts,
            api: &config.api,
            path: Path::new(&path),
        };
        let Some(setup) = self.common.setup(&wanted)? else { return Ok(Outcome::Done) };
        let before = iozone::begin(&config, &setup)?;
        if let Some(tool) = &self.common.with {
            return self.common.finish(global, &[real::run(tool, &setup, before, global)?]);
        }
        Common::say(global, &iozone::heading(&config, &before))?;
        let mut said = Ok(());
        let record = iozone::run(&config, &setup, &mut |sample| {
            said = Common::say(global, &iozone::block(&config, sample));
        })?;
        said?;
        self.common.finish(global, &[record])
    }
}
