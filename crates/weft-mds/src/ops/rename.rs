//! `Rename`: moves or exchanges names, in one transaction.

use crate::namespace::{self, NewInode};
use crate::record::{Dirent, Inode};
use crate::txn::Txn;
use crate::view;
use std::sync::Arc;
use weft_model::{Credentials, ErrorKind, Fid, FileType, Result, cred, name};
use weft_rpc::pb::{Empty, mds::Rename};

/// Fail when the new name exists.
pub const NOREPLACE: u32 = 1;
/// Both names exist and change places.
pub const EXCHANGE: u32 = 2;
/// A character device 0/0 is left at the old name: what an overlay takes for "removed".
pub const WHITEOUT: u32 = 4;

/// A name and what it stands for.
struct Side {
    dir: Fid,
    name: Vec<u8>,
    fid: Fid,
    inode: Arc<Inode>,
}

/// Plans it.
///
/// # Errors
/// Those of rename(2): `NotFound`, `NotDir`, `IsDir`, `NotEmpty`, `Exists`, `Access`, `Perm`,
/// `Invalid` when a directory would move below itself or for unknown flags.
pub fn plan(txn: &mut Txn<'_>, request: &Rename) -> Result<Empty> {
    name::check(&request.name)?;
    name::check(&request.new_name)?;
    let unknown = request.flags & !(NOREPLACE | EXCHANGE | WHITEOUT) != 0;
    if unknown || request.flags & EXCHANGE != 0 && request.flags != EXCHANGE {
        return Err(ErrorKind::Invalid.into());
    }
    let cred = view::credentials(&request.cred)?;
    let from = find(txn, &cred, Fid(request.parent), &request.name)?;
    let from = from.ok_or(ErrorKind::NotFound)?;
    let to = find(txn, &cred, Fid(request.new_parent), &request.new_name)?;
    for dir in [request.parent, request.new_parent] {
        view::changeable(txn, &cred, Fid(dir))?;
    }
    let new_dir = Fid(request.new_parent);
    may_leave(txn, &cred, &from, new_dir)?;
    match to {
        None if request.flags & EXCHANGE != 0 => return Err(ErrorKind::NotFound.into()),
        None => {}
        Some(_) if request.flags & NOREPLACE != 0 => return Err(ErrorKind::Exists.into()),
        // Two names of one file: nothing happens (POSIX).
        Some(to) if to.fid == from.fid => return Ok(Empty {}),
        Some(to) if request.flags & EXCHANGE != 0 => {
            may_leave(txn, &cred, &to, from.dir)?;
            return exchange(txn, &from, &to);
        }
        Some(to) => replace(txn, &cred, &from, &to)?,
    }
    relocate(txn, &from, new_dir, &request.new_name)?;
    if request.flags & WHITEOUT != 0 {
        leave_whiteout(txn, &cred, &from)?;
    }
    Ok(Empty {})
}

/// Gives the name that was moved away to a whiteout.
fn leave_whiteout(txn: &mut Txn<'_>, cred: &Credentials, from: &Side) -> Result<()> {
    let kind = FileType::CharDevice;
    let parent = txn.inode(from.dir)?;
    let new = NewInode { parent: from.dir, mode: kind.mode_bits(), umask: 0, cred };
    let (fid, mut inode) = namespace::make(txn, &parent, &new)?;
    inode.name = from.name.clone();
    namespace::attach(txn, from.dir, &parent, &from.name, fid, kind);
    txn.put_inode(fid, inode);
    Ok(())
}

fn find(txn: &mut Txn<'_>, cred: &Credentials, dir: Fid, name: &[u8]) -> Result<Option<Side>> {
    view::searchable(txn, cred, dir)?;
    let Some(dirent) = txn.find_dirent(dir, name)? else { return Ok(None) };
    let fid = Fid(dirent.fid);
    let inode = txn.inode(fid)?;
    Ok(Some(Side { dir, name: name.to_vec(), fid, inode }))
}

/// Whether the inode may lose its name in favour of one in `new_dir`.
fn may_leave(txn: &mut Txn<'_>, cred: &Credentials, side: &Side, new_dir: Fid) -> Result<()> {
    let dir = txn.dir(side.dir)?;
    cred::check_sticky(cred, &dir.attr(side.dir), &side.inode.attr(side.fid))?;
    if side.inode.is_dir() {
        if namespace::is_below(txn, new_dir, side.fid)? {
            return Err(ErrorKind::Invalid.into());
        }
        // Its `..` changes, and that is a write to it.
        if new_dir != side.dir {
            view::check(txn, cred, side.fid, &side.inode, cred::WRITE)?;
        }
    }
    Ok(())
}

/// Removes what the new name stands for.
fn replace(txn: &mut Txn<'_>, cred: &Credentials, from: &Side, to: &Side) -> Result<()> {
    match (from.inode.is_dir(), to.inode.is_dir()) {
        (true, false) => return Err(ErrorKind::NotDir.into()),
        (false, true) => return Err(ErrorKind::IsDir.into()),
        (true, true) if to.inode.entries > 0 => return Err(ErrorKind::NotEmpty.into()),
        _ => {}
    }
    let dir = txn.dir(to.dir)?;
    cred::check_sticky(cred, &dir.attr(to.dir), &to.inode.attr(to.fid))?;
    namespace::detach(txn, to.dir, &dir, &to.name, to.inode.kind());
    // Somebody may have found it under its name just now and be about to open it. He must not be told
    // that there is no such file, since there always was one.
    txn.planner.lingering.push(to.fid);
    namespace::drop_name(txn, to.fid, &to.inode, to.dir, &to.name)
}

fn relocate(txn: &mut Txn<'_>, from: &Side, new_dir: Fid, new_name: &[u8]) -> Result<()> {
    let kind = from.inode.kind();
    let old_parent = txn.inode(from.dir)?;
    namespace::detach(txn, from.dir, &old_parent, &from.name, kind);
    let new_parent = txn.inode(new_dir)?;
    namespace::attach(txn, new_dir, &new_parent, new_name, from.fid, kind);
    let mut inode = txn.inode(from.fid)?.as_ref().clone();
    (inode.parent, inode.name) = (new_dir.0, new_name.to_vec());
    inode.touch_ctime(txn.now);
    txn.put_inode(from.fid, inode);
    Ok(())
}

fn exchange(txn: &mut Txn<'_>, from: &Side, to: &Side) -> Result<Empty> {
    for (side, other) in [(from, to), (to, from)] {
        let kind = side.inode.kind();
        txn.put_dirent(other.dir, &other.name, Dirent { fid: side.fid.0, kind: kind as u32 });
        let mut inode = txn.inode(side.fid)?.as_ref().clone();
        (inode.parent, inode.name) = (other.dir.0, other.name.clone());
        inode.touch_ctime(txn.now);
        txn.put_inode(side.fid, inode);
        let mut dir = txn.inode(other.dir)?.as_ref().clone();
        let is_dir = |inode: &Inode| inode.kind() == FileType::Directory;
        dir.nlink = dir.nlink + is_dir(&side.inode) as u32 - is_dir(&other.inode) as u32;
        dir.touch_entries(txn.now);
        txn.put_inode(other.dir, dir);
    }
    Ok(Empty {})
}
