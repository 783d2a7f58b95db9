//! What is to be fetched, and by whom.

use super::Room;
use crate::client::Client;
use crate::inode::OpenInode;
use crate::jobs::Jobs;
use std::sync::Arc;
use std::time::Duration;
use weft_model::Result;

/// Threads: ranges that are fetched at a time.
const THREADS: usize = 8;

/// What is to be done for a file.
pub(crate) enum Job {
    /// A range is to be fetched: where it starts, and its number.
    Fetch(Arc<OpenInode>, u64, u64),
    /// The MDT is to be asked for a grant.
    Cover(Arc<OpenInode>),
}

/// What is to be fetched. There are no more jobs than ranges that all files may hold, and two a second for
/// each open file.
#[derive(Default)]
pub(crate) struct Queue {
    pub(crate) jobs: Jobs<Job>,
    pub(crate) room: Room,
}

impl Client {
    /// Starts the threads.
    pub(crate) fn start_reading_ahead(self: &Arc<Client>) -> Result<()> {
        self.start_threads("weft-ahead", THREADS, |c| &c.ahead.jobs, Client::read_some_ahead)
    }

    /// Does one job of reading ahead, if there is one within `wait`; whether there was.
    pub fn read_some_ahead(&self, wait: Duration) -> bool {
        self.ahead.jobs.do_one(wait, |job, patience| match job {
            Job::Fetch(inode, start, number) => self.fetch_ahead(&inode, start, number, patience),
            Job::Cover(inode) => {
                // The answer is taken note of on its way. Without one nothing is read ahead.
                if let Err(error) = self.current_attr(inode.fid(), patience) {
                    tracing::debug!(fid = %inode.fid(), %error, "no grant to read ahead under");
                }
            }
        })
    }
}
