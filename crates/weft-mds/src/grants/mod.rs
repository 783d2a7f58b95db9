//! What sessions were granted, so that a change can recall it first.
//!
//! A grant lasts one term, so nothing older need be remembered: each shard keeps two generations of a
//! term each and forgets the older one. Design: `docs/design/0004-grants.md`.

mod delegations;
mod recalls;
mod shard;

use self::delegations::Delegations;
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
/// For how long after the session was last heard of a write delegation counts.
pub const LIFE: Duration = Duration::from_secs(5);
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
    delegations: Delegations,
}

/// A session that was granted an inode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Holder {
    client: ClientId,
    fid: Fid,
    is_dir: bool,
    delegation: bool,
}

impl Holder {
    const fn of_delegation(client: ClientId, fid: Fid) -> Holder {
        Holder { client, fid, is_dir: false, delegation: true }
    }
}

/// An inode that is changed.
pub struct Changed<'a> {
    /// The inode.
    pub fid: Fid,
    /// It is a directory.
    pub is_dir: bool,
    /// Sessions that may write the file.
    pub writers: &'a [u64],
}

/// What has to be waited for before a change may be made.
#[derive(Debug)]
pub enum Conflict {
    /// These have to confirm a recall.
    Held(Vec<Holder>),
    /// Terms granted before this MDT was started have not ended.
    Former,
    /// What was delegated to this session before this MDT was started is not known yet.
    Absent(ClientId),
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
    /// Nothing granted. `former` are sessions that were granted things before the MDT was started,
    /// `absent` those that may have been delegated some.
    pub fn new(env: Arc<dyn Env>, former: HashSet<ClientId>, absent: HashSet<ClientId>) -> Grants {
        let now = env.monotonic();
        Grants {
            shards: (0..SHARDS).map(|_| Mutex::new(Shard::new(now))).collect(),
            queues: RwLock::default(),
            former_gone: AtomicBool::new(former.is_empty()),
            former,
            former_until: now + TERM + MARGIN,
            delegations: Delegations::new(absent),
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
        self.forget_delegations(client);
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

    fn enter(&self, fid: Fid, client: ClientId, planned: bool) -> u32 {
        if !self.queues.read().contains_key(&client) {
            return 0;
        }
        let now = self.env.monotonic();
        let granted = self.shard(fid).lock().grant(fid, client, planned, now);
        if granted { TERM.as_millis() as u32 } else { 0 }
    }

    /// Claims inodes for a change by `changer` ([`ClientId::NONE`] for the MDT itself), under the
    /// planner's lock.
    ///
    /// # Errors
    /// What has to be waited for first; nothing is claimed then.
    pub fn claim<'c>(
        &self,
        changer: ClientId,
        changed: impl Iterator<Item = Changed<'c>>,
    ) -> Result<Claim<'_>, Conflict> {
        let now = self.env.monotonic();
        if self.former_may_hold(changer, now) {
            return Err(Conflict::Former);
        }
        let mut claim = Claim { grants: self, fids: Vec::with_capacity(4) };
        let mut held = Vec::new();
        for Changed { fid, is_dir, writers } in changed {
            // What the MDT does by itself neither reads nor writes what others keep of a file, and must not
            // wait for sessions that it may be about to end.
            let delegations_matter = changer != ClientId::NONE;
            if delegations_matter {
                self.look_for_absent(writers, changer)?;
            }
            let mut shard = self.shard(fid).lock();
            let others = shard.begin_change(fid, changer, now);
            let others = others.map(|client| Holder { client, fid, is_dir, delegation: false });
            held.extend(others);
            let delegated = shard.delegated(fid);
            let delegated = delegated.filter(|&to| to != changer && delegations_matter);
            held.extend(delegated.map(|client| Holder::of_delegation(client, fid)));
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

    /// Recalls and waits for all confirmations, a term at most, and for what was delegated to be
    /// returned. No lock may be held.
    pub fn resolve(&self, conflict: Conflict) {
        let holders = match conflict {
            Conflict::Held(holders) => holders,
            Conflict::Former => {
                let left = self.former_until.saturating_sub(self.env.monotonic());
                return self.env.sleep(left);
            }
            Conflict::Absent(client) => return self.await_absent(client),
        };
        let deadline = self.env.monotonic() + TERM + MARGIN;
        // All are told before any is waited for.
        let asked: Vec<_> = holders.iter().map(|holder| (holder, self.recall(holder))).collect();
        for (holder, recall) in asked {
            if holder.delegation {
                self.await_return(holder);
                continue;
            }
            if let Some((queue, number)) = recall {
                self.wait_until(deadline, || queue.is_done(number));
            }
            self.shard(holder.fid).lock().release(holder.fid, holder.client);
        }
    }

    /// Tells a session. `None`: it has ended, and with it all it was granted.
    fn recall(&self, holder: &Holder) -> Option<(Arc<Queue>, u64)> {
        if holder.delegation {
            self.shard(holder.fid).lock().recall_delegation(holder.fid, self.env.monotonic());
        }
        let queue = self.queues.read().get(&holder.client)?.clone();
        let number = queue.push(holder);
        Some((queue, number))
    }

    fn wait_until(&self, deadline: Duration, done: impl Fn() -> bool) {
        let mut pause = PAUSES.0;
        while !done() && self.env.monotonic() < deadline {
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
