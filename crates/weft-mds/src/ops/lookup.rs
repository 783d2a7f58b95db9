//! `Lookup`: from a directory and a name to an inode.

use crate::{Mds, view};
use weft_model::{ErrorKind, Fid, Result};
use weft_rpc::CallInfo;
use weft_rpc::pb::mds::{Entry, Lookup, LookupReply};

/// Times that a name may be given to another inode while it is looked up.
const MAX_RACES: usize = 100;

/// Answers a lookup, be it that there is no such name. `.` and `..` are names here.
///
/// # Errors
/// `NotFound` for a directory that is gone, `NotDir`, `Access`.
pub fn run(mds: &Mds, info: &CallInfo, request: &Lookup) -> Result<LookupReply> {
    let mut committed = &mds.committer.committed;
    let cred = view::credentials(&request.cred)?;
    let dir = Fid(request.parent);
    let name_grant_ms = mds.committer.grants.grant(dir, info.client);
    let parent = view::searchable(&mut committed, &cred, dir)?;
    let name = request.name.as_slice();
    if name.len() > weft_model::name::NAME_MAX {
        return Err(ErrorKind::NameTooLong.into());
    }
    // Entry and inode are read one after the other. When the inode is gone, so is the entry by now, or
    // it stands for another one.
    for _ in 0..MAX_RACES {
        let fid = match name {
            b"." => dir,
            b".." => Fid(parent.parent),
            name => match committed.dirent(dir, name)? {
                Some(dirent) => Fid(dirent.fid),
                None => return Ok(LookupReply { entry: None, absence_grant_ms: name_grant_ms }),
            },
        };
        if let Some((_, entry)) = mds.read_granted(fid, info.client)? {
            let entry = Some(Entry { name_grant_ms, ..entry });
            return Ok(LookupReply { entry, absence_grant_ms: 0 });
        }
    }
    Err(ErrorKind::NotFound.into())
}
