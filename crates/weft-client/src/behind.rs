//! The threads that bring written data to the OSTs, and how much waits for them.

use crate::client::Client;
use crate::inode::OpenInode;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;
use weft_model::{Fid, FsError, Result};
use weft_rpc::router::Patience;

/// Threads.
const THREADS: usize = 2;
/// Longest wait for something to do.
const IDLE: Duration = Duration::from_secs(1);
/// Longest wait for servers before others get their turn.
const ATTEMPT: Duration = Duration::from_secs(5);
/// Data of a file does not wait longer than this, about.
const MAX_AGE: Duration = Duration::from_secs(1);

/// What is to be done.
enum Job {
    /// Full windows of a file are to be written.
    Write(Arc<OpenInode>),
    /// A delegation is to be returned.
    Return(Fid),
}

/// The list of jobs: a file is in it once at most, so there are no more than open files and recalls.
#[derive(Default)]
pub(crate) struct Behind {
    jobs: Mutex<VecDeque<Job>>,
    added: Condvar,
    stopped: AtomicBool,
    /// Jobs being done.
    at_work: AtomicUsize,
    /// Bytes that wait in all files.
    waiting: AtomicUsize,
}

impl Behind {
    /// Bytes that wait in all files.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// A file has so many waiting bytes now, and had so many before.
    pub(crate) fn count(&self, before: usize, now: usize) {
        if now >= before {
            self.waiting.fetch_add(now - before, Ordering::Relaxed);
        } else {
            self.waiting.fetch_sub(before - now, Ordering::Relaxed);
        }
    }

    /// Has what waits of a file written.
    pub(crate) fn write_soon(&self, inode: &Arc<OpenInode>) {
        if !inode.queued.swap(true, Ordering::AcqRel) {
            self.add(Job::Write(inode.clone()));
        }
    }

    /// Has a delegation returned.
    pub(crate) fn return_soon(&self, fid: Fid) {
        self.add(Job::Return(fid));
    }

    fn add(&self, job: Job) {
        self.jobs.lock().push_back(job);
        self.added.notify_one();
    }

    /// Lets the threads end.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.added.notify_all();
    }

    /// Whether nobody is at work any more.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.at_work.load(Ordering::Acquire) == 0
    }

    fn next(&self, wait: Duration) -> Option<Job> {
        let mut jobs = self.jobs.lock();
        if jobs.is_empty() && !wait.is_zero() {
            self.added.wait_for(&mut jobs, wait);
        }
        if self.stopped.load(Ordering::Acquire) {
            return None;
        }
        // Others wait for what is to be returned.
        let urgent = jobs.iter().position(|job| matches!(job, Job::Return(_)));
        let job = jobs.remove(urgent.unwrap_or(0))?;
        self.at_work.fetch_add(1, Ordering::AcqRel);
        Some(job)
    }
}

impl Client {
    /// Starts the threads. They do not keep the client alive.
    pub(crate) fn start_writing_behind(self: &Arc<Client>) -> Result<()> {
        for _ in 0..THREADS {
            let client = Arc::downgrade(self);
            let thread = thread::Builder::new().name("weft-behind".into());
            let started = thread.spawn(move || run(&client));
            started.map_err(|error| FsError::from_io("start write-behind thread", &error))?;
        }
        Ok(())
    }

    /// Does one job of writing data behind, if there is one within `wait`; whether there was.
    pub fn write_some_behind(&self, wait: Duration) -> bool {
        let Some(job) = self.behind.next(wait) else { return false };
        let stopped = || self.behind.stopped.load(Ordering::Acquire);
        let patience = Patience { limit: Some(ATTEMPT), interrupted: Some(&stopped) };
        match job {
            Job::Write(inode) => {
                inode.queued.store(false, Ordering::Release);
                let now = self.env().monotonic();
                let aged = inode.buffer().since().is_some_and(|since| now >= since + MAX_AGE);
                if let Err(error) = self.write_back(&inode, !aged, &patience) {
                    tracing::debug!(fid = %inode.fid(), %error, "not written yet");
                    self.behind.write_soon(&inode);
                }
            }
            Job::Return(fid) => {
                if let Err(error) = self.return_delegation(fid, &patience) {
                    tracing::debug!(%fid, %error, "delegation not returned yet");
                    self.behind.return_soon(fid);
                }
            }
        }
        self.behind.at_work.fetch_sub(1, Ordering::AcqRel);
        true
    }

    /// Has those files written of which something has waited for long.
    pub(crate) fn write_aged(&self) {
        let Some(before) = self.env().monotonic().checked_sub(MAX_AGE) else { return };
        let aged = |inode: &OpenInode| inode.buffer().since().is_some_and(|since| since <= before);
        self.inodes.select(aged).iter().for_each(|inode| self.behind.write_soon(inode));
    }
}

fn run(client: &Weak<Client>) {
    loop {
        let Some(client) = client.upgrade() else { return };
        if client.behind.stopped.load(Ordering::Acquire) {
            return;
        }
        client.write_some_behind(IDLE);
    }
}
