//! What sessions were granted, so that a change can recall it first.
//!
//! A grant lasts one term, so nothing older need be remembered: each shard keeps two generations of a
//! term each and forgets the older one. Design: `docs/design/0004-grants.md`.

mod recalls;
mod shard;

use self::recalls::Queue;
use self::shard::Shard;
use parking_lot::{Mutex, RwLock};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weft_model::{ClientId, Env, Fid};
use weft_rpc::pb::mds;

/// How long a grant lasts, and so the longest wait for a client that does not answer a recall.
pub const TERM: Duration = Duration::from_secs(1);
/// What the MDT waits longer than the term, for clocks that run at different speeds.
const MARGIN: Duration = Duration::from_millis(10);
const SHARDS: usize = 64;
/// First and longest pause between two looks whether a recall is confirmed.
const PAUSES: (Duration, Duration) = (Duration::from_micros(20), Duration::from_millis(1));

/// All grants of an MDT.
pub struct Grants {
    env: Arc<dyn Env>,
    shards: Vec<Mutex<Shard>>,
    queues: RwLock<HashMap<ClientId, Arc<Queue>>>,
    /// Sessions that may still use what the MDT granted them before it was started.
    former: HashSet<ClientId>,
    /// Until then.
    former_until: Duration,
    former_gone: AtomicBool,
}

/// A changed inode that is granted to others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Holder {
    client: ClientId,
    fid: Fid,
    is_dir: bool,
}

/// What has to be waited for before a change may be made.
#[derive(Debug)]
pub enum Conflict {
    /// These have to confirm a recall.
    Held(Vec<Holder>),
    /// Terms granted before this MDT was started have not ended.
    Former,
}

/// Inodes that are being changed; nothing is granted about them until this is dropped.
pub struct Claim<'a> {
    grants: &'a Grants,
    fids: Vec<Fid>,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.fids.iter().for_each(|&fid| self.grants.shard(fid).lock().end_change(fid));
    }
}

impl Grants {
    /// Nothing granted. `former` are sessions that were granted things before the MDT was started.
    pub fn new(env: Arc<dyn Env>, former: HashSet<ClientId>) -> Grants {
        let now = env.monotonic();
        Grants {
            shards: (0..SHARDS).map(|_| Mutex::new(Shard::new(now))).collect(),
            queues: RwLock::default(),
            former_gone: AtomicBool::new(former.is_empty()),
            former,
            former_until: now + TERM + MARGIN,
            env,
        }
    }

    fn shard(&self, fid: Fid) -> &Mutex<Shard> {
        &self.shards[(fid.0 ^ (fid.0 >> 6)) as usize % SHARDS]
    }

    /// The session takes part from now on.
    pub fn open(&self, client: ClientId) {
        let mut queues = self.queues.write();
        queues.entry(client).or_insert_with(|| Arc::new(Queue::new(self.env.random() | 1)));
    }

    /// The session has ended.
    pub fn close(&self, client: ClientId) {
        if let Some(queue) = self.queues.write().remove(&client) {
            queue.end();
        }
    }

    /// Grants an inode whose committed state is read after this call. Milliseconds; 0 is a refusal.
    pub fn grant(&self, fid: Fid, client: ClientId) -> u32 {
        self.enter(fid, client, false)
    }

    /// Grants an inode to whoever changes it, or reads it, under the planner's lock.
    pub fn grant_planned(&self, fid: Fid, client: ClientId) -> u32 {
        self.enter(fid, client, true)
    }

    /// The session was not told of its grant after all.
    pub fn withdraw(&self, fid: Fid, client: ClientId) {
        self.shard(fid).lock().release(fid, client);
    }

    fn enter(&self, fid: Fid, client: ClientId, planned: bool) -> u32 {
        if !self.queues.read().contains_key(&client) {
            return 0;
        }
        let now = self.env.monotonic();
        let granted = self.shard(fid).lock().grant(fid, client, planned, now);
        if granted { TERM.as_millis() as u32 } else { 0 }
    }

    /// Claims inodes for a change by `changer` ([`ClientId::NONE`] for the MDT itself), under the
    /// planner's lock. The flag tells a directory.
    ///
    /// # Errors
    /// What has to be waited for first; nothing is claimed then.
    pub fn claim(
        &self,
        changer: ClientId,
        changed: impl Iterator<Item = (Fid, bool)>,
    ) -> Result<Claim<'_>, Conflict> {
        let now = self.env.monotonic();
        if self.former_may_hold(changer, now) {
            return Err(Conflict::Former);
        }
        let mut claim = Claim { grants: self, fids: Vec::with_capacity(4) };
        let mut held = Vec::new();
        for (fid, is_dir) in changed {
            let mut shard = self.shard(fid).lock();
            let others = shard.begin_change(fid, changer, now);
            held.extend(others.map(|client| Holder { client, fid, is_dir }));
            claim.fids.push(fid);
        }
        if held.is_empty() { Ok(claim) } else { Err(Conflict::Held(held)) }
    }

    fn former_may_hold(&self, changer: ClientId, now: Duration) -> bool {
        if self.former_gone.load(Ordering::Relaxed) {
            return false;
        }
        if now >= self.former_until {
            self.former_gone.store(true, Ordering::Relaxed);
            return false;
        }
        self.former.iter().any(|&client| client != changer)
    }

    /// Recalls and waits for all confirmations, a term at most. No lock may be held.
    pub fn resolve(&self, conflict: Conflict) {
        let holders = match conflict {
            Conflict::Held(holders) => holders,
            Conflict::Former => {
                let left = self.former_until.saturating_sub(self.env.monotonic());
                return self.env.sleep(left);
            }
        };
        let deadline = self.env.monotonic() + TERM + MARGIN;
        // All are told before any is waited for.
        let asked: Vec<_> = holders.iter().map(|holder| (holder, self.recall(holder))).collect();
        for (holder, recall) in asked {
            if let Some((queue, number)) = recall {
                self.await_confirmation(&queue, number, deadline);
            }
            self.shard(holder.fid).lock().release(holder.fid, holder.client);
        }
    }

    /// Tells a session. `None`: it has ended, and with it all it was granted.
    fn recall(&self, holder: &Holder) -> Option<(Arc<Queue>, u64)> {
        let queue = self.queues.read().get(&holder.client)?.clone();
        let number = queue.push(holder.fid, holder.is_dir);
        Some((queue, number))
    }

    fn await_confirmation(&self, queue: &Queue, number: u64, deadline: Duration) {
        let mut pause = PAUSES.0;
        while !queue.is_done(number) && self.env.monotonic() < deadline {
            self.env.sleep(pause);
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    /// Answers a session's request for recalls; `None` when it takes no part.
    pub fn await_recalls(
        &self,
        client: ClientId,
        request: &mds::AwaitRecalls,
    ) -> Option<mds::AwaitRecallsReply> {
        let queue = self.queues.read().get(&client)?.clone();
        Some(queue.take(request))
    }
}
