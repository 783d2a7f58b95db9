//! `UpdateWritten`, and how what a client wrote becomes size and times of the inode.

use crate::record::Inode;
use crate::txn::Txn;
use crate::{Mds, inline};
use weft_model::{ErrorKind, Fid, FsError, Result, Timespec, cred};
use weft_rpc::CallInfo;
use weft_rpc::pb::{self, Empty, mds::UpdateWritten, mds::Written};

/// Plans it. For an inode that is gone there is nothing to report.
///
/// # Errors
/// Those of the store.
pub fn plan(
    txn: &mut Txn<'_>,
    mds: &Mds,
    info: &CallInfo,
    request: &UpdateWritten,
    observed: Option<Observed>,
) -> Result<Empty> {
    let fid = Fid(request.fid);
    if let Some(inode) = txn.find_inode(fid)? {
        let mut changed = inode.as_ref().clone();
        if apply(txn, mds, info, (fid, &mut changed), &request.written, observed)? {
            txn.put_inode(fid, changed);
        }
    }
    Ok(Empty {})
}

/// The size that the objects prove.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Observed {
    /// The size.
    pub size: u64,
    /// Count of truncations before the look. One that has ended since makes it void: it may have been
    /// going on during the look.
    pub size_epoch: u64,
}

/// Applies a report; false when it says nothing new. `observed` is given where the client wrote
/// without knowing of the last truncation.
///
/// # Errors
/// `NotReady` when a truncation has ended since the look at the objects: the request has to come again.
/// Those of [`inline::take`].
pub fn apply(
    txn: &mut Txn<'_>,
    mds: &Mds,
    info: &CallInfo,
    (fid, inode): (Fid, &mut Inode),
    written: &Option<Written>,
    observed: Option<Observed>,
) -> Result<bool> {
    let Some(written) = written else { return Ok(false) };
    let mut dirty = !written.data.is_empty();
    if dirty {
        inline::take(txn, mds, info.client, (fid, inode), written)?;
    }
    if written.mtime.is_some() || written.end > 0 {
        let size = inode.size.max(proven_end(inode, written, observed)?);
        dirty |= size != inode.size;
        inode.size = size;
        if !written.inline {
            dirty |= !inode.touched;
            inode.touched = true;
            // A power cut has taken back that they were moved out.
            if inode.inline && mds.committer.grants.is_delegated_to(fid, info.client) {
                inline::leave(txn, fid, inode);
            }
        }
    }
    if let Some(mtime) = written.mtime {
        dirty = true;
        inode.touch_written(mtime.into());
    }
    if let Some(blocks) = written.blocks.filter(|&blocks| blocks != inode.blocks) {
        dirty = true;
        inode.blocks = blocks;
    }
    if written.kill_suidgid {
        let reduced = cred::drop_suidgid(&inode.attr(Fid(0)));
        dirty |= reduced != inode.mode & 0o7777;
        inode.mode = inode.mode & !0o7777 | reduced;
    }
    Ok(dirty | apply_atime(inode, written.atime, txn.now))
}

/// Whether a report tells of something that must not be lost.
pub fn is_news(written: &Written) -> bool {
    written.mtime.is_some() || written.end > 0 || !written.data.is_empty()
}

/// Whether a report tells of nothing but reads.
pub fn is_access_only(written: &Option<Written>) -> bool {
    written.as_ref().is_none_or(|w| {
        w.mtime.is_none()
            && w.end == 0
            && w.blocks.is_none()
            && !w.kill_suidgid
            && w.data.is_empty()
    })
}

/// What a report proves of the size.
fn proven_end(inode: &Inode, written: &Written, observed: Option<Observed>) -> Result<u64> {
    if inode.inline {
        return Ok(inode.size);
    }
    if written.size_epoch == inode.size_epoch || written.end == 0 {
        return Ok(written.end);
    }
    match observed {
        Some(observed) if observed.size_epoch == inode.size_epoch => Ok(observed.size),
        _ => Err(FsError::new(ErrorKind::NotReady, "report writes")
            .because("the file was truncated meanwhile")),
    }
}

/// Takes over an access time by the rules of `relatime`: only if the file was changed since the last
/// one, or that is a day old.
pub fn apply_atime(inode: &mut Inode, atime: Option<pb::Time>, now: Timespec) -> bool {
    /// As in the kernel's `relatime_need_update`.
    const DAY_SECS: i64 = 24 * 60 * 60;
    let Some(atime) = atime.map(Timespec::from) else { return false };
    let known = inode.atime();
    let due = known <= inode.mtime() || known <= inode.ctime() || known.secs + DAY_SECS <= now.secs;
    if atime <= known || !due {
        return false;
    }
    inode.set_atime(atime);
    true
}

/// Asks the OSTs for the size when a report rests on an older truncation count than the inode's.
///
/// # Errors
/// When an OST does not answer.
pub fn observe(mds: &Mds, fid: Fid, written: &Option<Written>) -> Result<Option<Observed>> {
    let Some(written) = written.as_ref().filter(|written| written.end > 0) else {
        return Ok(None);
    };
    match mds.committer.committed.inode(fid)? {
        Some(inode) if inode.size_epoch != written.size_epoch && !inode.inline => {
            let size = mds.objects.size(fid, &inode)?;
            Ok(Some(Observed { size, size_epoch: inode.size_epoch }))
        }
        _ => Ok(None),
    }
}
