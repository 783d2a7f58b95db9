//! `weft target format|list|set-state|check|remove`.

use super::df::state_name;
use crate::cli::Global;
use crate::cluster::{Admin, ClusterArgs};
use crate::node::NodeConfig;
use crate::node::config::TargetConfig;
use crate::outcome::{Outcome, Usage};
use crate::output::{self, Table};
use clap::{Args, Subcommand, ValueEnum};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use weft_model::map::{Target as Entry, TargetState};
use weft_model::units::human_size;
use weft_model::{TargetId, TargetKind};
use weft_rpc::convert::state_to_wire;
use weft_rpc::pb::manager::SetTargetState;
use weft_store::superblock::{self, Superblock, Uuid};
use weft_store::{FormatParams, Target};

/// Commands on targets.
#[derive(Subcommand)]
pub enum Command {
    /// Make targets in empty directories.
    Format(Format),
    /// List targets.
    List(List),
    /// Stop placing new files on a target, or use it again.
    SetState(SetState),
    /// Compare objects with inodes.
    Check(super::check::Check),
    /// Forget a target that is gone for good.
    Remove(Remove),
}

/// Forget a target that is gone for good. Its server must have stopped. As nobody can see what lives on
/// it, it has to be forced: files with data there lose it.
#[derive(Args)]
pub struct Remove {
    /// The target (OST0003).
    target: TargetId,
    /// Although files may have data there.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// Make targets in empty directories: one, or all that a node's configuration names and that are not
/// there yet.
#[derive(Args)]
pub struct Format {
    /// The node's configuration; its targets need an `index` each.
    #[arg(long, conflicts_with_all = ["role", "dir", "index", "cluster"])]
    config: Option<PathBuf>,
    /// What it is to hold.
    #[arg(long, required_unless_present = "config")]
    role: Option<RoleName>,
    /// Its directory, on any local file system.
    #[arg(long, required_unless_present = "config")]
    dir: Option<PathBuf>,
    /// Its number among those of its role.
    #[arg(long, default_value_t = 0)]
    index: u16,
    /// Identity of the cluster, as `weft cluster init` has printed it.
    #[arg(long, required_unless_present = "config")]
    cluster: Option<Uuid>,
    /// Destroy the target that is in the directory.
    #[arg(long)]
    force: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum RoleName {
    Mdt,
    Ost,
}

/// List targets.
#[derive(Args)]
pub struct List {
    /// Only those in this state.
    #[arg(long)]
    state: Option<StateName>,
    #[command(flatten)]
    cluster: ClusterArgs,
}

#[derive(Clone, Copy, ValueEnum)]
enum StateName {
    Up,
    Down,
    Drain,
}

/// Stop placing new files on a target, or use it again. What is on it stays and can be used.
#[derive(Args)]
pub struct SetState {
    /// The target (OST0003).
    target: TargetId,
    /// Its state from now on.
    state: WantedState,
    #[command(flatten)]
    cluster: ClusterArgs,
}

#[derive(Clone, Copy, ValueEnum)]
enum WantedState {
    Drain,
    Up,
}

impl Command {
    /// Does it.
    ///
    /// # Errors
    /// Those of the disk, or of the cluster.
    pub fn run(self, global: Global) -> anyhow::Result<Outcome> {
        match self {
            Command::Format(format) => format.run(),
            Command::List(list) => list.run(global),
            Command::Remove(Remove { target, force, cluster }) => {
                let admin = Admin::connect(&cluster.contact(None)?)?;
                let (target, node) = (target.to_wire(), String::new());
                admin.ask_manager(weft_rpc::pb::manager::Remove { target, node, force })?;
                Ok(Outcome::Done)
            }
            Command::Check(check) => check.run(global),
            Command::SetState(SetState { target, state, cluster }) => {
                let state = match state {
                    WantedState::Drain => TargetState::Drain,
                    WantedState::Up => TargetState::Up,
                };
                let admin = Admin::connect(&cluster.contact(None)?)?;
                let (target, state) = (target.to_wire(), state_to_wire(state));
                admin.ask_manager(SetTargetState { target, state })?;
                std::thread::sleep(super::NOTICE);
                Ok(Outcome::Done)
            }
        }
    }
}

/// Makes a target, and says so.
///
/// # Errors
/// As [`Target::format`].
pub fn format(dir: &Path, target: TargetId, cluster: Uuid, force: bool) -> anyhow::Result<()> {
    let created = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    Target::format(dir, &FormatParams { cluster, target, created, force })?;
    eprintln!("weft: formatted {target} dir={}", dir.display());
    Ok(())
}

impl Format {
    fn run(self) -> anyhow::Result<Outcome> {
        if let Some(file) = &self.config {
            return self.all_of(&NodeConfig::load(file)?);
        }
        // The command line has them when it has no configuration.
        let (Some(role), Some(dir), Some(cluster)) = (self.role, &self.dir, self.cluster) else {
            return Err(Usage("--role, --dir and --cluster, or --config".into()).into());
        };
        let kind = match role {
            RoleName::Mdt => TargetKind::Mdt,
            RoleName::Ost => TargetKind::Ost,
        };
        format(dir, TargetId { kind, index: self.index }, cluster, self.force)?;
        Ok(Outcome::Done)
    }

    fn all_of(&self, config: &NodeConfig) -> anyhow::Result<Outcome> {
        let Some(cluster) = &config.cluster else {
            return Err(Usage("the configuration has no `cluster`".into()).into());
        };
        let cluster: Uuid = cluster.parse().map_err(Usage)?;
        let mdts = config.mdt.iter().map(|target| (TargetKind::Mdt, target));
        let osts = config.ost.iter().map(|target| (TargetKind::Ost, target));
        for (kind, TargetConfig { dir, index, .. }) in mdts.chain(osts) {
            let Some(index) = *index else {
                let why = format!("dir={} has no `index` in the configuration", dir.display());
                return Err(Usage(why).into());
            };
            let id = TargetId { kind, index };
            let is_there = dir.join(superblock::FILE).exists();
            match is_there.then(|| Superblock::load(dir)).transpose()? {
                Some(there) if there.target == id && there.cluster == cluster && !self.force => {
                    eprintln!("weft: {id} dir={} is there already", dir.display());
                }
                // What else is there is refused, unless forced.
                _ => format(dir, id, cluster, self.force)?,
            }
        }
        Ok(Outcome::Done)
    }
}

impl List {
    fn run(self, global: Global) -> anyhow::Result<Outcome> {
        let map = Admin::connect(&self.cluster.contact(None)?)?.map();
        let wanted = self.state.map(|state| match state {
            StateName::Up => TargetState::Up,
            StateName::Down => TargetState::Down,
            StateName::Drain => TargetState::Drain,
        });
        let listed = map.targets.iter().filter(|t| wanted.is_none_or(|state| t.state == state));
        let targets: Vec<&Entry> = listed.collect();
        let table = || {
            let mut table = Table::new(&["TARGET", "STATE", "NODE", "SIZE", "AVAIL", "UUID"]);
            for target in &targets {
                let node = map.node(target.node).map_or_else(String::new, |node| node.name.clone());
                table.row(vec![
                    target.id.to_string(),
                    state_name(target.state).to_string(),
                    node,
                    human_size(target.space.total),
                    human_size(target.space.free),
                    target.uuid.clone(),
                ]);
            }
            table.text()
        };
        output::print(global.output, table, &targets)?;
        Ok(Outcome::Done)
    }
}
