//! Compares objects with inodes, after the MDT has lost power or when asked to: destroys objects of no
//! file, and finds the size of files whose objects prove more than the inode says.
//!
//! It goes through each OST in pages, one now and then. How far it has come is stored under `K ost`;
//! beginning again is harmless. Why nothing is destroyed that anybody needs: `docs/design/0005-object-check.md`.

use crate::expiry;
use crate::record::{Inode, ObjectCheck};
use crate::{Mds, keys, record};
use parking_lot::Mutex;
use prost::Message as _;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::time::Duration;
use weft_model::{ClientId, ClusterMap, ErrorKind, Fid, Layout, ObjectId, Result, TargetId};
use weft_rpc::pb::mds::{CheckObjects, CheckObjectsReply};
use weft_rpc::pb::oss::ObjectStat;
use weft_store::kv::POWER_LOST;
use weft_store::{Batch, Kv};

/// Objects looked at in one step.
pub const PAGE: u32 = 1000;
/// Between two steps on an OST, so that others get at it.
const PAUSE: Duration = Duration::from_millis(200);
/// Until an OST that has not answered is asked again.
const RETRY: Duration = Duration::from_secs(5);
/// Until objects that were left, because somebody has their file open, are looked at again.
const AGAIN: Duration = Duration::from_secs(60);

/// What is being compared, and what has been found since that was begun.
#[derive(Default)]
pub struct ObjectChecks(Mutex<State>);

#[derive(Default)]
struct State {
    osts: BTreeMap<u16, Progress>,
    /// Times begun.
    begun: u64,
    found: CheckObjectsReply,
}

#[derive(Clone)]
struct Progress {
    record: ObjectCheck,
    due: Duration,
}

impl ObjectChecks {
    /// What the store says is left to do; everything if the MDT has lost power. Nothing is done before
    /// `due`, by which time the last request of a dead client has ended.
    ///
    /// # Errors
    /// Those of the store.
    pub fn load(kv: &dyn Kv, map: &ClusterMap, due: Duration) -> Result<ObjectChecks> {
        if kv.get(&POWER_LOST)?.is_some() {
            let mut batch = Batch::new();
            batch.delete(&POWER_LOST);
            for ost in map.osts() {
                batch.put(&keys::object_check(ost.id.index), &[]);
            }
            kv.write(&batch)?;
        }
        let mut state = State::default();
        let prefix = [keys::kind::OBJECT_CHECK];
        let mut failed = Ok(());
        kv.scan(&prefix, &weft_store::kv::prefix_end(&prefix), &mut |key, value| {
            match record::decode(key, value) {
                Ok(record) => {
                    let ost = keys::number(key).unwrap_or(0) as u16;
                    state.osts.insert(ost, Progress { record, due });
                    ControlFlow::Continue(())
                }
                Err(error) => {
                    failed = Err(error);
                    ControlFlow::Break(())
                }
            }
        })?;
        failed.map(|()| ObjectChecks(Mutex::new(state)))
    }

    /// The OST whose turn it is, if it is any's, and how often all was begun.
    fn next(&self, now: Duration) -> Option<(u16, ObjectCheck, u64)> {
        let state = self.0.lock();
        let due = state.osts.iter().filter(|(_, progress)| progress.due <= now);
        let (&ost, progress) = due.min_by_key(|(_, progress)| progress.due)?;
        Some((ost, progress.record.clone(), state.begun))
    }
}

/// Begins a comparison if asked to, and says how far it has come.
///
/// # Errors
/// Those of the store.
pub fn run(mds: &Mds, request: &CheckObjects) -> Result<CheckObjectsReply> {
    let mut state = mds.checks.0.lock();
    if request.start {
        let osts: Vec<u16> =
            mds.objects.router().map().osts().map(|target| target.id.index).collect();
        mds.committer.transact(ClientId::NONE, mds.env.now(), |txn| {
            osts.iter().for_each(|&ost| txn.put_raw(keys::object_check(ost), Some(Vec::new())));
            Ok(())
        })?;
        let begin = Progress { record: ObjectCheck::default(), due: mds.env.monotonic() };
        state.begun += 1;
        state.osts = osts.into_iter().map(|ost| (ost, begin.clone())).collect();
        state.found = CheckObjectsReply::default();
    }
    let osts_left = state.osts.keys().map(|&ost| ost.into()).collect();
    Ok(CheckObjectsReply { osts_left, ..state.found.clone() })
}

/// One page of one OST, if it is time for that and all clients have come back.
///
/// # Errors
/// When the OST does not answer; it is asked again later.
pub fn step(mds: &Mds) -> Result<()> {
    let now = mds.env.monotonic();
    if mds.is_recovering() || mds.is_stopping() {
        return Ok(());
    }
    let Some((ost, mut record, begun)) = mds.checks.next(now) else { return Ok(()) };
    let removed = mds.objects.router().map().target(TargetId::ost(ost)).is_none();
    record.again &= !removed;
    let outcome = if removed { Ok(true) } else { page(mds, TargetId::ost(ost), &mut record) };
    let (due, ended) = match &outcome {
        Ok(true) if record.again => (AGAIN, false),
        Ok(true) => (PAUSE, true),
        Ok(false) => (PAUSE, false),
        Err(_) => (RETRY, false),
    };
    if matches!(&outcome, Ok(true)) {
        record = ObjectCheck::default();
    }
    let mut state = mds.checks.0.lock();
    if state.begun != begun {
        return outcome.map(drop);
    }
    if outcome.is_ok() {
        let stored = (!ended).then(|| record.encode_to_vec());
        mds.committer.transact(ClientId::NONE, mds.env.now(), |txn| {
            txn.put_raw(keys::object_check(ost), stored.clone());
            Ok(())
        })?;
    }
    if ended {
        state.osts.remove(&ost);
        let CheckObjectsReply { objects, destroyed, sizes, strays, .. } = &state.found;
        tracing::info!(target_id = %mds.target, ost, objects, destroyed, sizes, strays,
            "objects compared with inodes; figures are of all OSTs so far");
    } else {
        state.osts.insert(ost, Progress { record, due: now + due });
    }
    outcome.map(drop)
}

/// What is to be done about an object.
enum Verdict {
    Fine,
    /// Of no file.
    Orphan,
    /// Of no file that has a name or an inode, but somebody has it open.
    InUse,
    /// Not where the file's layout has it, or of a file that this MDT has never made.
    Stray,
    /// It proves more than the inode says.
    Unsure,
}

/// Compares the next objects. Whether that was the end.
fn page(mds: &Mds, ost: TargetId, record: &mut ObjectCheck) -> Result<bool> {
    let listed = match mds.objects.list(ost, &record.cursor, PAGE) {
        // Of another version: from the beginning.
        Err(error) if error.kind == ErrorKind::Invalid => mds.objects.list(ost, "", PAGE)?,
        listed => listed?,
    };
    let map = mds.objects.router().map();
    let all = listed.objects.iter().copied().map(ObjectId::from);
    let ours: Vec<ObjectId> = all.filter(|o| map.mdt_of(o.fid) == Some(mds.target)).collect();
    let stats = if ours.is_empty() { Vec::new() } else { mds.objects.stat(ost, &ours)? };
    let (mut orphans, mut unsure, mut strays) = (Vec::new(), BTreeSet::new(), Vec::new());
    for (&object, stat) in ours.iter().zip(&stats) {
        match judge(mds, ost, object, stat)? {
            Verdict::Fine => {}
            Verdict::Orphan => orphans.push(object),
            Verdict::InUse => record.again = true,
            Verdict::Stray => strays.push(object),
            Verdict::Unsure => drop(unsure.insert(object.fid)),
        }
    }
    destroy(mds, ost, &orphans)?;
    find_sizes(mds, &unsure)?;
    if let Some(first) = strays.first() {
        tracing::warn!(target_id = %ost, objects = strays.len(), %first,
            "objects that no layout names; left as they are");
    }
    let found = &mut mds.checks.0.lock().found;
    found.objects += ours.len() as u64;
    found.destroyed += orphans.len() as u64;
    found.sizes += unsure.len() as u64;
    found.strays += strays.len() as u64;
    record.cursor = listed.cursor;
    Ok(listed.objects.is_empty())
}

/// The inode is looked for after the object was seen. Only who was told of an inode makes objects of it,
/// and is told when it is committed; so an inode that is not there has been lost or removed, and will not
/// come.
fn judge(mds: &Mds, ost: TargetId, object: ObjectId, stat: &ObjectStat) -> Result<Verdict> {
    let fid = object.fid;
    let Some(inode) = mds.committer.committed.inode(fid)? else {
        return Ok(mds.committer.with_planner(|planner| {
            let counters = &planner.counters;
            let next = (counters.sequence, counters.next_object);
            match (fid.sequence(), fid.object()) {
                number if number >= next => Verdict::Stray,
                _ if planner.opens.is_open(fid) => Verdict::InUse,
                _ => Verdict::Orphan,
            }
        }));
    };
    if !stat.exists || !inode.writers.is_empty() || inode.inline && inode.touched {
        return Ok(Verdict::Fine);
    }
    let layout: Layout = inode.layout.clone().unwrap_or_default().try_into()?;
    if !layout.objects(fid).any(|own| own.object == object && own.target == ost) {
        return Ok(Verdict::Stray);
    }
    let proven = layout.size_from_object(object.index, stat.size);
    Ok(if proven > inode.size || !inode.touched { Verdict::Unsure } else { Verdict::Fine })
}

fn destroy(mds: &Mds, ost: TargetId, orphans: &[ObjectId]) -> Result<()> {
    let Some(first) = orphans.first() else { return Ok(()) };
    tracing::warn!(target_id = %ost, objects = orphans.len(), %first, "destroying objects of no file");
    // A file that was removed just now must not come back with the next loss of power.
    mds.committer.sync()?;
    mds.objects.destroy_at(ost, orphans)
}

/// Marks files as being written by a client that is dead: others ask the objects for the size from now
/// on, and it is found as for any dead client's file.
fn find_sizes(mds: &Mds, files: &BTreeSet<Fid>) -> Result<()> {
    if files.is_empty() {
        return Ok(());
    }
    mds.committer.transact(ClientId::NONE, mds.env.now(), |txn| {
        for &fid in files {
            let Some(inode) = txn.find_inode(fid)? else { continue };
            if inode.writers.is_empty() {
                let mut inode: Inode = inode.as_ref().clone();
                inode.writers.push(ClientId::NONE.0);
                txn.put_raw(keys::writer(ClientId::NONE, fid), Some(Vec::new()));
                txn.put_inode(fid, inode);
            }
        }
        Ok(())
    })?;
    if !expiry::adopt_writers(mds, ClientId::NONE)? {
        mds.unfinished.lock().clients.insert(ClientId::NONE);
    }
    Ok(())
}
