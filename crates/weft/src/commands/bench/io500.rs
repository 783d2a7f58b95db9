//! `weft bench io500`.

use super::common::{Common, Wanted};
use crate::cli::Global;
use crate::outcome::Outcome;
use anyhow::Context;
use clap::Args;
use std::path::{Path, PathBuf};
use weft_eval::io500::{self, Config, result_line, score_line};

/// The phases of the IO500 in their order, and its score: a look-alike, not a submission. Options go
/// before what a configuration file says.
#[derive(Args)]
#[command(
    args_override_self = true,
    after_help = "\
Examples:
  weft bench io500 --np 4 --stonewall 30 --datadir /mnt/weft
  mpirun -n 32 weft bench io500 config.ini"
)]
pub struct Io500 {
    /// Configuration as the IO500 has it: [global] datadir, api; [debug] stonewall-time; [ior-easy]
    /// transferSize, blockSize; [ior-hard] segmentCount; [mdtest-easy] and [mdtest-hard] n.
    config: Option<PathBuf>,
    /// Directory to work in.
    #[arg(long, value_name = "DIR")]
    datadir: Option<String>,
    /// Seconds of each phase that writes (a submission has 300).
    #[arg(long, value_name = "SECONDS")]
    stonewall: Option<u64>,
    /// How files are reached: POSIX or WEFT (the client library).
    #[arg(long)]
    api: Option<String>,
    #[command(flatten)]
    common: Common,
}

impl Io500 {
    /// Runs it.
    ///
    /// # Errors
    /// Those of the ranks.
    pub fn run(self, global: Global) -> anyhow::Result<Outcome> {
        let mut config = match &self.config {
            None => Config::default(),
            Some(file) => {
                let named = || format!("file={}", file.display());
                let text = std::fs::read_to_string(file).with_context(named)?;
                Config::read(&text).with_context(named)?
            }
        };
        config.datadir = self.datadir.unwrap_or(config.datadir);
        config.stonewall = self.stonewall.unwrap_or(config.stonewall);
        config.api = self.api.unwrap_or(config.api);
        let path = Path::new(&config.datadir);
        let wanted =
            Wanted { ranks: None, threads: false, hosts: Vec::new(), api: &config.api, path };
        let Some(setup) = self.common.setup(&wanted)? else { return Ok(Outcome::Done) };
        Common::say(global, "IO500 look-alike of weft (not a submission)\n")?;
        let mut said = Ok(());
        let (record, score) = io500::run(&config, &setup, &mut |sample| {
            said = Common::say(global, &result_line(sample));
        })?;
        said?;
        let line = score.as_ref().map_or("no score: a phase had no rate\n".into(), score_line);
        Common::say(global, &line)?;
        self.common.finish(global, &[record])
    }
}
