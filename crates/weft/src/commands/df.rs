//! `weft df`: space and inodes per target, in the style of `lfs df`.

use crate::cli::Global;
use crate::cluster::{Admin, ClusterArgs};
use crate::outcome::Outcome;
use crate::output::{self, Table};
use clap::{ArgAction, Args};
use serde::Serialize;
use std::path::PathBuf;
use weft_model::map::{self, Space, Target, TargetState};
use weft_model::units::human_size;
use weft_model::{Result, TargetId, TargetKind};
use weft_rpc::pb::{mds, oss};

/// Show space or inodes of every target. `weft df --help` for help: -h is for people here.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub struct Df {
    /// Something in the file system.
    path: Option<PathBuf>,
    /// Inodes instead of bytes.
    #[arg(short, long)]
    inodes: bool,
    /// Sizes for people (1.5G).
    #[arg(short = 'h', long)]
    human_readable: bool,
    /// Only targets of this pool.
    #[arg(short, long)]
    pool: Option<String>,
    /// Print help.
    #[arg(long, action = ArgAction::HelpLong)]
    help: Option<bool>,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// One line. Sizes are in bytes; targets on one disk have a part of it each.
#[derive(Serialize)]
struct Line {
    target: String,
    kind: TargetKind,
    state: TargetState,
    node: String,
    total: u64,
    used: u64,
    free: u64,
    inodes: u64,
    inodes_used: u64,
    inodes_free: u64,
    /// False: the target does not answer, the figures are the last that the manager knows.
    answers: bool,
}

/// Space of a target, and the number of inodes in use on an MDT.
struct Told {
    space: Space,
    files: Option<u64>,
    answers: bool,
}

impl Df {
    /// Asks every target.
    ///
    /// # Errors
    /// When the cluster cannot be found. A target that does not answer makes it unhealthy.
    pub fn run(self, global: Global) -> anyhow::Result<Outcome> {
        let admin = Admin::connect(&self.cluster.contact(self.path.as_deref())?)?;
        let map = admin.map();
        let in_pool: Option<Vec<u16>> = match &self.pool {
            None => None,
            Some(name) => match map.pool(name) {
                Some(pool) => Some(pool.targets.clone()),
                None => anyhow::bail!("there is no pool {name:?}; see weft pool list"),
            },
        };
        let wanted = |target: &&Target| {
            let index = &target.id.index;
            in_pool
                .as_ref()
                .is_none_or(|pool| target.id.kind == TargetKind::Ost && pool.contains(index))
        };
        let targets: Vec<&Target> = map.targets.iter().filter(wanted).collect();
        let ids: Vec<TargetId> = targets.iter().map(|target| target.id).collect();
        let answers = admin.ask_each(&ids, |&id| ask_space(&admin, id));
        let node = |target: &Target| {
            map.node(target.node).map_or_else(|| target.node.to_string(), |node| node.name.clone())
        };
        let mut told: Vec<Told> =
            targets.iter().zip(answers).map(|(target, answer)| told(target, answer)).collect();
        for kind in [TargetKind::Mdt, TargetKind::Ost] {
            let of_kind =
                targets.iter().zip(&mut told).filter(|(target, _)| target.id.kind == kind);
            map::divide(of_kind.map(|(_, told)| &mut told.space));
        }
        let lines: Vec<Line> = targets
            .iter()
            .zip(told)
            .map(|(target, told)| line(target, node(target), told))
            .collect();
        let well = lines.iter().all(|line| line.answers);
        output::print(global.output, || self.table(&lines), &lines)?;
        Ok(if well { Outcome::Done } else { Outcome::Unhealthy })
    }

    fn table(&self, lines: &[Line]) -> String {
        let [total, used, free, percent] = match self.inodes {
            true => ["INODES", "IUSED", "IFREE", "IUSE%"],
            false if self.human_readable => ["SIZE", "USED", "AVAIL", "USE%"],
            false => ["1K-BLOCKS", "USED", "AVAILABLE", "USE%"],
        };
        let mut table = Table::new(&["TARGET", "NODE", total, used, free, percent, "STATE"]);
        for line in lines {
            let state = if line.answers { state_name(line.state) } else { "no answer" };
            table.row(self.cells(&line.target, &line.node, self.figures(line), state));
        }
        // Data is on OSTs; inodes are made on MDTs.
        let counted = if self.inodes { TargetKind::Mdt } else { TargetKind::Ost };
        let sum = lines.iter().filter(|line| line.kind == counted).map(|line| self.figures(line));
        let sum = sum.fold((0, 0, 0), |a, b| (a.0 + b.0, a.1 + b.1, a.2 + b.2));
        table.row(self.cells("filesystem", "", sum, ""));
        table.text()
    }

    /// Total, used, free.
    fn figures(&self, line: &Line) -> (u64, u64, u64) {
        match self.inodes {
            true => (line.inodes, line.inodes_used, line.inodes_free),
            false => (line.total, line.used, line.free),
        }
    }

    fn cells(&self, name: &str, node: &str, figures: (u64, u64, u64), state: &str) -> Vec<String> {
        let (total, used, free) = figures;
        let show = |number: u64| match (self.human_readable, self.inodes) {
            (true, _) => human_size(number),
            (false, true) => number.to_string(),
            (false, false) => (number >> 10).to_string(),
        };
        // As df(1): what is used, of what is used or can be.
        let percent = (used * 100).div_ceil((used + free).max(1));
        let (name, node, state) = (name.to_string(), node.to_string(), state.to_string());
        vec![name, node, show(total), show(used), show(free), format!("{percent}%"), state]
    }
}

/// Space, and the number of inodes in use on an MDT.
fn ask_space(admin: &Admin, target: TargetId) -> Result<(Space, Option<u64>)> {
    if target.kind == TargetKind::Mdt {
        let reply = admin.ask(target, mds::Statfs {})?;
        return Ok((reply.space.unwrap_or_default().into(), Some(reply.files)));
    }
    let reply = admin.ask(target, oss::Statfs {})?;
    Ok((reply.space.unwrap_or_default().into(), None))
}

/// What a target says, or the manager in its place.
fn told(target: &Target, answer: Result<(Space, Option<u64>)>) -> Told {
    let answers = answer.is_ok();
    if let Err(error) = &answer {
        eprintln!("weft: {}: {error}", target.id);
    }
    let (space, files) = answer.unwrap_or((target.space, None));
    Told { space, files, answers }
}

fn line(target: &Target, node: String, told: Told) -> Line {
    let Told { space, files, answers } = told;
    // What can still be made, and what there is: the disk's own total means nothing to an MDT.
    let inodes_used = files.unwrap_or(space.inodes.saturating_sub(space.inodes_free));
    Line {
        target: target.id.to_string(),
        kind: target.id.kind,
        state: target.state,
        node,
        total: space.total,
        used: space.total.saturating_sub(space.free),
        free: space.free,
        inodes: inodes_used + space.inodes_free,
        inodes_used,
        inodes_free: space.inodes_free,
        answers,
    }
}

/// As it is written everywhere.
pub fn state_name(state: TargetState) -> &'static str {
    match state {
        TargetState::Up => "up",
        TargetState::Down => "down",
        TargetState::Drain => "drain",
    }
}
