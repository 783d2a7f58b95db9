//! Extended attributes: `GetXattr`, `SetXattr`, `ListXattr`, `RemoveXattr`, and the access lists among
//! them.

use crate::record::Inode;
use crate::txn::Txn;
use crate::view::View;
use crate::{Mds, keys, view};
use std::ops::ControlFlow;
use weft_model::acl::{ACCESS_XATTR, Acl, DEFAULT_XATTR};
use weft_model::attr::mode;
use weft_model::cred::{self, READ, WRITE};
use weft_model::{Credentials, ErrorKind, Fid, FileType, Result};
use weft_rpc::pb::{Empty, mds};

/// Longest value, as in Linux.
const VALUE_MAX: usize = 65_536;
/// Longest name, as in Linux.
const NAME_MAX: usize = 255;
/// Most attributes of one inode; together with [`VALUE_MAX`] a bound on what an inode can hold.
const COUNT_MAX: u32 = 1000;
const CREATE: u32 = 1;
const REPLACE: u32 = 2;

/// Answers with a value.
///
/// # Errors
/// `NoData`, `Access`, `Stale`.
pub fn get(mds: &Mds, request: &mds::GetXattr) -> Result<mds::GetXattrReply> {
    let mut committed = &mds.committer.committed;
    let fid = Fid(request.fid);
    let inode = view::inode(&mut committed, fid)?;
    if inode.xattrs == 0 {
        return Err(ErrorKind::NoData.into());
    }
    let cred = view::credentials(&request.cred)?;
    may_access(&mut committed, &cred, fid, &inode, &request.name, READ)?;
    let value = committed.raw(&keys::xattr(fid, &request.name))?.ok_or(ErrorKind::NoData)?;
    Ok(mds::GetXattrReply { value })
}

/// Answers with all names that the caller may see.
///
/// # Errors
/// `Stale`.
pub fn list(mds: &Mds, request: &mds::ListXattr) -> Result<mds::ListXattrReply> {
    let mut committed = &mds.committer.committed;
    let fid = Fid(request.fid);
    let inode = view::inode(&mut committed, fid)?;
    let mut names = Vec::new();
    if inode.xattrs > 0 {
        let cred = view::credentials(&request.cred)?;
        let prefix = keys::xattr(fid, b"");
        let end = weft_store::kv::prefix_end(&prefix);
        committed.kv.scan(&prefix, &end, &mut |key, _| {
            let name = &key[prefix.len()..];
            if !name.starts_with(b"trusted.") || cred.is_root() {
                names.push(name.to_vec());
            }
            ControlFlow::Continue(())
        })?;
    }
    Ok(mds::ListXattrReply { names })
}

/// Plans setting a value.
///
/// # Errors
/// `Exists` and `NoData` by the flags, `Range` for a name and `TooBig` for a value that is too long,
/// `Access`, `Perm`, `NotSupported` for unknown name spaces, `Invalid` for a malformed list.
pub fn set(txn: &mut Txn<'_>, request: &mds::SetXattr) -> Result<Empty> {
    if request.name.is_empty() || request.name.len() > NAME_MAX {
        return Err(ErrorKind::Range.into());
    }
    if request.value.len() > VALUE_MAX {
        return Err(ErrorKind::TooBig.into());
    }
    let cred = view::credentials(&request.cred)?;
    let fid = Fid(request.fid);
    let mut inode = txn.inode(fid)?.as_ref().clone();
    may_access(txn, &cred, fid, &inode, &request.name, WRITE)?;
    let key = keys::xattr(fid, &request.name);
    let exists = txn.raw(&key)?.is_some();
    match request.flags {
        flags if flags & CREATE != 0 && exists => return Err(ErrorKind::Exists.into()),
        flags if flags & REPLACE != 0 && !exists => return Err(ErrorKind::NoData.into()),
        _ => {}
    }
    let keep = match request.name.as_slice() {
        ACCESS_XATTR => set_access_list(&mut inode, &cred, request)?,
        DEFAULT_XATTR => set_default_list(&mut inode, request)?,
        _ => Some(request.value.clone()),
    };
    count(&mut inode, exists, keep.is_some())?;
    inode.touch_ctime(txn.now);
    if exists || keep.is_some() {
        txn.put_raw(key, keep);
    }
    txn.put_inode(fid, inode);
    Ok(Empty {})
}

/// Plans removing a value.
///
/// # Errors
/// `NoData`, `Access`, `Perm`.
pub fn remove(txn: &mut Txn<'_>, request: &mds::RemoveXattr) -> Result<Empty> {
    let cred = view::credentials(&request.cred)?;
    let fid = Fid(request.fid);
    let mut inode = txn.inode(fid)?.as_ref().clone();
    may_access(txn, &cred, fid, &inode, &request.name, WRITE)?;
    let key = keys::xattr(fid, &request.name);
    if txn.raw(&key)?.is_none() {
        // Taking away a list that the mode alone stood for is no error in Linux.
        let list = matches!(request.name.as_slice(), ACCESS_XATTR | DEFAULT_XATTR);
        return if list { Ok(Empty {}) } else { Err(ErrorKind::NoData.into()) };
    }
    match request.name.as_slice() {
        ACCESS_XATTR => inode.has_acl = false,
        DEFAULT_XATTR => inode.has_default_acl = false,
        _ => {}
    }
    count(&mut inode, true, false)?;
    inode.touch_ctime(txn.now);
    txn.put_raw(key, None);
    txn.put_inode(fid, inode);
    Ok(Empty {})
}

fn count(inode: &mut Inode, before: bool, after: bool) -> Result<()> {
    inode.xattrs = inode.xattrs + after as u32 - before as u32;
    if inode.xattrs > COUNT_MAX { Err(ErrorKind::NoSpace.into()) } else { Ok(()) }
}

/// An access list sets the mode; one that the mode says completely is not kept.
fn set_access_list(
    inode: &mut Inode,
    cred: &Credentials,
    request: &mds::SetXattr,
) -> Result<Option<Vec<u8>>> {
    let acl = Acl::decode(&request.value)?;
    inode.mode = inode.mode & !0o777 | acl.mode_bits();
    if request.kill_sgid || !cred.is_root() && !cred.in_group(inode.gid)? {
        inode.mode &= !mode::SETGID;
    }
    inode.has_acl = !acl.is_minimal();
    Ok(inode.has_acl.then(|| acl.encode()))
}

fn set_default_list(inode: &mut Inode, request: &mds::SetXattr) -> Result<Option<Vec<u8>>> {
    if !inode.is_dir() {
        return Err(ErrorKind::Access.into());
    }
    // A header without entries takes the list away.
    let acl = if request.value.len() <= 4 { None } else { Some(Acl::decode(&request.value)?) };
    inode.has_default_acl = acl.is_some();
    Ok(acl.map(|acl| acl.encode()))
}

/// The rules of xattr(7).
fn may_access(
    view: &mut impl View,
    cred: &Credentials,
    fid: Fid,
    inode: &Inode,
    name: &[u8],
    wanted: u8,
) -> Result<()> {
    let attr = inode.attr(fid);
    if matches!(name, ACCESS_XATTR | DEFAULT_XATTR) {
        if attr.kind == FileType::Symlink {
            return Err(ErrorKind::NotSupported.into());
        }
        return if wanted == WRITE { cred::check_owner(cred, &attr) } else { Ok(()) };
    }
    if name.starts_with(b"trusted.") {
        let hidden = if wanted == READ { ErrorKind::NoData } else { ErrorKind::Perm };
        return if cred.is_root() { Ok(()) } else { Err(hidden.into()) };
    }
    if name.starts_with(b"security.") {
        let allowed = wanted == READ || cred.is_root();
        return if allowed { Ok(()) } else { Err(ErrorKind::Perm.into()) };
    }
    if !name.starts_with(b"user.") {
        return Err(ErrorKind::NotSupported.into());
    }
    if !matches!(attr.kind, FileType::Regular | FileType::Directory) {
        let refused = if wanted == READ { ErrorKind::NoData } else { ErrorKind::Perm };
        return Err(refused.into());
    }
    if attr.kind == FileType::Directory && attr.mode & mode::STICKY != 0 && wanted == WRITE {
        cred::check_owner(cred, &attr)?;
    }
    view::check(view, cred, fid, inode, wanted)
}
