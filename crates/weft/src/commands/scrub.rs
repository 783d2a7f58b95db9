//! `weft scrub`: verifies everything that is stored against its checksums.

use super::path::path_of;
use crate::cli::Global;
use crate::cluster::{Admin, ClusterArgs};
use crate::outcome::Outcome;
use crate::output::{self, Table};
use anyhow::bail;
use clap::Args;
use serde::Serialize;
use weft_model::units::human_size;
use weft_model::{ObjectId, Result, TargetId, TargetKind};
use weft_rpc::pb::mds::ScrubTarget;
use weft_rpc::pb::oss;

/// Verify all stored data against its checksums, without disturbing users much. Exit code 4 if any of
/// it is damaged.
#[derive(Args)]
pub struct Scrub {
    /// Only these targets.
    #[arg(long, value_delimiter = ',')]
    target: Vec<TargetId>,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// What was found on a target.
#[derive(Default, Serialize)]
struct Report {
    target: String,
    /// Objects or records verified.
    items: u64,
    bytes: u64,
    damaged: Vec<Damage>,
    /// Why it could not be verified to its end.
    error: Option<String>,
}

#[derive(Serialize)]
struct Damage {
    what: String,
    /// Object and offset in it (OST).
    object: Option<String>,
    offset: u64,
    /// Path of the file from the root of the volume.
    path: Option<String>,
}

impl Scrub {
    /// Goes through all targets at the same time.
    ///
    /// # Errors
    /// When the cluster cannot be found, or a target is not in it.
    pub fn run(self, global: Global) -> anyhow::Result<Outcome> {
        let admin = Admin::connect(&self.cluster.contact(None)?)?;
        let map = admin.map();
        if let Some(unknown) = self.target.iter().find(|&&id| map.target(id).is_none()) {
            bail!("the cluster has no target={unknown}; see weft target list");
        }
        let all = map.targets.iter().map(|target| target.id);
        let wanted: Vec<TargetId> =
            all.filter(|id| self.target.is_empty() || self.target.contains(id)).collect();
        let reports = admin.ask_each(&wanted, |&target| scrub(&admin, target));
        let damaged = reports.iter().any(|report| !report.damaged.is_empty());
        let unfinished = reports.iter().any(|report| report.error.is_some());
        output::print(global.output, || text(&reports), &reports)?;
        Ok(match (damaged, unfinished) {
            (true, _) => Outcome::Unhealthy,
            (false, true) => Outcome::Partly,
            (false, false) => Outcome::Done,
        })
    }
}

fn scrub(admin: &Admin, target: TargetId) -> Report {
    let mut report = Report { target: target.to_string(), ..Report::default() };
    let outcome = match target.kind {
        TargetKind::Ost => scrub_objects(admin, target, &mut report),
        TargetKind::Mdt | TargetKind::Mgt => scrub_records(admin, target, &mut report),
    };
    report.error = outcome.err().map(|error| error.to_string());
    report
}

fn scrub_records(admin: &Admin, target: TargetId, report: &mut Report) -> Result<()> {
    let mut cursor = Vec::new();
    loop {
        let reply = admin.ask_long(target, ScrubTarget { cursor })?;
        report.items += reply.records;
        report.bytes += reply.bytes;
        let damage = |what| Damage { what, object: None, offset: 0, path: None };
        report.damaged.extend(reply.bad.into_iter().map(damage));
        if reply.cursor.is_empty() {
            return Ok(());
        }
        cursor = reply.cursor;
    }
}

fn scrub_objects(admin: &Admin, target: TargetId, report: &mut Report) -> Result<()> {
    let mut cursor = String::new();
    loop {
        let reply = admin.ask_long(target, oss::Scrub { cursor, max_objects: 0 })?;
        report.items += reply.objects;
        report.bytes += reply.bytes;
        report.damaged.extend(reply.bad.into_iter().map(|bad| damage(admin, bad)));
        if reply.cursor.is_empty() {
            return Ok(());
        }
        cursor = reply.cursor;
    }
}

fn damage(admin: &Admin, bad: oss::BadBlock) -> Damage {
    let object = bad.object.map(ObjectId::from);
    // A file that has no name any more has no path either.
    let path = object.and_then(|object| path_of(admin, object.fid).ok());
    Damage {
        what: bad.what,
        object: object.map(|object| object.to_string()),
        offset: bad.offset,
        path: path.map(|path| format!("/{path}")),
    }
}

fn text(reports: &[Report]) -> String {
    let mut table = Table::new(&["TARGET", "VERIFIED", "BYTES", "DAMAGED"]);
    for report in reports {
        table.row(vec![
            report.target.clone(),
            report.items.to_string(),
            human_size(report.bytes),
            report.damaged.len().to_string(),
        ]);
    }
    let mut text = table.text();
    for report in reports {
        for damage in &report.damaged {
            let Damage { what, object, offset, path } = damage;
            let object = object.as_ref().map(|object| format!(" object={object} offset={offset}"));
            let file = path.as_ref().map(|path| format!(" file={path}"));
            let (object, file) = (object.unwrap_or_default(), file.unwrap_or_default());
            text.push_str(&format!("{}: {what}{object}{file}\n", report.target));
        }
        if let Some(error) = &report.error {
            text.push_str(&format!("{}: not finished: {error}\n", report.target));
        }
    }
    text
}
