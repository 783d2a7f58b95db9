//! The one thread of the library: renews leases, reports writes that nobody else reports.

use crate::client::Client;
use parking_lot::{Condvar, Mutex};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use weft_model::{FsError, Result, TargetId};
use weft_rpc::pb::{manager, mds};
use weft_rpc::router::Patience;

/// Between two reports of unreported writes; what `stat` on other clients shows of a file after its
/// writer's machine has died is at most this much older than what was written.
const REPORT_INTERVAL: Duration = Duration::from_secs(2);
/// Between two looks at what is due.
const TICK: Duration = Duration::from_millis(500);
/// Lease assumed until an MDT has told one.
const DEFAULT_LEASE: Duration = Duration::from_secs(30);
/// Longest wait for one server, so that a dead one does not cost the sessions with the others.
const ATTEMPT: Duration = Duration::from_secs(1);

/// The running thread; ends when dropped.
pub(crate) struct Keeper {
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Stop {
    stopped: Mutex<bool>,
    changed: Condvar,
}

impl Stop {
    /// Waits a tick; whether it is time to end.
    fn wait(&self) -> bool {
        let mut stopped = self.stopped.lock();
        if !*stopped {
            self.changed.wait_for(&mut stopped, TICK);
        }
        *stopped
    }
}

impl Keeper {
    /// Starts the thread. It does not keep the client alive.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn start(client: &Arc<Client>) -> Result<Keeper> {
        let stop = Arc::new(Stop::default());
        let (theirs, weak) = (stop.clone(), Arc::downgrade(client));
        let builder = thread::Builder::new().name("weft-keepalive".into());
        let thread = builder
            .spawn(move || run(&theirs, &weak))
            .map_err(|error| FsError::from_io("start keep-alive thread", &error))?;
        Ok(Keeper { stop, thread: Some(thread) })
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        *self.stop.stopped.lock() = true;
        self.stop.changed.notify_all();
        if let Some(thread) = self.thread.take()
            // The thread itself may hold the last reference to the client.
            && thread.thread().id() != thread::current().id()
            && thread.join().is_err()
        {
            tracing::error!("the keep-alive thread has panicked");
        }
    }
}

fn run(stop: &Stop, client: &Weak<Client>) {
    let mut rounds = Rounds::default();
    while !stop.wait() {
        let Some(client) = client.upgrade() else { return };
        client.keep_alive(&mut rounds);
    }
}

/// When the rounds of the keep-alive were made last.
#[derive(Debug, Default)]
pub struct Rounds {
    renewed: Option<Duration>,
    reported: Option<Duration>,
}

impl Client {
    /// Renews leases, reports writes, closes what nobody knows of, whatever is due. To be called every half second or so.
    pub fn keep_alive(&self, rounds: &mut Rounds) {
        let now = self.env().monotonic();
        self.write_aged();
        self.drop_unread();
        let due = |last: Option<Duration>, interval| last.is_none_or(|at| now >= at + interval);
        if due(rounds.renewed, self.sessions.lease().unwrap_or(DEFAULT_LEASE) / 3) {
            rounds.renewed = Some(now);
            self.renew();
        }
        self.close_unanswered(&Patience::of(ATTEMPT));
        if due(rounds.reported, REPORT_INTERVAL) {
            rounds.reported = Some(now);
            self.report_all();
        }
    }

    /// Renews every lease. A failure is left to the next round, and to those who use the session.
    fn renew(&self) {
        let patience = Patience::of(ATTEMPT);
        for mdt in self.sessions.opened() {
            if let Err(error) = self.ask_mdt(mdt, mds::RenewSession {}, &patience) {
                tracing::debug!(%mdt, %error, "cannot renew session");
            }
        }
        let alive = manager::RenewClient { client: self.id().0, leaving: false };
        if let Err(error) = self.router.ask(TargetId::MGT, alive, &patience) {
            tracing::debug!(%error, "cannot renew client");
        }
    }

    /// Reports all unreported writes. What fails stays unreported and is tried again.
    fn report_all(&self) {
        let patience = Patience::of(ATTEMPT);
        for inode in self.inodes.dirty() {
            if let Err(error) = self.report(&inode, &patience) {
                tracing::debug!(fid = %inode.fid(), %error, "cannot report writes");
            }
        }
    }
}
