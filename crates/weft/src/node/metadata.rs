//! A metadata target being served, with the work that goes on without a request.

use super::config::Tuning;
use super::storage::OpenTarget;
use anyhow::Context;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use weft_admin::Health;
use weft_manager::Worker;
use weft_mds::{Mds, Parts};
use weft_model::{ClusterMap, TargetId};
use weft_rpc::metrics::{Figure, FigureKind, Metrics};
use weft_rpc::pb::manager::AllocateSequence;
use weft_rpc::router::{Patience, Router};

/// What a power cut can take back of what was not fsynced.
const SYNC_INTERVAL: Duration = Duration::from_millis(20);
/// Between two attempts of a sync that fails.
const SYNC_RETRY: Duration = Duration::from_secs(1);
/// Between two steps of background work.
const TICK_INTERVAL: Duration = Duration::from_millis(50);
/// Between two looks whether a step is worth while before its time.
const GARBAGE_POLL: Duration = Duration::from_millis(10);
/// Between two looks whether a full disk can be helped.
const ROOM_INTERVAL: Duration = Duration::from_secs(1);
/// Longest wait for a FID sequence.
const SEQUENCE_PATIENCE: Duration = Duration::from_secs(30);

/// An MDT and its background threads.
pub struct Metadata {
    mds: Arc<Mds>,
    health: Arc<Health>,
    workers: Vec<Worker>,
}

impl Metadata {
    /// Opens the MDT; a new one asks the manager for FIDs.
    ///
    /// # Errors
    /// Those of the store and the manager.
    pub fn open(
        target: &OpenTarget,
        router: &Arc<Router>,
        tuning: &Tuning,
        health: &Arc<Health>,
    ) -> anyhow::Result<Metadata> {
        let id = target.id();
        let sequence = sequence_of(id, router)?;
        let space = target.space();
        let parts = Parts {
            kv: target.kv(),
            router: router.clone(),
            env: router.env().clone(),
            space: Box::new(move || space().unwrap_or_default()),
            admit: Box::new(target.admit()),
        };
        let settings = weft_mds::Settings {
            lease: tuning.lease.0,
            durability: tuning.durability.into(),
            cache_inodes: tuning.cache_inodes,
            root_owner: tuning.root_owner,
        };
        let mds = Arc::new(Mds::open(id, sequence, parts, settings)?);
        Ok(Metadata { mds, health: health.clone(), workers: Vec::new() })
    }

    /// For the registry.
    pub fn service(&self) -> Arc<Mds> {
        self.mds.clone()
    }

    /// Starts the threads that sync, and that do what is left to do.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn start_background(mut self) -> anyhow::Result<Metadata> {
        let (mds, health) = (self.mds.clone(), self.health.clone());
        self.workers.push(Worker::start("weft-mds-sync", move || sync(&mds, &health))?);
        let (mds, mut last) = (self.mds.clone(), Instant::now());
        let tick = move || {
            if last.elapsed() >= TICK_INTERVAL || mds.has_garbage() {
                mds.tick();
                last = Instant::now();
            }
            GARBAGE_POLL
        };
        self.workers.push(Worker::start("weft-mds-tick", tick)?);
        let mds = self.mds.clone();
        let make_room = move || {
            mds.make_room();
            ROOM_INTERVAL
        };
        self.workers.push(Worker::start("weft-mds-room", make_room)?);
        Ok(self)
    }

    /// Shows the target's figures among those of the process, for as long as it is served.
    pub fn register_figures(&self, metrics: &Metrics) {
        type Read = fn(&(usize, usize, usize)) -> usize;
        let figures: [(&'static str, &'static str, Read); 3] = [
            ("weft_sessions", "Sessions of clients.", |counts| counts.0),
            ("weft_open_files", "Open files.", |counts| counts.1),
            ("weft_locks", "Locks held.", |counts| counts.2),
        ];
        for (name, help, read) in figures {
            let mds: Weak<Mds> = Arc::downgrade(&self.mds);
            metrics.register(Figure {
                name,
                help,
                kind: FigureKind::Gauge,
                labels: vec![("target", self.mds.target().to_string())],
                read: Box::new(move || mds.upgrade().map(|mds| read(&mds.counts()) as f64)),
            });
        }
    }
}

impl Drop for Metadata {
    fn drop(&mut self) {
        self.mds.stop();
        self.workers.clear();
        if let Err(error) = self.mds.sync() {
            tracing::error!(target_id = %self.mds.target(), %error, "last sync failed");
        }
    }
}

/// One background sync; says how long to wait for the next.
fn sync(mds: &Mds, health: &Health) -> Duration {
    let target = mds.target().to_string();
    match mds.sync() {
        Ok(()) => {
            health.recover(&target);
            SYNC_INTERVAL
        }
        Err(error) => {
            if health.fail(&target, &error) {
                tracing::error!(target_id = target, %error, "target cannot be synced");
            }
            SYNC_RETRY
        }
    }
}

/// The sequence that the MDT takes FIDs from: its last one in the map, else a fresh one.
fn sequence_of(target: TargetId, router: &Router) -> anyhow::Result<u32> {
    if let Some(sequence) = last_sequence(&router.map(), target.index) {
        return Ok(sequence);
    }
    let request = AllocateSequence { mdt: target.index.into() };
    let reply = router
        .ask(TargetId::MGT, request, &Patience::of(SEQUENCE_PATIENCE))
        .with_context(|| format!("no FID sequence for target={target}"))?;
    if let Some(map) = reply.map {
        router.set_map(map.try_into()?);
    }
    Ok(reply.sequence)
}

fn last_sequence(map: &ClusterMap, mdt: u16) -> Option<u32> {
    map.sequences.iter().filter(|range| range.mdt == mdt).map(|range| range.last).max()
}
