//! `FidToPath`: one path of an inode.

use crate::record::{self, Dirent};
use crate::{Mds, keys, view};
use std::ops::ControlFlow;
use weft_model::{ErrorKind, Fid, Result};
use weft_rpc::pb::mds::{FidToPath, FidToPathReply};

/// Answers with the path from the root. Where the inode does not know its name (one of several was
/// removed), all entries are searched: slow, but right.
///
/// # Errors
/// `Stale`, `NotFound` for an inode without a name.
pub fn run(mds: &Mds, request: &FidToPath) -> Result<FidToPathReply> {
    let mut committed = &mds.committer.committed;
    let mut fid = Fid(request.fid);
    let mut names: Vec<Vec<u8>> = Vec::new();
    while fid != Fid::ROOT {
        let inode = view::inode(&mut committed, fid)?;
        let known = committed.dirent(Fid(inode.parent), &inode.name)?;
        let (parent, name) = match known {
            Some(dirent) if dirent.fid == fid.0 => (Fid(inode.parent), inode.name.clone()),
            _ => search(mds, fid)?,
        };
        names.push(name);
        fid = parent;
    }
    names.reverse();
    Ok(FidToPathReply { path: names.join(&b'/') })
}

fn search(mds: &Mds, fid: Fid) -> Result<(Fid, Vec<u8>)> {
    let prefix = [keys::kind::DIRENT];
    let end = weft_store::kv::prefix_end(&prefix);
    let mut found = None;
    mds.committer.committed.kv.scan(&prefix, &end, &mut |key, value| {
        let matches = record::decode::<Dirent>(key, value).is_ok_and(|d| d.fid == fid.0);
        match (matches, keys::number(key), keys::split_dirent(key)) {
            (true, Some(dir), Some((_, name))) => {
                found = Some((Fid(dir), name.to_vec()));
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }
    })?;
    found.ok_or_else(|| ErrorKind::NotFound.into())
}
