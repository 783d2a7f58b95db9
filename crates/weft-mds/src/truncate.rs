//! Changing a file's size: the one metadata operation that also changes objects.
//!
//! Growing is a change of the inode only: what no object holds reads as zeros. Cutting takes three
//! steps, and a crash between any two leaves something that is finished later:
//!
//! 1. one transaction: permission, the client's unreported writes, and the intent `T fid -> size`; it is
//!    made durable, so that no power cut takes it back and leaves the old size with objects that were cut;
//! 2. the objects are cut, each to what a file of that size has in it;
//! 3. one transaction: size, times, truncation count, answer; the intent goes.
//!
//! Until step 3 the request is unanswered and the old size stands. With an intent in the store the
//! steps 2 and 3 are done again after a restart; cutting twice is the same as once. Nobody's later
//! write is lost by that: the unanswered truncation may take effect at any time until it is answered.

use crate::Mds;
use crate::ops::{setattr, written};
use crate::record::{self, Inode, Truncation};
use crate::txn::Txn;
use crate::{inline, keys, namespace, view};
use parking_lot::Mutex;
use prost::Message as _;
use std::collections::HashSet;
use std::time::Duration;
use weft_model::cred::WRITE;
use weft_model::{ClientId, Env, ErrorKind, Fid, FileType, FsError, Layout, Result};
use weft_rpc::CallInfo;
use weft_rpc::pb::mds::{Entry, SetAttr};

/// Longest wait for another change of the same file's size.
const PATIENCE: Duration = Duration::from_secs(15);

/// Between two looks whether it has ended.
const POLL: Duration = Duration::from_millis(1);

/// Files whose size is being changed.
#[derive(Default)]
pub struct Busy(Mutex<HashSet<Fid>>);

/// Inside until it is dropped.
pub struct Entered<'a>(&'a Busy, Fid);

impl Busy {
    /// Polls, since whoever is in waits for OSTs anyhow.
    ///
    /// # Errors
    /// `NotReady` after a long while.
    pub fn enter(&self, env: &dyn Env, fid: Fid) -> Result<Entered<'_>> {
        let deadline = env.monotonic() + PATIENCE;
        while !self.0.lock().insert(fid) {
            if env.monotonic() >= deadline {
                return Err(FsError::new(ErrorKind::NotReady, "truncate")
                    .on(format_args!("fid={fid}"))
                    .because("another truncation of the file waits for an OST"));
            }
            env.sleep(POLL);
        }
        Ok(Entered(self, fid))
    }

    /// Enters if nobody is in.
    fn try_enter(&self, fid: Fid) -> Option<Entered<'_>> {
        let free = self.0.lock().insert(fid);
        // Only then: what is made here takes the file out again when it is dropped.
        free.then(|| Entered(self, fid))
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.0.0.lock().remove(&self.1);
    }
}

/// What the first transaction found.
enum Step {
    /// Nothing of any object lies beyond the new size: done.
    Done(Box<Entry>),
    /// Objects have to be cut.
    Cut(Layout),
}

/// Carries out a `SetAttr` with a size.
///
/// # Errors
/// `Access`, `IsDir`, `Invalid`, `FileTooBig`, `Stale`; `NotReady` or `TimedOut` when an OST does not
/// answer: the request can be sent again, and is finished by itself if it is not.
pub fn run(mds: &Mds, info: &CallInfo, request: &SetAttr) -> Result<Entry> {
    let fid = Fid(request.fid);
    let size = request.size.unwrap_or(0);
    let _busy = mds.truncating.enter(&*mds.env, fid)?;
    // One that was begun and not answered has to take effect before this one, or not at all: some of
    // the objects may be cut already.
    if mds.unfinished.lock().truncations.contains(&fid) {
        complete(mds, fid)?;
    }
    let observed = written::observe(mds, fid, &request.written)?;
    let step = mds.committer.transact(info.client, mds.env.now(), |txn| {
        begin(txn, mds, info, request, size, observed)
    })?;
    let layout = match step {
        Step::Done(entry) => return Ok(*entry),
        Step::Cut(layout) => layout,
    };
    let cut = mds.committer.sync().and_then(|()| mds.objects.truncate(fid, &layout, size));
    let cut = cut.and_then(|()| {
        mds.committer.transact(info.client, mds.env.now(), |txn| finish(txn, info, request, size))
    });
    if cut.is_err() {
        mds.unfinished.lock().truncations.insert(fid);
    }
    cut
}

fn begin(
    txn: &mut Txn<'_>,
    mds: &Mds,
    info: &CallInfo,
    request: &SetAttr,
    size: u64,
    observed: Option<written::Observed>,
) -> Result<Step> {
    let fid = Fid(request.fid);
    let mut inode = txn.inode(fid)?.as_ref().clone();
    match inode.kind() {
        FileType::Regular => {}
        FileType::Directory => return Err(ErrorKind::IsDir.into()),
        _ => return Err(ErrorKind::Invalid.into()),
    }
    may_resize(txn, info, request, &inode)?;
    let layout: Layout = inode.layout.clone().unwrap_or_default().try_into()?;
    if size > layout.max_size() {
        return Err(ErrorKind::FileTooBig.into());
    }
    written::apply(txn, mds, info, (fid, &mut inode), &request.written, observed)?;
    if inode.inline {
        inline::cut(txn, fid, &mut inode, size)?;
        inode.size_epoch += u64::from(size < inode.size);
        return resize(txn, info, request, inode, size).map(Box::new).map(Step::Done);
    }
    let known = !inode.written_by_others(info.client.0);
    let untouched = !inode.touched && inode.writers.iter().all(|&w| w == info.client.0);
    if untouched || known && size >= inode.size {
        return resize(txn, info, request, inode, size).map(Box::new).map(Step::Done);
    }
    let intent = Truncation { size };
    txn.put_raw(keys::truncation(fid), Some(intent.encode_to_vec()));
    txn.put_inode(fid, inode);
    Ok(Step::Cut(layout))
}

/// Permission: a handle open for writing, or the mode.
fn may_resize(txn: &mut Txn<'_>, info: &CallInfo, request: &SetAttr, inode: &Inode) -> Result<()> {
    let fid = Fid(request.fid);
    let open = txn.planner.opens.get(info.client, request.handle);
    let by_handle = open.is_some_and(|open| {
        open.fid == fid
            && open.flags & (crate::opens::flags::WRITE | crate::opens::flags::TRUNCATE) != 0
    });
    if by_handle {
        return Ok(());
    }
    let cred = view::credentials(&request.cred)?;
    view::check(txn, &cred, fid, inode, WRITE)
}

fn finish(txn: &mut Txn<'_>, info: &CallInfo, request: &SetAttr, size: u64) -> Result<Entry> {
    let fid = Fid(request.fid);
    txn.put_raw(keys::truncation(fid), None);
    let mut inode = txn.inode(fid)?.as_ref().clone();
    inode.size_epoch += 1;
    resize(txn, info, request, inode, size)
}

fn resize(
    txn: &mut Txn<'_>,
    info: &CallInfo,
    request: &SetAttr,
    mut inode: Inode,
    size: u64,
) -> Result<Entry> {
    let fid = Fid(request.fid);
    if size < inode.size {
        inode.blocks = inode.blocks.min(size.div_ceil(512).next_multiple_of(8));
    }
    inode.size = size;
    inode.set_mtime(txn.now, txn.now);
    setattr::apply(txn, fid, &mut inode, request)?;
    let entry = namespace::entry(fid, &inode, info.client);
    txn.put_inode(fid, inode);
    Ok(entry)
}

/// Finishes what a crash or an OST that was down has left, unless somebody is at it.
///
/// # Errors
/// When an OST does not answer; the intent stays.
pub fn redo(mds: &Mds, fid: Fid) -> Result<()> {
    // A truncation under way finishes by itself, or leaves its intent for the next time.
    let Some(_busy) = mds.truncating.try_enter(fid) else { return Ok(()) };
    complete(mds, fid)
}

/// Cuts the objects and sets the size as the intent in the store says. Whoever calls is the only one at
/// it. Without an intent it has been answered: cutting again would take what was written after it.
fn complete(mds: &Mds, fid: Fid) -> Result<()> {
    let committed = &mds.committer.committed;
    let key = keys::truncation(fid);
    let Some(value) = committed.kv.get(&key)? else {
        mds.unfinished.lock().truncations.remove(&fid);
        return Ok(());
    };
    let intent: Truncation = record::decode(&key, &value)?;
    if let Some(inode) = committed.inode(fid)? {
        let layout: Layout = inode.layout.clone().unwrap_or_default().try_into()?;
        mds.committer.sync()?;
        mds.objects.truncate(fid, &layout, intent.size)?;
    }
    mds.committer.transact(ClientId::NONE, mds.env.now(), |txn| {
        txn.put_raw(keys::truncation(fid), None);
        if let Some(inode) = txn.find_inode(fid)? {
            let mut inode = inode.as_ref().clone();
            inode.size_epoch += 1;
            inode.size = intent.size;
            inode.touch_entries(txn.now);
            txn.put_inode(fid, inode);
        }
        Ok(())
    })?;
    mds.unfinished.lock().truncations.remove(&fid);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_entered_once() {
        let busy = Busy::default();
        let fid = Fid::ROOT;
        let inside = busy.try_enter(fid).unwrap();
        assert!(busy.try_enter(fid).is_none());
        assert!(busy.try_enter(fid).is_none());
        drop(inside);
        assert!(busy.try_enter(fid).is_some());
    }
}
