//! `weft target check`: compares objects with inodes.

use crate::cli::Global;
use crate::cluster::{Admin, ClusterArgs};
use crate::outcome::Outcome;
use crate::output::{self, Table};
use anyhow::bail;
use clap::Args;
use serde::Serialize;
use std::time::{Duration, Instant};
use weft_model::{Result, TargetId, TargetKind};
use weft_rpc::pb::mds::{CheckObjects, CheckObjectsReply};

/// Between two looks how far it has come.
const POLL: Duration = Duration::from_millis(200);
/// Without any progress for this long it is left to itself.
const PATIENCE: Duration = Duration::from_secs(30);

/// Compare objects on all OSTs with the inodes of metadata targets: objects of no file are destroyed, and
/// sizes are found that a loss of power has taken. Metadata targets do so by themselves after a loss of
/// power. Goes on in the background if interrupted.
#[derive(Args)]
pub struct Check {
    /// Only these metadata targets.
    #[arg(long, value_delimiter = ',')]
    target: Vec<TargetId>,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// What a metadata target has found.
#[derive(Default, Serialize)]
struct Report {
    target: String,
    /// Objects compared.
    objects: u64,
    /// Objects of no file.
    destroyed: u64,
    /// Files whose size was found again.
    sizes: u64,
    /// Objects that no layout names; left as they are.
    strays: u64,
    /// OSTs that are not done.
    osts_left: Vec<String>,
    /// Why it is not done.
    error: Option<String>,
}

impl Check {
    /// Does all metadata targets at the same time.
    ///
    /// # Errors
    /// When the cluster cannot be found, or a target is no metadata target of it.
    pub fn run(self, global: Global) -> anyhow::Result<Outcome> {
        let admin = Admin::connect(&self.cluster.contact(None)?)?;
        let all: Vec<TargetId> = admin.map().mdts().map(|target| target.id).collect();
        if let Some(other) = self.target.iter().find(|id| !all.contains(id)) {
            bail!("target={other} is no metadata target of the cluster; see weft target list");
        }
        let wanted = if self.target.is_empty() { all } else { self.target };
        let reports = admin.ask_each(&wanted, |&target| check(&admin, target));
        output::print(global.output, || text(&reports), &reports)?;
        let done = reports.iter().all(|report| report.error.is_none());
        Ok(if done { Outcome::Done } else { Outcome::Partly })
    }
}

fn check(admin: &Admin, target: TargetId) -> Report {
    let mut last = CheckObjectsReply::default();
    let outcome = follow(admin, target, &mut last);
    let CheckObjectsReply { osts_left, objects, destroyed, sizes, strays } = last;
    let name = |&index: &u32| TargetId { kind: TargetKind::Ost, index: index as u16 }.to_string();
    let osts_left: Vec<String> = osts_left.iter().map(name).collect();
    let error = match outcome {
        Ok(()) if osts_left.is_empty() => None,
        Ok(()) => Some(format!("no progress for {} s; goes on by itself", PATIENCE.as_secs())),
        Err(error) => Some(error.to_string()),
    };
    Report { target: target.to_string(), objects, destroyed, sizes, strays, osts_left, error }
}

/// Until it is done, or gets on no more.
fn follow(admin: &Admin, target: TargetId, last: &mut CheckObjectsReply) -> Result<()> {
    *last = admin.ask(target, CheckObjects { start: true })?;
    let mut moved = Instant::now();
    while !last.osts_left.is_empty() && moved.elapsed() < PATIENCE {
        std::thread::sleep(POLL);
        let now = admin.ask(target, CheckObjects { start: false })?;
        if now != *last {
            moved = Instant::now();
        }
        *last = now;
    }
    Ok(())
}

fn text(reports: &[Report]) -> String {
    let mut table = Table::new(&["TARGET", "OBJECTS", "DESTROYED", "SIZES", "STRAY", "LEFT"]);
    for report in reports {
        let figures = [report.objects, report.destroyed, report.sizes, report.strays];
        let mut row = vec![report.target.clone()];
        row.extend(figures.iter().map(u64::to_string));
        row.push(if report.osts_left.is_empty() { "-".into() } else { report.osts_left.join(",") });
        table.row(row);
    }
    let mut text = table.text();
    for Report { target, error, .. } in reports {
        if let Some(error) = error {
            text.push_str(&format!("{target}: not finished: {error}\n"));
        }
    }
    text
}
