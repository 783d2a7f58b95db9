//! Sessions: which clients are known, when they were last heard of, and the last answers to them.
//!
//! A session is stored when it is opened and removed when it ends. After a restart of the MDT the
//! stored sessions are known but not yet *present*: the first request of each is answered with
//! `NoSession`, upon which the client opens its session again and reclaims what it had. Until all
//! have done so, or a lease has passed, the MDT is *recovering*: no lock is given to others and no
//! unlinked file is destroyed. Design: `docs/design/0002-sessions.md`.

use crate::record::{SavedReply, Session};
use parking_lot::{Mutex, RwLock};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use weft_model::{ClientId, ErrorKind, FsError, Result, Xid};

/// Sessions that an MDT takes at a time.
pub const MAX_SESSIONS: usize = 16_384;

/// One client's session.
pub struct Live {
    /// As stored.
    pub record: Session,
    /// The client has opened the session since the MDT started. A reclaim that was begun before the
    /// restart is not to be finished after it.
    pub greeted: AtomicBool,
    /// The client has reclaimed what it had, or has never had anything.
    pub present: AtomicBool,
    /// The session was ended: what it still had under way is void.
    ended: AtomicBool,
    /// Milliseconds on the server's monotonic clock.
    last_heard_ms: AtomicU64,
    /// Last answer of each slot.
    replies: Mutex<HashMap<u16, SavedReply>>,
}

/// All sessions.
#[derive(Default)]
pub struct Sessions {
    live: RwLock<HashMap<ClientId, Arc<Live>>>,
}

impl Live {
    /// Checks that the session was not ended while a request of it waited. To be asked under the planner's
    /// lock by plans that leave something behind in memory: whoever ends a session tidies up afterwards.
    ///
    /// # Errors
    /// `NoSession`.
    pub fn check_not_ended(&self) -> Result<()> {
        match self.ended.load(Ordering::Acquire) {
            true => Err(ErrorKind::NoSession.into()),
            false => Ok(()),
        }
    }

    /// A session as it was stored, or a new one.
    pub fn new(record: Session, present: bool, now: Duration) -> Live {
        Live {
            record,
            greeted: AtomicBool::new(present),
            present: AtomicBool::new(present),
            ended: AtomicBool::new(false),
            last_heard_ms: AtomicU64::new(now.as_millis() as u64),
            replies: Mutex::default(),
        }
    }

    /// Notes that the client was heard of.
    pub fn hear(&self, now: Duration) {
        self.last_heard_ms.fetch_max(now.as_millis() as u64, Ordering::Relaxed);
    }

    /// Time since the client was last heard of.
    pub fn idle(&self, now: Duration) -> Duration {
        let last = Duration::from_millis(self.last_heard_ms.load(Ordering::Relaxed));
        now.saturating_sub(last)
    }

    /// The answer that a request got before.
    ///
    /// # Errors
    /// `Protocol` for a request older than the slot's last: its answer is gone.
    pub fn saved(&self, xid: Xid) -> Result<Option<SavedReply>> {
        let replies = self.replies.lock();
        match replies.get(&xid.slot()) {
            Some(saved) if saved.sequence == xid.sequence() => Ok(Some(saved.clone())),
            Some(saved) if saved.sequence > xid.sequence() => {
                Err(FsError::new(ErrorKind::Protocol, "find reply")
                    .because("a later request of this slot has been answered"))
            }
            _ => Ok(None),
        }
    }

    /// Keeps an answer for its slot.
    pub fn save(&self, slot: u16, reply: SavedReply) {
        self.replies.lock().insert(slot, reply);
    }
}

impl Sessions {
    /// A session that may make requests.
    ///
    /// # Errors
    /// `NoSession` when it is unknown or has not reclaimed after a restart.
    pub fn present(&self, client: ClientId, now: Duration) -> Result<Arc<Live>> {
        let live = self.live.read().get(&client).cloned();
        match live {
            Some(live) if live.present.load(Ordering::Acquire) => {
                live.hear(now);
                Ok(live)
            }
            _ => Err(FsError::new(ErrorKind::NoSession, "find session").on(client)),
        }
    }

    /// A session, present or not.
    pub fn get(&self, client: ClientId) -> Option<Arc<Live>> {
        self.live.read().get(&client).cloned()
    }

    /// Adds a session, or replaces it.
    ///
    /// # Errors
    /// `Overloaded` when there are too many.
    pub fn insert(&self, client: ClientId, live: Live) -> Result<()> {
        let mut sessions = self.live.write();
        if sessions.len() >= MAX_SESSIONS && !sessions.contains_key(&client) {
            return Err(FsError::new(ErrorKind::Overloaded, "open session")
                .because(format_args!("{MAX_SESSIONS} sessions are open")));
        }
        sessions.insert(client, Arc::new(live));
        Ok(())
    }

    /// Forgets a session.
    pub fn remove(&self, client: ClientId) -> Option<Arc<Live>> {
        let live = self.live.write().remove(&client)?;
        live.ended.store(true, Ordering::Release);
        Some(live)
    }

    /// Sessions that keep what they are granted.
    pub fn caching(&self) -> HashSet<ClientId> {
        let sessions = self.live.read();
        sessions.iter().filter(|(_, live)| live.record.caches).map(|(&client, _)| client).collect()
    }

    /// Sessions that take write delegations.
    pub fn delegated_to(&self) -> HashSet<ClientId> {
        let sessions = self.live.read();
        let takers = sessions.iter().filter(|(_, live)| live.record.delegations);
        takers.map(|(&client, _)| client).collect()
    }

    /// Whether every stored session has come back.
    pub fn all_present(&self) -> bool {
        self.live.read().values().all(|live| live.present.load(Ordering::Acquire))
    }

    /// Sessions not heard of for longer than `lease`, in the same order every time. A client in this
    /// process cannot be lost.
    pub fn expired(&self, now: Duration, lease: Duration) -> Vec<ClientId> {
        let sessions = self.live.read();
        let late = sessions.iter().filter(|(_, l)| !l.record.local && l.idle(now) > lease);
        let mut late: Vec<ClientId> = late.map(|(&client, _)| client).collect();
        late.sort_unstable();
        late
    }

    /// Number of sessions.
    pub fn len(&self) -> usize {
        self.live.read().len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.live.read().is_empty()
    }
}
