//! `SetAttr`: mode, owner, group, times; the size is changed in [`crate::truncate`].

use crate::ops::written;
use crate::record::Inode;
use crate::txn::Txn;
use crate::{Mds, keys, namespace, view};
use weft_model::acl::ACCESS_XATTR;
use weft_model::attr::{FileType, Timespec, mode};
use weft_model::cred::{self, WRITE};
use weft_model::{Credentials, ErrorKind, Fid, Result};
use weft_rpc::CallInfo;
use weft_rpc::pb::mds::{Entry, SetAttr};

/// Plans it for a request without a size.
///
/// # Errors
/// `Perm`, `Access`, `NeedGroups`, `Stale`, `ReadOnly`.
pub fn plan(
    txn: &mut Txn<'_>,
    mds: &Mds,
    info: &CallInfo,
    request: &SetAttr,
    observed: Option<written::Observed>,
) -> Result<Entry> {
    let fid = Fid(request.fid);
    let mut inode = txn.inode(fid)?.as_ref().clone();
    written::apply(txn, mds, info, (fid, &mut inode), &request.written, observed)?;
    apply(txn, fid, &mut inode, request)?;
    let entry = namespace::entry(fid, &inode, info.client);
    txn.put_inode(fid, inode);
    Ok(entry)
}

/// Changes everything but the size.
///
/// # Errors
/// As [`plan`].
pub fn apply(txn: &mut Txn<'_>, fid: Fid, inode: &mut Inode, request: &SetAttr) -> Result<()> {
    let cred = view::credentials(&request.cred)?;
    if request.uid.is_some() || request.gid.is_some() {
        chown(txn, &cred, fid, inode, request)?;
    }
    if let Some(bits) = request.mode {
        chmod(txn, &cred, fid, inode, bits)?;
    }
    if request.kill_suidgid {
        let reduced = cred::drop_suidgid(&inode.attr(fid));
        set_bits(inode, reduced);
    }
    set_times(txn, &cred, fid, inode, request)?;
    let ctime = request.ctime.map_or(txn.now, Timespec::from);
    inode.touch_ctime(ctime);
    Ok(())
}

const fn set_bits(inode: &mut Inode, bits: u32) {
    inode.mode = inode.mode & !mode::PERMISSIONS | bits & mode::PERMISSIONS;
}

fn chmod(
    txn: &mut Txn<'_>,
    cred: &Credentials,
    fid: Fid,
    inode: &mut Inode,
    bits: u32,
) -> Result<()> {
    cred::check_owner(cred, &inode.attr(fid))?;
    let mut bits = bits & mode::PERMISSIONS;
    if bits & mode::SETGID != 0 && !cred.is_root() && !cred.in_group(inode.gid)? {
        bits &= !mode::SETGID;
    }
    set_bits(inode, bits);
    if let Some(mut acl) = view::acl(txn, fid, inode)? {
        acl.chmod(bits);
        txn.put_raw(keys::xattr(fid, ACCESS_XATTR), Some(acl.encode()));
    }
    Ok(())
}

/// An owner may give a file to a group he is in; anything else is root's. Set-id bits go.
fn chown(
    txn: &mut Txn<'_>,
    cred: &Credentials,
    fid: Fid,
    inode: &mut Inode,
    request: &SetAttr,
) -> Result<()> {
    let uid = request.uid.unwrap_or(inode.uid);
    let gid = request.gid.unwrap_or(inode.gid);
    if !cred.is_root() {
        let may_group = gid == inode.gid || cred.in_group(gid)?;
        if cred.uid != inode.uid || uid != inode.uid || !may_group {
            return Err(ErrorKind::Perm.into());
        }
    }
    let same = (inode.uid, inode.gid) == (uid, gid);
    (inode.uid, inode.gid) = (uid, gid);
    if inode.kind() != FileType::Directory {
        let reduced = cred::drop_suidgid(&inode.attr(fid));
        set_bits(inode, reduced);
        // An overlay that copies a file up gives it its attributes first and then, to us indistinguishable
        // from a user's chown, its owner.
        if !same {
            drop_capability(txn, fid, inode)?;
        }
    }
    Ok(())
}

/// File capabilities do not survive a change of owner.
fn drop_capability(txn: &mut Txn<'_>, fid: Fid, inode: &mut Inode) -> Result<()> {
    if inode.xattrs == 0 {
        return Ok(());
    }
    let key = keys::xattr(fid, b"security.capability");
    if txn.raw(&key)?.is_some() {
        inode.xattrs -= 1;
        txn.put_raw(key, None);
    }
    Ok(())
}

/// The owner sets any time; who may write may set them to now.
fn set_times(
    txn: &mut Txn<'_>,
    cred: &Credentials,
    fid: Fid,
    inode: &mut Inode,
    request: &SetAttr,
) -> Result<()> {
    let explicit = request.atime.is_some() || request.mtime.is_some();
    if !explicit && !request.atime_now && !request.mtime_now {
        return Ok(());
    }
    // A request that changes the size has proved its right to write already, and sets mtime to now.
    if cred::check_owner(cred, &inode.attr(fid)).is_err() && request.size.is_none() {
        if explicit {
            return Err(ErrorKind::Perm.into());
        }
        view::check(txn, cred, fid, inode, WRITE)?;
    }
    if request.atime_now {
        inode.set_atime(txn.now);
    } else if let Some(atime) = request.atime {
        inode.set_atime(atime.into());
    }
    if request.mtime_now {
        inode.set_mtime(txn.now, txn.now);
    } else if let Some(mtime) = request.mtime {
        inode.set_mtime(mtime.into(), txn.now);
    }
    Ok(())
}
