//! What a process tells of itself in its run directory: `NAME.json`, there for as long as it runs.

use crate::process::ProcessId;
use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use weft_model::TargetId;

/// Contents of a state file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct State {
    /// Name of the node.
    pub name: String,
    /// The process.
    pub process: ProcessId,
    /// Whether it serves; before, it is starting.
    pub ready: bool,
    /// Targets it serves.
    pub targets: Vec<TargetId>,
    /// Where it listens.
    pub addresses: Vec<String>,
    /// Where `/metrics` is.
    pub metrics: Option<SocketAddr>,
}

/// A process' own state file; removed when dropped.
pub struct StateFile {
    path: PathBuf,
    state: State,
}

impl StateFile {
    /// Writes the file of this process, which is starting.
    ///
    /// # Errors
    /// Those of the directory.
    pub fn create(dir: &Path, name: &str, addresses: &[String]) -> anyhow::Result<StateFile> {
        std::fs::create_dir_all(dir)
            .with_context(|| format!("cannot make run_dir={}", dir.display()))?;
        let state = State {
            name: name.to_string(),
            process: ProcessId::own(),
            ready: false,
            targets: Vec::new(),
            addresses: addresses.to_vec(),
            metrics: None,
        };
        let file = StateFile { path: dir.join(format!("{name}.json")), state };
        file.store()?;
        Ok(file)
    }

    /// The process serves.
    ///
    /// # Errors
    /// Those of the file.
    pub fn set_ready(
        &mut self,
        targets: Vec<TargetId>,
        metrics: Option<SocketAddr>,
    ) -> anyhow::Result<()> {
        (self.state.ready, self.state.targets, self.state.metrics) = (true, targets, metrics);
        self.store()
    }

    fn store(&self) -> anyhow::Result<()> {
        crate::files::replace(
            &self.path,
            serde_json::to_string_pretty(&self.state)?.as_bytes(),
            0o644,
        )
    }
}

impl Drop for StateFile {
    fn drop(&mut self) {
        // Left behind, it names a process that is gone, which is as good.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The state files of a run directory whose processes are alive, by name.
///
/// # Errors
/// Those of the directory, unless it does not exist.
pub fn read_all(dir: &Path) -> anyhow::Result<Vec<State>> {
    let states: Vec<State> = crate::files::read_json_files(dir)?;
    Ok(states.into_iter().filter(|state| state.process.is_alive()).collect())
}
