//! Until when this client may write: its sessions' time, told to each OST on that OST's own clock.
//!
//! What an MDT has delegated, or has marked as written by this client, is another's once the MDT has
//! ended the session. It does so no sooner than [`delegation_ms`](weft_rpc::pb::mds::OpenSessionReply)
//! after it last heard of the session. So every write carries the moment at which that may be, counted
//! from the sending of the last answered request, and the OST refuses it afterwards: also one that was
//! held up on the way, or sent by a client that was stopped for an hour and does not know yet.

use crate::client::Client;
use crate::session::Session;
use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::time::Duration;
use weft_model::{ErrorKind, Fid, FsError, Result, TargetId};
use weft_rpc::pb::{mds, oss};
use weft_rpc::router::Patience;

/// How long a look at an OST's clock is used: clocks drift apart by less than 10 ms in that time.
const MAX_AGE: Duration = Duration::from_secs(60);
/// A session with less time left than this is renewed first.
const ENOUGH: Duration = Duration::from_millis(200);
/// Between two tries to renew a session.
const PAUSE: Duration = Duration::from_millis(20);

/// An OST's clock, and when it was looked at, by ours: later than it told the time.
#[derive(Clone, Copy)]
struct Clock {
    told: oss::Moment,
    at: Duration,
}

/// The OSTs' clocks.
#[derive(Default)]
pub(crate) struct Clocks(RwLock<HashMap<TargetId, Clock>>);

impl Session {
    /// A request sent at `sent` was answered.
    pub(crate) fn heard(&self, sent: Duration) {
        let life = self.delegation_ms.load(Ordering::Relaxed);
        self.counts_until_ms.fetch_max(sent.as_millis() as u64 + life, Ordering::AcqRel);
    }

    /// Until when the session counts for certain, on our clock.
    fn counts_until(&self) -> Duration {
        Duration::from_millis(self.counts_until_ms.load(Ordering::Acquire))
    }
}

impl Client {
    /// Whether this client's session with the MDT of `fid` counts for certain just now.
    pub(crate) fn session_counts(&self, fid: Fid) -> bool {
        let session = self.mdt_of(fid).map(|mdt| self.sessions.get(mdt));
        session.is_ok_and(|session| session.counts_until() > self.env().monotonic())
    }

    /// Until when this client's session with the MDT of `fid` counts for certain; renews it if that is
    /// soon over. `None` when nothing is delegated to this client.
    pub(crate) fn session_time(
        &self,
        fid: Fid,
        patience: &Patience<'_>,
    ) -> Result<Option<Duration>> {
        if !self.config.delegations {
            return Ok(None);
        }
        let mdt = self.mdt_of(fid)?;
        let session = self.sessions.get(mdt);
        let start = self.env().monotonic();
        loop {
            let (now, until) = (self.env().monotonic(), session.counts_until());
            if until > now + ENOUGH {
                return Ok(Some(until));
            }
            if patience.interrupted.is_some_and(|interrupted| interrupted()) {
                return Err(FsError::new(ErrorKind::Interrupted, "renew session"));
            }
            if patience.limit.is_some_and(|limit| now - start >= limit) {
                return Err(FsError::new(ErrorKind::TimedOut, "renew session").on(mdt));
            }
            self.ask_mdt(mdt, mds::RenewSession {}, patience)?;
            if session.counts_until() <= self.env().monotonic() + ENOUGH {
                self.env().sleep(PAUSE);
            }
        }
    }

    /// The moment `until` on the clock of an OST, or somewhat before.
    pub(crate) fn moment_at(
        &self,
        ost: TargetId,
        until: Duration,
        patience: &Patience<'_>,
    ) -> Result<oss::Moment> {
        let now = self.env().monotonic();
        let known = self.clocks.0.read().get(&ost).copied();
        let clock = match known.filter(|clock| now < clock.at + MAX_AGE) {
            Some(clock) => clock,
            None => {
                let told = self.router.ask(ost, oss::Clock {}, patience)?;
                let clock = Clock { told, at: self.env().monotonic() };
                self.clocks.0.write().insert(ost, clock);
                clock
            }
        };
        let ahead = until.saturating_sub(clock.at).as_millis() as u64;
        Ok(oss::Moment { run: clock.told.run, ms: clock.told.ms + ahead })
    }

    /// An OST has refused a moment: it was restarted, or the moment has passed.
    pub(crate) fn forget_clock(&self, ost: TargetId) {
        self.clocks.0.write().remove(&ost);
    }
}
