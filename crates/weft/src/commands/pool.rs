//! `weft pool list|set|delete`.

use super::components::list;
use crate::cli::Global;
use crate::cluster::{Admin, ClusterArgs};
use crate::outcome::{Outcome, Usage};
use crate::output::{self, Table};
use clap::{Args, Subcommand};
use weft_model::TargetId;
use weft_rpc::pb::manager::SetPool;

/// Commands on pools of OSTs.
#[derive(Subcommand)]
pub enum Command {
    /// List pools.
    List(List),
    /// Make a pool, or change which OSTs are in it.
    Set(Set),
    /// Delete a pool. Files stay where they are.
    Delete(Delete),
}

/// List pools.
#[derive(Args)]
pub struct List {
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// Make a pool, or change which OSTs are in it.
#[derive(Args)]
pub struct Set {
    /// Name of the pool.
    name: String,
    /// All its OSTs: indices (0,2-4).
    osts: String,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// Delete a pool. Files stay where they are.
#[derive(Args)]
pub struct Delete {
    /// Name of the pool.
    name: String,
    #[command(flatten)]
    cluster: ClusterArgs,
}

impl Command {
    /// Does it.
    ///
    /// # Errors
    /// When the cluster cannot be found, and the manager's answer.
    pub fn run(self, global: Global) -> anyhow::Result<Outcome> {
        match self {
            Command::List(List { cluster }) => show(&cluster, global),
            Command::Set(Set { name, osts, cluster }) => {
                let indices = list(&osts).filter(|indices| !indices.is_empty());
                let indices =
                    indices.ok_or_else(|| Usage(format!("not a list of OST indices: {osts:?}")))?;
                set(&cluster, name, indices)
            }
            Command::Delete(Delete { name, cluster }) => set(&cluster, name, Vec::new()),
        }
    }
}

fn set(cluster: &ClusterArgs, name: String, indices: Vec<u16>) -> anyhow::Result<Outcome> {
    let admin = Admin::connect(&cluster.contact(None)?)?;
    let targets = indices.into_iter().map(u32::from).collect();
    admin.ask_manager(SetPool { name, targets })?;
    std::thread::sleep(super::NOTICE);
    Ok(Outcome::Done)
}

fn show(cluster: &ClusterArgs, global: Global) -> anyhow::Result<Outcome> {
    let map = Admin::connect(&cluster.contact(None)?)?.map();
    let table = || {
        let mut table = Table::new(&["POOL", "OSTS"]);
        for pool in &map.pools {
            let names = pool.targets.iter().map(|&index| TargetId::ost(index).to_string());
            table.row(vec![pool.name.clone(), names.collect::<Vec<_>>().join(",")]);
        }
        table.text()
    };
    output::print(global.output, table, &map.pools)?;
    Ok(Outcome::Done)
}
