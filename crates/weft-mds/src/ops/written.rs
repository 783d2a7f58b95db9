//! `UpdateWritten`, and how what a client wrote becomes size and times of the inode.

use crate::Mds;
use crate::record::Inode;
use crate::txn::Txn;
use weft_model::{Fid, Result, Timespec, cred};
use weft_rpc::pb::{self, Empty, mds::UpdateWritten, mds::Written};

/// Plans it. For an inode that is gone there is nothing to report.
///
/// # Errors
/// Those of the store.
pub fn plan(txn: &mut Txn<'_>, request: &UpdateWritten, observed: Option<u64>) -> Result<Empty> {
    let fid = Fid(request.fid);
    if let Some(inode) = txn.find_inode(fid)? {
        let mut changed = inode.as_ref().clone();
        if apply(&mut changed, &request.written, observed, txn.now) {
            txn.put_inode(fid, changed);
        }
    }
    Ok(Empty {})
}

/// Applies a report; false when it says nothing new. `observed` is the size that the objects prove,
/// given where the client wrote without knowing of the last truncation.
pub fn apply(
    inode: &mut Inode,
    written: &Option<Written>,
    observed: Option<u64>,
    now: Timespec,
) -> bool {
    let Some(written) = written else { return false };
    let mut dirty = false;
    if let Some(mtime) = written.mtime {
        dirty = true;
        inode.touched = true;
        if written.size_epoch == inode.size_epoch {
            inode.size = inode.size.max(written.end);
        } else if let Some(observed) = observed {
            inode.size = inode.size.max(observed);
        }
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
    dirty | apply_atime(inode, written.atime, now)
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
pub fn observe(mds: &Mds, fid: Fid, written: &Option<Written>) -> Result<Option<u64>> {
    let Some(written) = written.as_ref().filter(|written| written.end > 0) else {
        return Ok(None);
    };
    match mds.committer.committed.inode(fid)? {
        Some(inode) if inode.size_epoch != written.size_epoch => {
            mds.objects.size(fid, &inode).map(Some)
        }
        _ => Ok(None),
    }
}
