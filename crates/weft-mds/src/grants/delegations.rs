//! Write delegations: files that one session alone has open and may keep written data of.
//!
//! A delegation has no term of its own. It ends when it is returned, when the session closes the file
//! or ends, and a session that somebody waits for is ended when it was not heard of for
//! [`LIFE`](super::LIFE) (see [`crate::background`]). Design:
//! `docs/design/0007-write-delegations.md`.

use super::{Conflict, Grants, Holder, LIFE, MARGIN};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weft_model::{ClientId, Fid};

/// What is needed beside the table itself.
pub(super) struct Delegations {
    /// Sessions that take delegations.
    takers: Mutex<HashSet<ClientId>>,
    /// Sessions from before the MDT was started that have not come back: what they have is not known.
    absent: Mutex<HashSet<ClientId>>,
    none_absent: AtomicBool,
    /// Sessions whose delegations somebody waits for: how many wait, and since when the longest.
    awaited: Mutex<HashMap<ClientId, (usize, Duration)>>,
}

impl Delegations {
    pub(super) fn new(absent: HashSet<ClientId>) -> Delegations {
        Delegations {
            takers: Mutex::default(),
            none_absent: AtomicBool::new(absent.is_empty()),
            absent: Mutex::new(absent),
            awaited: Mutex::default(),
        }
    }

    fn is_absent(&self, client: ClientId) -> bool {
        !self.none_absent.load(Ordering::Acquire) && self.absent.lock().contains(&client)
    }
}

impl Grants {
    /// The session takes delegations from now on.
    pub fn take_part_in_delegations(&self, client: ClientId) {
        self.delegations.takers.lock().insert(client);
    }

    /// The session has told what it had before the MDT was started, or will never.
    pub fn came_back(&self, client: ClientId) {
        let mut absent = self.delegations.absent.lock();
        absent.remove(&client);
        self.delegations.none_absent.store(absent.is_empty(), Ordering::Release);
    }

    pub(super) fn forget_delegations(&self, client: ClientId) {
        if self.delegations.takers.lock().remove(&client) {
            self.shards.iter().for_each(|shard| shard.lock().forget_delegations(client));
        }
        self.came_back(client);
    }

    /// Delegates a file that nobody else has open; under the planner's lock. Whether it was.
    pub fn delegate(&self, fid: Fid, client: ClientId) -> bool {
        let takes = self.delegations.takers.lock().contains(&client);
        takes && self.shard(fid).lock().delegate(fid, client, self.env.monotonic())
    }

    /// Takes back what a session says it was delegated before the MDT was started. Nobody else was let
    /// at its files while it was absent.
    pub fn reclaim_delegation(&self, fid: Fid, client: ClientId) -> bool {
        self.delegations.is_absent(client) && self.delegate(fid, client)
    }

    /// Whether a file is delegated to a session; under the planner's lock it stays so, unless the session
    /// itself gives it back.
    pub fn is_delegated_to(&self, fid: Fid, client: ClientId) -> bool {
        self.shard(fid).lock().delegated(fid) == Some(client)
    }

    /// The session has returned it, or has closed the file.
    pub fn return_delegation(&self, fid: Fid, client: ClientId) {
        self.shard(fid).lock().return_delegation(fid, client);
    }

    /// Before `by` opens a file, or is told its size: whether it is delegated to another, or may be, to
    /// one of `writers` that has not come back.
    ///
    /// # Errors
    /// What has to be waited for.
    pub fn look(&self, fid: Fid, writers: &[u64], by: ClientId) -> Result<(), Conflict> {
        if let Some(client) = self.shard(fid).lock().delegated(fid).filter(|&holder| holder != by) {
            return Err(Conflict::Held(vec![Holder::of_delegation(client, fid)]));
        }
        self.look_for_absent(writers, by)
    }

    pub(super) fn look_for_absent(&self, writers: &[u64], by: ClientId) -> Result<(), Conflict> {
        let mut others = writers.iter().map(|&writer| ClientId(writer)).filter(|&w| w != by);
        match others.find(|&writer| self.delegations.is_absent(writer)) {
            Some(absent) => Err(Conflict::Absent(absent)),
            None => Ok(()),
        }
    }

    /// Waits until a delegation is returned or its session has ended.
    pub(super) fn await_return(&self, holder: &Holder) {
        self.await_session(holder.client, || {
            self.shard(holder.fid).lock().delegated(holder.fid) != Some(holder.client)
        });
    }

    /// Waits until a session has come back or has ended.
    pub(super) fn await_absent(&self, client: ClientId) {
        self.await_session(client, || !self.delegations.is_absent(client));
    }

    fn await_session(&self, client: ClientId, done: impl Fn() -> bool) {
        let now = self.env.monotonic();
        self.delegations.awaited.lock().entry(client).or_insert((0, now)).0 += 1;
        self.wait_until(now + PATIENCE, done);
        let mut awaited = self.delegations.awaited.lock();
        if let Some((waiting, _)) = awaited.get_mut(&client) {
            *waiting -= 1;
            if *waiting == 0 {
                awaited.remove(&client);
            }
        }
    }

    /// Sessions that others wait for and that have to be ended: `idle` tells for how long nothing was
    /// heard of one.
    pub fn unresponsive(&self, idle: impl Fn(ClientId) -> Duration) -> Vec<ClientId> {
        let now = self.env.monotonic();
        let awaited = self.delegations.awaited.lock();
        let late = awaited.iter().filter(|&(&client, &(_, since))| {
            idle(client) > LIFE + MARGIN || now.saturating_sub(since) > MAX_FLUSH
        });
        let mut late: Vec<ClientId> = late.map(|(&client, _)| client).collect();
        late.sort_unstable();
        late
    }
}

/// What a client may take to bring what it keeps of a file to the OSTs.
const MAX_FLUSH: Duration = Duration::from_secs(60);
/// Longest wait at a time; whoever waits looks again then.
const PATIENCE: Duration = Duration::from_secs(90);
