//! `weft server`: runs the roles that a configuration names, until a signal.

use crate::mounts::{LiveMount, MountOptions, Source};
use crate::node::{Node, NodeConfig};
use crate::outcome::Outcome;
use crate::process;
use crate::signals::{Event, Events};
use clap::Args;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

/// Runs the roles of a node. SIGTERM and SIGINT stop it in order, a second one at once.
#[derive(Args)]
pub struct Server {
    /// The node's configuration; `weft config default` prints an example.
    #[arg(long, env = "WEFT_CONFIG")]
    config: PathBuf,
    /// Leave the terminal; for whoever starts this in the background.
    #[arg(long, hide = true)]
    detached: bool,
}

impl Server {
    /// Serves until a signal.
    ///
    /// # Errors
    /// What keeps a role from starting.
    pub fn run(self) -> anyhow::Result<Outcome> {
        if self.detached {
            process::leave_terminal();
        }
        serve(&NodeConfig::load(&self.config)?)
    }
}

/// Serves until a signal.
///
/// # Errors
/// What keeps a role from starting.
pub fn serve(config: &NodeConfig) -> anyhow::Result<Outcome> {
    process::raise_file_limit();
    let events = Events::watch()?;
    let stopping = events.stopping();
    let node = Node::start(config, &|| stopping.load(Ordering::SeqCst))?;
    let mounted = mount_all(config, &node, &events);
    let failed = match mounted {
        Ok(mounts) => {
            process::say_ready();
            let left = wait_for_signal(&events, mounts);
            left.into_iter().for_each(LiveMount::stop);
            None
        }
        Err(error) => Some(error),
    };
    node.stop();
    failed.map_or(Ok(Outcome::Done), Err)
}

fn mount_all(config: &NodeConfig, node: &Node, events: &Events) -> anyhow::Result<Vec<LiveMount>> {
    let managers = match config.managers.is_empty() {
        true => node.addresses().to_vec(),
        false => config.managers.clone(),
    };
    let mut mounts = Vec::new();
    for mount in &config.mount {
        let mut options = MountOptions::parse(&mount.options)?;
        options.key = options.key.or_else(|| config.key.clone());
        let source = Source {
            held: None,
            managers: managers.clone(),
            subtree: String::new(),
            registry: Some(node.registry()),
            env: node.env(),
        };
        mounts.push(LiveMount::start(source, &mount.dir, &options, events)?);
    }
    Ok(mounts)
}

/// Serves until a signal; returns the mounts that are left by then.
fn wait_for_signal(events: &Events, mut mounts: Vec<LiveMount>) -> Vec<LiveMount> {
    loop {
        match events.next() {
            Event::Unmounted(dir) => {
                tracing::warn!(dir = %dir.display(), "unmounted from outside; the servers go on");
                mounts.extract_if(.., |mount| mount.dir() == dir).for_each(LiveMount::stop);
            }
            Event::Signal(signal) => {
                tracing::info!(signal, "stopping; another signal ends the process at once");
                return mounts;
            }
        }
    }
}
