//! `weft bench mdtest`.

use super::common::{Common, Wanted};
use super::real;
use crate::cli::Global;
use crate::outcome::Outcome;
use clap::Args;
use std::path::Path;
use weft_eval::mdtest::{self, Config};

/// Rates of making, looking at and removing files and directories; options, phases and tables of
/// mdtest. The number of ranks is told by --np or mpirun, as -N is mdtest's stride.
#[derive(Args)]
#[command(
    args_override_self = true,
    after_help = "\
Examples:
  weft bench mdtest --np 4 -i 3 -I 10000 -F -C -T -r -u -d /mnt/weft/a@/mnt/weft/b
  weft bench mdtest --np 4 -n 1000 -w 3901 -e 3901 -F -N 1 -d /mnt/weft/hard
  weft bench mdtest --np 4 -a WEFT -n 10000 -F -u -d /md"
)]
pub struct Mdtest {
    #[command(flatten)]
    config: Config,
    #[command(flatten)]
    common: Common,
}

impl Mdtest {
    /// Runs it.
    ///
    /// # Errors
    /// Those of the ranks.
    pub fn run(self, global: Global) -> anyhow::Result<Outcome> {
        let config = self.config.checked()?;
        let path = Path::new(config.dirs.split('@').next().unwrap_or_default());
        let api = config.api.as_str();
        let wanted = Wanted { ranks: None, threads: false, hosts: Vec::new(), api, path };
        let Some(setup) = self.common.setup(&wanted)? else { return Ok(Outcome::Done) };
        let before = mdtest::begin(&config, &setup)?;
        if let Some(tool) = &self.common.with {
            return self.common.finish(global, &[real::run(tool, &setup, before, global)?]);
        }
        Common::say(global, &mdtest::heading(&config, &before, setup.launch.count))?;
        let record = mdtest::run(&config, &setup, &mut |_| {})?;
        Common::say(global, &mdtest::render(&config, &record))?;
        self.common.finish(global, &[record])
    }
}
