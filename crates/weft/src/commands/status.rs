//! `weft status`: what every target does, and what is wrong.

use super::df::state_name;
use crate::cli::Global;
use crate::cluster::figures::{TargetFigures, by_target};
use crate::cluster::{Admin, ClusterArgs};
use crate::outcome::Outcome;
use crate::output::{self, Table};
use crate::units::Time;
use clap::Args;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;
use weft_model::NodeId;
use weft_model::map::{ClusterMap, Node, Space, Target, TargetState};
use weft_model::units::{human_size, parse_duration};
use weft_rpc::pb::manager::ListClients;

/// Less free space than this part is worth a word.
const NEARLY_FULL: f64 = 0.05;

/// Show what every target does and what is wrong. Exit code 4 if anything is.
#[derive(Args)]
pub struct Status {
    /// Time over which rates are taken.
    #[arg(long, default_value = "1s", value_parser = |text: &str| parse_duration(text).map(Time))]
    interval: Time,
    #[command(flatten)]
    cluster: ClusterArgs,
}

#[derive(Serialize)]
struct Report {
    cluster: String,
    epoch: u64,
    clients: usize,
    healthy: bool,
    problems: Vec<String>,
    targets: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    target: String,
    state: TargetState,
    node: String,
    space: Space,
    ops_per_second: f64,
    bytes_per_second: f64,
    /// The operation asked for most, and its times in seconds (upper bounds).
    busiest_op: String,
    p50: f64,
    p99: f64,
    sessions: Option<u64>,
}

/// Figures of every target, and nodes that do not tell them.
struct Sample {
    targets: BTreeMap<String, TargetFigures>,
    silent: Vec<NodeId>,
}

impl Status {
    /// Takes figures twice and shows the difference.
    ///
    /// # Errors
    /// When the cluster cannot be found.
    pub fn run(self, global: Global) -> anyhow::Result<Outcome> {
        let admin = Admin::connect(&self.cluster.contact(None)?)?;
        let before = sample(&admin);
        std::thread::sleep(self.interval.0);
        admin.refresh()?;
        let after = sample(&admin);
        let clients = admin.ask_manager(ListClients {})?.clients.len();
        let map = admin.map();
        let problems = problems(&map, &after);
        let report = Report {
            cluster: map.cluster.clone(),
            epoch: map.epoch.0,
            clients,
            healthy: problems.is_empty(),
            problems,
            targets: lines(&map, &before, &after, self.interval.0),
        };
        output::print(global.output, || report.text(), &report)?;
        Ok(if report.healthy { Outcome::Done } else { Outcome::Unhealthy })
    }
}

fn sample(admin: &Admin) -> Sample {
    let map = admin.map();
    let answers = admin.ask_each(&map.nodes, |node: &Node| admin.node_stats(&node.addresses));
    let mut sample = Sample { targets: BTreeMap::new(), silent: Vec::new() };
    for (node, answer) in map.nodes.iter().zip(answers) {
        match answer {
            Ok(stats) => sample.targets.extend(by_target(&stats.metrics)),
            Err(_) => sample.silent.push(node.id),
        }
    }
    sample
}

fn lines(map: &ClusterMap, before: &Sample, after: &Sample, interval: Duration) -> Vec<Line> {
    let none = TargetFigures::default();
    let seconds = interval.as_secs_f64().max(1e-3);
    let line = |target: &Target| {
        let name = target.id.to_string();
        let was = before.targets.get(&name).unwrap_or(&none);
        let is = after.targets.get(&name).unwrap_or(&none);
        let (op, times) = is.busiest_since(was).unwrap_or_default();
        Line {
            state: target.state,
            node: map.node(target.node).map_or_else(String::new, |node| node.name.clone()),
            space: target.space,
            // A process started in between counts from zero.
            ops_per_second: (is.requests() - was.requests()).max(0.0) / seconds,
            bytes_per_second: (is.bytes - was.bytes).max(0.0) / seconds,
            busiest_op: op.to_string(),
            p50: times.p50,
            p99: times.p99,
            sessions: is.sessions.map(|sessions| sessions as u64),
            target: name,
        }
    };
    map.targets.iter().map(line).collect()
}

fn problems(map: &ClusterMap, sample: &Sample) -> Vec<String> {
    let mut problems = Vec::new();
    for node in &map.nodes {
        let serves = map.targets.iter().any(|target| target.node == node.id);
        if serves && sample.silent.contains(&node.id) {
            problems.push(format!(
                "{} does not answer at {}",
                node.name,
                node.addresses.join(", ")
            ));
        }
    }
    for target in &map.targets {
        let (id, space) = (target.id, target.space);
        if target.state == TargetState::Down {
            problems.push(format!("{id} is down: start its server again"));
        } else if space.total > 0 && (space.free as f64) < space.total as f64 * NEARLY_FULL {
            problems.push(format!("{id} is nearly full: {} free", human_size(space.free)));
        }
        let Some(figures) = sample.targets.get(&id.to_string()) else { continue };
        if figures.bad_blocks > 0.0 {
            let count = figures.bad_blocks;
            problems.push(format!("{id} has damaged data, {count} places: see weft scrub"));
        }
        if figures.faults > 0.0 {
            problems.push(format!("{id} had {} failures of its disk: see its log", figures.faults));
        }
    }
    if map.osts().count() == 0 || map.mdts().count() == 0 {
        problems.push("there is no MDT or no OST yet: format and start some".into());
    }
    problems
}

impl Report {
    fn text(&self) -> String {
        let mut text = format!(
            "cluster {}  epoch {}  clients {}  {}\n",
            self.cluster,
            self.epoch,
            self.clients,
            if self.healthy { "healthy" } else { "NOT HEALTHY" }
        );
        for problem in &self.problems {
            text.push_str(&format!("  {problem}\n"));
        }
        let header =
            ["TARGET", "STATE", "NODE", "OPS/S", "MB/S", "MOST", "P50", "P99", "USE%", "SESSIONS"];
        let mut table = Table::new(&header);
        for line in &self.targets {
            table.row(line.cells());
        }
        text + &table.text()
    }
}

impl Line {
    fn cells(&self) -> Vec<String> {
        let Space { total, free, .. } = self.space;
        let used = (total.saturating_sub(free) * 100).div_ceil(total.max(1));
        vec![
            self.target.clone(),
            state_name(self.state).to_string(),
            self.node.clone(),
            format!("{:.0}", self.ops_per_second),
            format!("{:.1}", self.bytes_per_second / 1e6),
            if self.busiest_op.is_empty() { "-".into() } else { self.busiest_op.clone() },
            human_time(self.p50),
            human_time(self.p99),
            format!("{used}%"),
            self.sessions.map_or("-".into(), |sessions| sessions.to_string()),
        ]
    }
}

/// `850us`, `12ms`.
fn human_time(seconds: f64) -> String {
    match seconds {
        0.0 => "-".into(),
        short if short < 1e-3 => format!("{:.0}us", short * 1e6),
        medium if medium < 1.0 => format!("{:.1}ms", medium * 1e3),
        long => format!("{long:.1}s"),
    }
}
