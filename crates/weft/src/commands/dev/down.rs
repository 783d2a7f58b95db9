//! `weft dev down`.

use super::Which;
use super::home::Home;
use crate::mounts;
use crate::node::{State, read_state_files};
use crate::outcome::Outcome;
use crate::output;
use crate::process::ProcessId;
use clap::Args;
use std::time::Duration;

/// Longest orderly stop of a process; it bounds its own waits to less.
const STOP_PATIENCE: Duration = Duration::from_secs(60);

/// Unmount and stop a development cluster; its data stays for the next `weft dev up`.
#[derive(Args)]
pub struct Down {
    #[command(flatten)]
    which: Which,
}

impl Down {
    /// Stops everything that runs, in the order in which it depends on each other.
    ///
    /// # Errors
    /// Those of the disk. A process that does not stop in time is killed, with a warning.
    pub fn run(self) -> anyhow::Result<Outcome> {
        let dir = self.which.dir()?;
        let Some(home) = Home::look(&dir)? else {
            output::put(&format!("no cluster in {}\n", dir.display()))?;
            return Ok(Outcome::Done);
        };
        let home = home.locked()?;
        let servers = in_stopping_order(read_state_files(&home.run_dir())?);
        let mount = mounts::recorded()?.into_iter().find(|record| record.is_at(home.mountpoint()));
        let mount = mount.map(|record| record.process);
        let alone = mount.filter(|&process| servers.iter().all(|s| s.process != process));
        let was_running = alone.is_some() || !servers.is_empty();
        let mut orderly = true;
        if let Some(process) = alone {
            orderly &= stop("mount", process);
        }
        for server in &servers {
            orderly &= stop(&server.name, server.process);
        }
        clear_mountpoint(&home)?;
        let state = if was_running { "stopped" } else { "was not running" };
        output::put(&format!("cluster in {} {state}\n", dir.display()))?;
        Ok(if orderly { Outcome::Done } else { Outcome::Partly })
    }
}

/// Who asks others stops before them: the manager last.
fn in_stopping_order(mut servers: Vec<State>) -> Vec<State> {
    servers.sort_by_key(|server| server.targets.iter().map(|target| target.kind).min());
    let managers_last = |server: &State| server.targets.contains(&weft_model::TargetId::MGT);
    servers.sort_by_key(managers_last);
    servers
}

/// Whether the process has stopped by itself.
fn stop(name: &str, process: ProcessId) -> bool {
    let stopped = process.stop(STOP_PATIENCE);
    if !stopped {
        eprintln!("weft: {name} (process {}) does not stop and is killed", process.pid);
        process.kill();
    }
    stopped
}

/// Removes what a process that was killed has left mounted.
fn clear_mountpoint(home: &Home) -> anyhow::Result<()> {
    let dir = home.mountpoint();
    if mounts::find_mounted(dir)?.is_some_and(|mounted| mounted.is_weft()) {
        eprintln!("weft: {} was still mounted and is unmounted lazily", dir.display());
        mounts::unmount(dir, true)?;
    }
    Ok(())
}
