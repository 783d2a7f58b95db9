//! `weft dev status`.

use super::Which;
use super::home::Home;
use crate::cli::Global;
use crate::mounts;
use crate::node::read_state_files;
use crate::outcome::Outcome;
use crate::output::{self, Table};
use clap::Args;
use serde::Serialize;
use std::time::Duration;

/// Longest wait for the mount's answer.
const ANSWER_PATIENCE: Duration = Duration::from_secs(5);

/// Show what runs of a development cluster. Exit code 4 if it is not all well.
#[derive(Args)]
pub struct Status {
    #[command(flatten)]
    which: Which,
}

/// A process that runs or ought to; those that do not have the number 0.
#[derive(Serialize)]
struct Process {
    name: String,
    pid: u32,
    targets: Vec<String>,
    addresses: Vec<String>,
    metrics: String,
    state: String,
}

impl Status {
    /// Looks at every process and at the mount.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn run(self, global: Global) -> anyhow::Result<Outcome> {
        let dir = self.which.dir()?;
        let Some(home) = Home::look(&dir)? else {
            eprintln!("weft: no cluster in {}; weft dev up makes one", dir.display());
            return Ok(Outcome::Unhealthy);
        };
        let mut processes: Vec<Process> =
            read_state_files(&home.run_dir())?.into_iter().map(server).collect();
        let mut missing = home.server_names();
        missing.retain(|name| !processes.iter().any(|process| &process.name == name));
        processes.extend(missing.into_iter().map(dead));
        let mount = mount(&home)?;
        let well = mount.state == "answers" && processes.iter().all(|p| p.state == "ready");
        processes.push(mount);
        output::print(global.output, || table(&processes), &processes)?;
        Ok(if well { Outcome::Done } else { Outcome::Unhealthy })
    }
}

fn server(state: crate::node::State) -> Process {
    Process {
        name: state.name,
        pid: state.process.pid,
        targets: state.targets.iter().map(ToString::to_string).collect(),
        addresses: state.addresses,
        metrics: state.metrics.map_or_else(String::new, |at| format!("http://{at}/metrics")),
        state: if state.ready { "ready" } else { "starting" }.to_string(),
    }
}

fn dead(name: String) -> Process {
    Process {
        name,
        pid: 0,
        targets: Vec::new(),
        addresses: Vec::new(),
        metrics: String::new(),
        state: "not running".into(),
    }
}

fn mount(home: &Home) -> anyhow::Result<Process> {
    let dir = home.mountpoint();
    let record = mounts::recorded()?.into_iter().find(|record| record.is_at(dir));
    let state = match mounts::wait_until_answering(dir, ANSWER_PATIENCE) {
        Ok(()) => "answers".to_string(),
        Err(error) => format!("{error:#}"),
    };
    Ok(Process {
        name: "mount".into(),
        pid: record.map_or(0, |record| record.process.pid),
        targets: Vec::new(),
        addresses: vec![dir.display().to_string()],
        metrics: String::new(),
        state,
    })
}

fn table(processes: &[Process]) -> String {
    let mut table = Table::new(&["PROCESS", "PID", "STATE", "TARGETS", "AT", "METRICS"]);
    for process in processes {
        table.row(vec![
            process.name.clone(),
            if process.pid == 0 { "-".into() } else { process.pid.to_string() },
            process.state.clone(),
            process.targets.join(","),
            process.addresses.join(","),
            process.metrics.clone(),
        ]);
    }
    table.text()
}
