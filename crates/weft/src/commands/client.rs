//! `weft client list`.

use crate::cli::Global;
use crate::cluster::{Admin, ClusterArgs};
use crate::outcome::Outcome;
use crate::output::{self, Table};
use clap::{Args, Subcommand};
use serde::Serialize;
use weft_rpc::pb::manager::{Client, ListClients};

/// Commands on clients.
#[derive(Subcommand)]
pub enum Command {
    /// List mounts.
    List(List),
}

/// List mounts and other users of the client library, as far as the manager has heard of them lately.
#[derive(Args)]
pub struct List {
    #[command(flatten)]
    cluster: ClusterArgs,
}

#[derive(Serialize)]
struct Line {
    id: u64,
    host: String,
    mountpoint: String,
    version: String,
    idle_ms: u64,
}

impl Command {
    /// Does it.
    ///
    /// # Errors
    /// When the cluster cannot be found.
    pub fn run(self, global: Global) -> anyhow::Result<Outcome> {
        let Command::List(List { cluster }) = self;
        let clients = Admin::connect(&cluster.contact(None)?)?.ask_manager(ListClients {})?.clients;
        let line = |client: Client| Line {
            id: client.id,
            host: client.host,
            mountpoint: client.mountpoint,
            version: client.version,
            idle_ms: client.idle_ms,
        };
        let lines: Vec<Line> = clients.into_iter().map(line).collect();
        output::print(global.output, || table(&lines), &lines)?;
        Ok(Outcome::Done)
    }
}

fn table(lines: &[Line]) -> String {
    let mut table = Table::new(&["CLIENT", "HOST", "MOUNTPOINT", "VERSION", "IDLE"]);
    for line in lines {
        table.row(vec![
            format!("client{}", line.id),
            line.host.clone(),
            line.mountpoint.clone(),
            line.version.clone(),
            format!("{:.1}s", line.idle_ms as f64 / 1000.0),
        ]);
    }
    table.text()
}
