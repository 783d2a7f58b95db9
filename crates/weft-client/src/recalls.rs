//! The threads that carry out recalls, one per MDT.

use crate::client::Client;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;
use weft_model::{ErrorKind, Fid, FsError, Result, TargetId};
use weft_rpc::pb::mds;
use weft_rpc::router::Patience;

/// How long the MDT may keep a request for recalls.
const WAIT_MS: u32 = 1000;
/// Longest wait for an answer.
const ATTEMPT: Duration = Duration::from_secs(3);
/// After a failure.
const PAUSE: Duration = Duration::from_millis(100);

/// A grant that has to be given back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Recalled {
    /// The inode.
    pub fid: Fid,
    /// It is a directory: names in it may not be used any more.
    pub is_dir: bool,
}

/// Whoever keeps what was granted.
pub trait Keeping: Send + Sync {
    /// Drops what is kept of these inodes. [`Client::grant_left`] tells zero for grants of them already.
    /// When this returns, nothing of what was granted may be in use.
    fn drop_granted(&self, recalled: &[Recalled]);
}

/// Which MDTs are being listened to, and until when.
#[derive(Default)]
pub(crate) struct Listening {
    stopped: AtomicBool,
    mdts: parking_lot::Mutex<BTreeSet<TargetId>>,
}

impl Listening {
    /// Lets the threads end, as soon as their sessions have.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
    }
}

impl Client {
    /// Has recalls carried out by `keeping`, on threads of their own, until the client is unmounted. The
    /// client must have been mounted with [`ClientConfig::caches`](crate::ClientConfig::caches).
    ///
    /// # Errors
    /// Those of starting a thread.
    pub fn start_caching(self: &Arc<Client>, keeping: &Arc<dyn Keeping>) -> Result<()> {
        for mdt in self.sessions.opened() {
            if !self.listening.mdts.lock().insert(mdt) {
                continue;
            }
            let (client, keeping) = (Arc::downgrade(self), keeping.clone());
            let thread = thread::Builder::new().name("weft-recalls".into());
            let started = thread.spawn(move || listen(&client, mdt, &*keeping));
            started.map_err(|error| FsError::from_io("start recall thread", &error))?;
        }
        if self.config.delegations {
            self.start_writing_behind()?;
        }
        if self.config.max_ahead > 0 {
            self.start_reading_ahead()?;
        }
        Ok(())
    }

    /// Asks an MDT for recalls, having carried out those of `last`, and carries out what it tells.
    ///
    /// # Errors
    /// Those of the MDT.
    pub fn carry_out_recalls(
        &self,
        mdt: TargetId,
        last: &mut mds::AwaitRecalls,
        keeping: &dyn Keeping,
    ) -> Result<()> {
        // A session that is gone is opened again by whoever has something to ask; until then nothing is
        // granted. What is delegated has to be reclaimed soon.
        let sent = self.env().monotonic();
        let reply = match self.router.ask(mdt, *last, &Patience::of(ATTEMPT)) {
            Err(error) if error.kind == ErrorKind::NoSession && self.has_delegations() => {
                self.ask_mdt(mdt, mds::RenewSession {}, &Patience::of(ATTEMPT))?;
                return Ok(());
            }
            answer => answer?,
        };
        self.sessions.get(mdt).heard(sent);
        let recalled: Vec<Recalled> = reply
            .recalls
            .iter()
            .map(|recall| Recalled { fid: Fid(recall.fid), is_dir: recall.is_dir })
            .collect();
        recalled.iter().for_each(|recalled| self.grants.void(recalled.fid));
        if !recalled.is_empty() {
            keeping.drop_granted(&recalled);
        }
        for recall in reply.recalls.iter().filter(|recall| recall.delegation) {
            self.behind.return_soon(Fid(recall.fid));
        }
        let done = if reply.queue == last.queue { last.done } else { 0 };
        last.done = reply.recalls.last().map_or(done, |recall| recall.number);
        last.queue = reply.queue;
        Ok(())
    }
}

impl Client {
    fn has_delegations(&self) -> bool {
        let ending = self.listening.stopped.load(Ordering::Acquire);
        !ending && !self.inodes.select(|inode| inode.is_delegated()).is_empty()
    }
}

fn listen(client: &Weak<Client>, mdt: TargetId, keeping: &dyn Keeping) {
    let mut last = mds::AwaitRecalls { wait_ms: WAIT_MS, ..mds::AwaitRecalls::default() };
    loop {
        let Some(client) = client.upgrade() else { return };
        if client.listening.stopped.load(Ordering::Acquire) {
            return;
        }
        if let Err(error) = client.carry_out_recalls(mdt, &mut last, keeping) {
            tracing::debug!(%mdt, %error, "cannot ask for recalls");
            thread::sleep(PAUSE);
        }
    }
}
