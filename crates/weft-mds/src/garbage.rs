//! Destroying the objects of files that are gone.
//!
//! Each such file has a record in the store, made by the batch that removed its inode. Here they wait
//! in memory as well: to look for them in the store means to step over all that were destroyed lately.

use crate::record::{self, Garbage};
use crate::{Mds, keys};
use std::collections::VecDeque;
use std::ops::ControlFlow;
use weft_model::{Fid, Layout, Result};

/// Files destroyed per step, so that a step ends in reasonable time.
const STEP: usize = 256;
/// Files that wait in memory; more are looked for in the store when these are done.
const BOUND: usize = 1 << 16;

/// Files that wait.
pub struct Waiting {
    files: VecDeque<Fid>,
    /// The store may have others.
    more: bool,
    /// The last attempt failed; the next one is made in its own time.
    failed: bool,
}

impl Waiting {
    /// As after a start: only the store knows.
    pub const fn unknown() -> Waiting {
        Waiting { files: VecDeque::new(), more: true, failed: false }
    }

    /// One more file; its record is being written.
    pub fn add(&mut self, fid: Fid) {
        if self.files.len() < BOUND {
            self.files.push_back(fid);
        } else {
            self.more = true;
        }
    }

    /// Whether an attempt is worth while at once.
    pub fn is_fresh(&self) -> bool {
        !self.failed && (self.more || !self.files.is_empty())
    }

    fn take(&mut self) -> Vec<Fid> {
        self.failed = false;
        let count = self.files.len().min(STEP);
        self.files.drain(..count).collect()
    }

    fn put_back(&mut self, files: Vec<Fid>) {
        self.failed = true;
        self.files.extend(files);
    }
}

/// Destroys what waits.
///
/// # Errors
/// Those of the OSTs and of the store; what is left is tried again.
pub fn destroy(mds: &Mds) -> Result<()> {
    let with_waiting = |act: &mut dyn FnMut(&mut Waiting)| {
        mds.committer.with_planner(|planner| act(&mut planner.garbage));
    };
    while !mds.is_stopping() {
        let (mut files, mut more) = (Vec::new(), false);
        with_waiting(&mut |waiting| {
            files = waiting.take();
            more = files.is_empty() && std::mem::take(&mut waiting.more);
        });
        if more {
            let found =
                look(mds).inspect_err(|_| with_waiting(&mut |waiting| waiting.more = true))?;
            with_waiting(&mut |waiting| {
                waiting.more |= found.len() == BOUND;
                waiting.files.extend(&found);
            });
            continue;
        }
        if files.is_empty() {
            break;
        }
        if let Err(error) = destroy_files(mds, &files) {
            with_waiting(&mut |waiting| waiting.put_back(std::mem::take(&mut files)));
            return Err(error);
        }
    }
    Ok(())
}

/// Files with a record in the store, not all if there are many.
fn look(mds: &Mds) -> Result<Vec<Fid>> {
    let prefix = [keys::kind::GARBAGE];
    let end = weft_store::kv::prefix_end(&prefix);
    let mut found = Vec::new();
    mds.committer.committed.kv.scan(&prefix, &end, &mut |key, _| {
        found.extend(keys::number(key).map(Fid));
        if found.len() < BOUND { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(found)
}

fn destroy_files(mds: &Mds, files: &[Fid]) -> Result<()> {
    // As a transaction, which waits until what it has seen is in the store. Without a record, either
    // removing the file has failed, or its objects are gone already.
    let records: Vec<Option<Vec<u8>>> = mds.committer.transact(mds.env.now(), |txn| {
        files.iter().map(|&fid| txn.raw(&keys::garbage(fid))).collect()
    })?;
    let mut gone = Vec::with_capacity(files.len());
    for (&fid, record) in files.iter().zip(records) {
        let Some(record) = record else { continue };
        let key = keys::garbage(fid);
        if let Some(layout) = record::decode::<Garbage>(&key, &record)?.layout {
            mds.objects.destroy(fid, &Layout::try_from(layout)?)?;
        }
        gone.push(key);
    }
    mds.committer.transact(mds.env.now(), |txn| {
        gone.into_iter().for_each(|key| txn.put_raw(key, None));
        Ok(())
    })
}
