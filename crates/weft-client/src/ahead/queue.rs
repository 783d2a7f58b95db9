//! What is to be fetched, and the threads that do.

use super::Room;
use crate::client::Client;
use crate::inode::OpenInode;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;
use weft_model::{FsError, Result};
use weft_rpc::router::Patience;

/// Threads: ranges that are fetched at a time.
const THREADS: usize = 8;
/// Longest wait for something to do.
const IDLE: Duration = Duration::from_secs(1);
/// Longest wait for servers. A reader that waits for a range asks for it itself afterwards.
const ATTEMPT: Duration = Duration::from_secs(5);

/// What is to be done for a file.
pub(crate) enum Job {
    /// A range is to be fetched: where it starts, and its number.
    Fetch(Arc<OpenInode>, u64, u64),
    /// The MDT is to be asked for a grant.
    Cover(Arc<OpenInode>),
}

/// The list of jobs. There are no more than ranges that all files may hold, and two a second for each open file.
#[derive(Default)]
pub(crate) struct Queue {
    jobs: Mutex<VecDeque<Job>>,
    added: Condvar,
    stopped: AtomicBool,
    pub(crate) room: Room,
}

impl Queue {
    /// Has something done.
    pub(crate) fn add(&self, job: Job) {
        self.jobs.lock().push_back(job);
        self.added.notify_one();
    }

    /// Lets the threads end.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.jobs.lock().clear();
        self.added.notify_all();
    }

    fn next(&self, wait: Duration) -> Option<Job> {
        let mut jobs = self.jobs.lock();
        if jobs.is_empty() && !wait.is_zero() {
            self.added.wait_for(&mut jobs, wait);
        }
        if self.stopped.load(Ordering::Acquire) { None } else { jobs.pop_front() }
    }
}

impl Client {
    /// Starts the threads. They do not keep the client alive.
    pub(crate) fn start_reading_ahead(self: &Arc<Client>) -> Result<()> {
        for _ in 0..THREADS {
            let client = Arc::downgrade(self);
            let thread = thread::Builder::new().name("weft-ahead".into());
            let started = thread.spawn(move || run(&client));
            started.map_err(|error| FsError::from_io("start read-ahead thread", &error))?;
        }
        Ok(())
    }

    /// Does one job of reading ahead, if there is one within `wait`; whether there was.
    pub fn read_some_ahead(&self, wait: Duration) -> bool {
        let Some(job) = self.ahead.next(wait) else { return false };
        let stopped = || self.ahead.stopped.load(Ordering::Acquire);
        let patience = Patience { limit: Some(ATTEMPT), interrupted: Some(&stopped) };
        match job {
            Job::Fetch(inode, start, number) => self.fetch_ahead(&inode, start, number, &patience),
            Job::Cover(inode) => {
                // The answer is taken note of on its way. Without one nothing is read ahead.
                if let Err(error) = self.current_attr(inode.fid(), &patience) {
                    tracing::debug!(fid = %inode.fid(), %error, "no grant to read ahead under");
                }
            }
        }
        true
    }
}

fn run(client: &Weak<Client>) {
    loop {
        let Some(client) = client.upgrade() else { return };
        if client.ahead.stopped.load(Ordering::Acquire) {
            return;
        }
        client.read_some_ahead(IDLE);
    }
}
