//! The threads that bring written data to the OSTs, and how much waits for them.

use crate::client::Client;
use crate::inode::OpenInode;
use crate::jobs::Jobs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use weft_model::{Fid, Result};

/// Threads.
const THREADS: usize = 2;
/// Data of a file does not wait longer than this, about.
const MAX_AGE: Duration = Duration::from_secs(1);

/// What is to be done.
pub(crate) enum Job {
    /// Full windows of a file are to be written.
    Write(Arc<OpenInode>),
    /// A delegation is to be returned.
    Return(Fid),
}

/// What is to be written, and how much. A file is in the list once at most, so there are no more jobs than
/// open files and recalls.
#[derive(Default)]
pub(crate) struct Behind {
    pub(crate) jobs: Jobs<Job>,
    /// Nothing is written behind any more.
    through: AtomicBool,
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
            self.jobs.add(Job::Write(inode.clone()));
        }
    }

    /// Has a delegation returned.
    pub(crate) fn return_soon(&self, fid: Fid) {
        self.jobs.add_urgent(Job::Return(fid));
    }

    /// From now on nothing is written behind.
    pub(crate) fn write_through(&self) {
        self.through.store(true, Ordering::SeqCst);
    }

    /// Whether nothing is written behind any more.
    pub(crate) fn is_through(&self) -> bool {
        self.through.load(Ordering::SeqCst)
    }
}

impl Client {
    /// Starts the threads.
    pub(crate) fn start_writing_behind(self: &Arc<Client>) -> Result<()> {
        self.start_threads("weft-behind", THREADS, |c| &c.behind.jobs, Client::write_some_behind)
    }

    /// Does one job of writing data behind, if there is one within `wait`; whether there was.
    pub fn write_some_behind(&self, wait: Duration) -> bool {
        self.behind.jobs.do_one(wait, |job, patience| match job {
            Job::Write(inode) => {
                inode.queued.store(false, Ordering::Release);
                let now = self.env().monotonic();
                let aged = inode.buffer().since().is_some_and(|since| now >= since + MAX_AGE);
                if let Err(error) = self.write_back(&inode, !aged, patience) {
                    tracing::debug!(fid = %inode.fid(), %error, "not written yet");
                    self.behind.write_soon(&inode);
                }
            }
            Job::Return(fid) => {
                if let Err(error) = self.return_delegation(fid, patience) {
                    tracing::debug!(%fid, %error, "delegation not returned yet");
                    self.behind.return_soon(fid);
                }
            }
        })
    }

    /// Has those files written of which something has waited for long.
    pub(crate) fn write_aged(&self) {
        let Some(before) = self.env().monotonic().checked_sub(MAX_AGE) else { return };
        let aged = |inode: &OpenInode| inode.buffer().since().is_some_and(|since| since <= before);
        self.inodes.select(aged).iter().for_each(|inode| self.behind.write_soon(inode));
    }
}
