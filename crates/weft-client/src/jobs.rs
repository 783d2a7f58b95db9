//! Lists of what is to be done later, and the threads that do it.

use crate::client::Client;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;
use weft_model::{FsError, Result};
use weft_rpc::router::Patience;

/// Longest wait for something to do.
const IDLE: Duration = Duration::from_secs(1);
/// Longest wait for servers before others get their turn.
const ATTEMPT: Duration = Duration::from_secs(5);

/// A list of jobs. Whoever adds to it sees to its bound.
pub(crate) struct Jobs<J> {
    waiting: Mutex<Waiting<J>>,
    added: Condvar,
    stopped: AtomicBool,
    at_work: AtomicUsize,
}

struct Waiting<J> {
    urgent: VecDeque<J>,
    others: VecDeque<J>,
}

impl<J> Default for Jobs<J> {
    fn default() -> Jobs<J> {
        Jobs {
            waiting: Mutex::new(Waiting { urgent: VecDeque::new(), others: VecDeque::new() }),
            added: Condvar::new(),
            stopped: AtomicBool::new(false),
            at_work: AtomicUsize::new(0),
        }
    }
}

impl<J: Send> Jobs<J> {
    /// Has something done.
    pub(crate) fn add(&self, job: J) {
        self.waiting.lock().others.push_back(job);
        self.added.notify_one();
    }

    /// Has something done before all that is not urgent: others wait for it.
    pub(crate) fn add_urgent(&self, job: J) {
        self.waiting.lock().urgent.push_back(job);
        self.added.notify_one();
    }

    /// What waits is not done any more, and the threads end.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        let mut waiting = self.waiting.lock();
        waiting.urgent.clear();
        waiting.others.clear();
        self.added.notify_all();
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Whether nobody is at work any more.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.at_work.load(Ordering::Acquire) == 0
    }

    /// Does one job, if there is one within `wait`; whether there was.
    pub(crate) fn do_one(&self, wait: Duration, work: impl FnOnce(J, &Patience<'_>)) -> bool {
        let Some(job) = self.next(wait) else { return false };
        let stopped = || self.is_stopped();
        work(job, &Patience { limit: Some(ATTEMPT), interrupted: Some(&stopped) });
        self.at_work.fetch_sub(1, Ordering::AcqRel);
        true
    }

    fn next(&self, wait: Duration) -> Option<J> {
        let mut waiting = self.waiting.lock();
        if waiting.urgent.is_empty() && waiting.others.is_empty() && !wait.is_zero() {
            self.added.wait_for(&mut waiting, wait);
        }
        if self.is_stopped() {
            return None;
        }
        let job = waiting.urgent.pop_front().or_else(|| waiting.others.pop_front())?;
        self.at_work.fetch_add(1, Ordering::AcqRel);
        Some(job)
    }
}

impl Client {
    /// Starts threads that do the jobs of a list, one at a time each. They do not keep the client alive.
    ///
    /// # Errors
    /// Those of starting a thread.
    pub(crate) fn start_threads<J: Send + 'static>(
        self: &Arc<Client>,
        name: &str,
        count: usize,
        list: fn(&Client) -> &Jobs<J>,
        do_one: fn(&Client, Duration) -> bool,
    ) -> Result<()> {
        for _ in 0..count {
            let client = Arc::downgrade(self);
            let run = move || {
                while let Some(client) = client.upgrade()
                    && !list(&client).is_stopped()
                {
                    do_one(&client, IDLE);
                }
            };
            let started = thread::Builder::new().name(name.into()).spawn(run);
            started.map_err(|error| FsError::from_io("start thread", &error).on(name))?;
        }
        Ok(())
    }
}
