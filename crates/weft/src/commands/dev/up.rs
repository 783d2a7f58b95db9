//! `weft dev up`.

use super::Which;
use super::home::{ALL, Home};
use super::shape::Shape;
use crate::cli::Global;
use crate::cluster::Device;
use crate::commands::{mount, server};
use crate::logging::LogForm;
use crate::mounts::{self, MountOptions};
use crate::node::{NodeConfig, read_state_files};
use crate::outcome::{Outcome, Usage};
use crate::{output, process};
use anyhow::{Context, bail};
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Longest start of a process: RocksDB may have a long log to read.
const READY_PATIENCE: Duration = Duration::from_secs(120);
/// Longest wait for the mount's first answer.
const ANSWER_PATIENCE: Duration = Duration::from_secs(60);
/// A mount that does not answer for this long may miss a server that was just ending when it was looked for.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Make a cluster in a directory, or start the one that is there again, and mount it.
#[derive(Args)]
pub struct Up {
    #[command(flatten)]
    which: Which,
    /// Mount here [default: DIR/mnt, or where it was mounted last].
    #[arg(long)]
    mount: Option<PathBuf>,
    /// Metadata targets.
    #[arg(long, default_value_t = 1)]
    mdts: u16,
    /// Object storage targets; more than there are are added [default: 4, or as many as there are].
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=64))]
    osts: Option<u16>,
    /// A process for each server and for the mount, speaking TCP, instead of one for all.
    #[arg(long)]
    processes: bool,
    /// Mount options, separated by commas; see weft mount --help [default: as it was mounted last].
    #[arg(short, value_name = "LIST")]
    options: Option<String>,
    #[command(flatten)]
    shape: Shape,
    /// Stay in the foreground, with the log on standard error.
    #[arg(long, conflicts_with = "processes")]
    pub foreground: bool,
}

impl Up {
    /// Starts what is not running. The mount answers when this returns.
    ///
    /// # Errors
    /// With the last lines of the log of the process that does not start.
    pub fn run(self, global: Global) -> anyhow::Result<Outcome> {
        if self.mdts != 1 {
            let why = "a namespace has one MDT so far; several come in a later version";
            return Err(Usage(format!("--mdts {}: {why}", self.mdts)).into());
        }
        self.options.as_deref().map(MountOptions::parse).transpose()?;
        let mut home =
            Home::make(&self.which.dir()?, self.osts, self.mount.clone(), self.options.clone())?;
        home.reshape(&self.shape)?;
        let running = running(&home)?;
        let is_up = is_mounted(&home)? || !running.is_empty();
        if is_up && (self.foreground || (self.processes && !home.is_apart())) {
            bail!("the cluster runs already, in another way; weft dev down first");
        }
        if self.foreground {
            return serve_here(home);
        }
        // What is left of it is made whole in the way in which it was started.
        let apart = if is_up { home.is_apart() } else { self.processes };
        let started = start_until_answering(&mut home, apart, global.log)?;
        report(&home, started)?;
        Ok(Outcome::Done)
    }
}

/// Names of the server processes that run.
fn running(home: &Home) -> anyhow::Result<Vec<String>> {
    Ok(read_state_files(&home.run_dir())?.into_iter().map(|state| state.name).collect())
}

fn is_mounted(home: &Home) -> anyhow::Result<bool> {
    Ok(mounts::recorded()?.iter().any(|record| record.is_at(home.mountpoint())))
}

/// Starts what does not run, and what ends while the mount does not answer. Whether there was anything.
fn start_until_answering(home: &mut Home, apart: bool, log: LogForm) -> anyhow::Result<bool> {
    let see_logs = format!("see the logs in {}", home.log_file("*").display());
    let deadline = Instant::now() + ANSWER_PATIENCE;
    let mut started = false;
    loop {
        started |= match apart {
            true => start_processes(home, log)?,
            false => start_one(home, log)?,
        };
        if mounts::answers_within(home.mountpoint(), LOOK_AGAIN).context(see_logs.clone())? {
            return Ok(started);
        }
        if Instant::now() >= deadline {
            bail!("the mount on dir={} does not answer; {see_logs}", home.mountpoint().display());
        }
    }
}

/// Serves in this process until a signal.
fn serve_here(mut home: Home) -> anyhow::Result<Outcome> {
    let config = home.one_process()?;
    home.write_config(&config)?;
    eprintln!("weft: mounting on {}; Ctrl-C stops", home.mountpoint().display());
    // Others may look and stop it from here on.
    drop(home);
    server::serve(&config)
}

/// Starts everything in one process, unless it runs. Whether something was started.
fn start_one(home: &mut Home, log: LogForm) -> anyhow::Result<bool> {
    if running(home)?.iter().any(|name| name == ALL) {
        return start_mount(home, log);
    }
    let config = home.one_process()?;
    start_server(home, &config, log)?;
    Ok(true)
}

/// Starts those servers that do not run, and the mount. Whether something was started.
fn start_processes(home: &mut Home, log: LogForm) -> anyhow::Result<bool> {
    let running = running(home)?;
    let mut started = false;
    for config in home.processes()? {
        if !running.contains(&config.node) {
            start_server(home, &config, log)?;
            started = true;
        }
    }
    Ok(start_mount(home, log)? || started)
}

fn start_server(home: &Home, config: &NodeConfig, log: LogForm) -> anyhow::Result<()> {
    let file = home.write_config(config)?;
    let args: Vec<OsString> = vec![
        "server".into(),
        "--config".into(),
        file.into(),
        "--detached".into(),
        "--log".into(),
        log.name().into(),
    ];
    process::start_in_background(&args, &home.log_file(&config.node), READY_PATIENCE)
        .with_context(|| format!("cannot start {}", config.node))
}

/// Mounts by a process of its own, unless a living process has mounted there.
fn start_mount(home: &Home, log: LogForm) -> anyhow::Result<bool> {
    if is_mounted(home)? {
        return Ok(false);
    }
    let device = Device { managers: home.addresses()?, subtree: String::new() };
    let key = home.key_file();
    let (options, log_file) = (home.mount_options(), home.log_file("mount"));
    mount::start(&device, home.mountpoint(), options, Some(&key), &log_file, log)?;
    Ok(true)
}

fn report(home: &Home, started: bool) -> anyhow::Result<()> {
    let state = if started { "up" } else { "running already" };
    let dir = home.dir().display();
    output::put(&format!(
        "cluster   {state}, in {dir}\nmounted   {}\naddress   {}\nlogs      {dir}/log\n\
         stop      weft dev down --dir {dir}\n",
        home.mountpoint().display(),
        home.addresses()?.join(" "),
    ))?;
    Ok(())
}
