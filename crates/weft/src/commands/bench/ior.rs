//! `weft bench ior`.

use super::common::{Common, Wanted};
use crate::cli::Global;
use crate::outcome::Outcome;
use clap::Args;
use std::path::Path;
use weft_eval::ior::{self, Config};

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
        let mut records = Vec::new();
        for test in self.config.tests()? {
            let config = test.checked()?;
            let path = config.file.split('@').next().unwrap_or_default();
            let (ranks, api) = (config.ranks, config.api.as_str());
            let wanted =
                Wanted { ranks, threads: false, hosts: Vec::new(), api, path: Path::new(path) };
            let Some(setup) = self.common.setup(&wanted)? else { continue };
            Common::say(global, &ior::heading(&config, &ior::begin(&config, &setup)?))?;
            let mut said = Ok(());
            let record = ior::run(&config, &setup, &mut |sample| {
                said = Common::say(global, &ior::row(&config, sample));
            })?;
            said?;
            Common::say(global, &ior::render(&config, &record))?;
            records.push(record);
        }
        if records.is_empty() {
            return Ok(Outcome::Done);
        }
        self.common.finish(global, &records)
    }
}
