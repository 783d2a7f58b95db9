//! `weft node list|remove`.

use crate::cli::Global;
use crate::cluster::{Admin, ClusterArgs};
use crate::outcome::Outcome;
use crate::output::{self, Table};
use clap::{Args, Subcommand};
use serde::Serialize;

/// Commands on nodes.
#[derive(Subcommand)]
pub enum Command {
    /// List server processes.
    List(List),
    /// Forget a server that is gone for good.
    Remove(Remove),
}

/// Forget a server that is gone for good. Refused while targets belong to it, unless forced; one whose
/// targets are still being served is never removed.
#[derive(Args)]
pub struct Remove {
    /// Its name.
    node: String,
    /// Its targets, too: whatever lives there is lost to its files.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// List server processes.
#[derive(Args)]
pub struct List {
    #[command(flatten)]
    cluster: ClusterArgs,
}

#[derive(Serialize)]
struct Line {
    id: u32,
    name: String,
    addresses: Vec<String>,
    targets: Vec<String>,
}

impl Command {
    /// Does it.
    ///
    /// # Errors
    /// When the cluster cannot be found.
    pub fn run(self, global: Global) -> anyhow::Result<Outcome> {
        let cluster = match self {
            Command::List(List { cluster }) => cluster,
            Command::Remove(Remove { node, force, cluster }) => {
                let admin = Admin::connect(&cluster.contact(None)?)?;
                admin.ask_manager(weft_rpc::pb::manager::Remove { target: 0, node, force })?;
                return Ok(Outcome::Done);
            }
        };
        let map = Admin::connect(&cluster.contact(None)?)?.map();
        let served = |node| map.targets.iter().filter(move |target| target.node == node);
        let lines: Vec<Line> = map
            .nodes
            .iter()
            .map(|node| Line {
                id: node.id.0,
                name: node.name.clone(),
                addresses: node.addresses.clone(),
                targets: served(node.id).map(|target| target.id.to_string()).collect(),
            })
            .collect();
        output::print(global.output, || table(&lines), &lines)?;
        Ok(Outcome::Done)
    }
}

fn table(lines: &[Line]) -> String {
    let mut table = Table::new(&["ID", "NAME", "ADDRESSES", "TARGETS"]);
    for line in lines {
        let (name, id) = (line.name.clone(), line.id.to_string());
        table.row(vec![id, name, line.addresses.join(","), line.targets.join(",")]);
    }
    table.text()
}
