//! `Readdir`: the next entries of a directory, in the order of their positions.

use crate::ops::written;
use crate::record::{self, Dirent};
use crate::{Mds, keys, view};
use std::ops::ControlFlow;
use weft_model::{Fid, Result, cred};
use weft_rpc::CallInfo;
use weft_rpc::pb::mds::{self, Readdir, ReaddirReply};

/// Most bytes of entries in one answer, whatever the asker wants.
const MAX_BYTES: usize = 1 << 20;
/// What an entry takes beside its name, roughly.
const ENTRY_BYTES: usize = 40;
/// What its attributes take.
const ATTR_BYTES: usize = 130;

/// Answers with entries behind `request.position`. Those with the same position stay together, so a
/// position always tells exactly where to go on.
///
/// # Errors
/// `Access`, `NotDir`, `NotFound`.
pub fn run(mds: &Mds, info: &CallInfo, request: &Readdir) -> Result<ReaddirReply> {
    let mut committed = &mds.committer.committed;
    let dir = Fid(request.dir);
    let names = mds.committer.grants.grant(dir, info.client);
    let inode = view::inode(&mut committed, dir)?;
    // An open directory stays readable whatever happens to its mode; the handle is the permission.
    if let Some(cred) = &request.cred {
        view::check(&mut committed, &cred.clone().into(), dir, &inode, cred::READ)?;
    }
    if request.position == 0 {
        note_access(mds, info, dir, &inode)?;
    }
    let from = request.position.saturating_add(1).max(weft_model::name::FIRST_POSITION);
    let limit = (request.max_bytes as usize).min(MAX_BYTES);
    let (mut entries, end) = scan(mds, dir, from, limit, request.with_attr)?;
    if request.with_attr {
        for entry in &mut entries {
            let found = mds.read_granted(Fid(entry.fid), info.client)?;
            entry.entry = found.map(|(_, entry)| mds::Entry { name_grant_ms: names, ..entry });
        }
    }
    Ok(ReaddirReply { entries, end, parent: inode.parent })
}

fn scan(
    mds: &Mds,
    dir: Fid,
    from: u64,
    limit: usize,
    with_attr: bool,
) -> Result<(Vec<mds::Dirent>, bool)> {
    let mut entries: Vec<mds::Dirent> = Vec::new();
    let (mut bytes, mut end, mut bad) = (0, true, None);
    let first = keys::dirents_from(dir, from);
    let last = weft_store::kv::prefix_end(&first[..9]);
    mds.committer.committed.kv.scan(&first, &last, &mut |key, value| {
        let Some((position, name)) = keys::split_dirent(key) else {
            return ControlFlow::Break(());
        };
        let together = entries.last().is_some_and(|last| last.position == position);
        if bytes >= limit && !together {
            end = false;
            return ControlFlow::Break(());
        }
        match record::decode::<Dirent>(key, value) {
            Ok(dirent) => entries.push(mds::Dirent {
                name: name.to_vec(),
                fid: dirent.fid,
                kind: dirent.kind,
                position,
                entry: None,
            }),
            Err(error) => {
                bad = Some(error);
                return ControlFlow::Break(());
            }
        }
        bytes += ENTRY_BYTES + name.len() + if with_attr { ATTR_BYTES } else { 0 };
        ControlFlow::Continue(())
    })?;
    match bad {
        Some(error) => Err(error),
        None => Ok((entries, end)),
    }
}

/// The access time of the directory, by relatime. Not worth failing the reading for.
fn note_access(mds: &Mds, info: &CallInfo, dir: Fid, inode: &record::Inode) -> Result<()> {
    let now = mds.env.now();
    let mut probe = inode.clone();
    if !written::apply_atime(&mut probe, Some(now.into()), now) {
        return Ok(());
    }
    let noted = mds.committer.transact(info.client, now, |txn| {
        if let Some(inode) = txn.find_inode(dir)? {
            let mut changed = inode.as_ref().clone();
            if written::apply_atime(&mut changed, Some(now.into()), now) {
                txn.put_accessed(dir, changed);
            }
        }
        Ok(())
    });
    if let Err(error) = noted {
        tracing::debug!(%error, %dir, "access time not updated");
    }
    Ok(())
}
