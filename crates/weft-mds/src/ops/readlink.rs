//! `Readlink`: the target of a symbolic link.

use crate::{Mds, view};
use weft_model::{ErrorKind, Fid, FileType, Result};
use weft_rpc::pb::mds::{Readlink, ReadlinkReply};

/// Answers with the target.
///
/// # Errors
/// `Invalid` when it is no symbolic link, `Stale`.
pub fn run(mds: &Mds, request: &Readlink) -> Result<ReadlinkReply> {
    let inode = view::inode(&mut &mds.committer.committed, Fid(request.fid))?;
    if inode.kind() != FileType::Symlink {
        return Err(ErrorKind::Invalid.into());
    }
    Ok(ReadlinkReply { target: inode.symlink.clone() })
}
