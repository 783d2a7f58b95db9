//! What the operations on names share: making inodes, attaching and detaching them.

use crate::record::{Dirent, Garbage, Inode};
use crate::txn::Txn;
use crate::{inline, keys, view};
use prost::Message as _;
use std::sync::Arc;
use weft_model::acl::{ACCESS_XATTR, DEFAULT_XATTR};
use weft_model::attr::{FileType, mode};
use weft_model::{Credentials, ErrorKind, Fid, Result};
use weft_rpc::pb;

/// What a new inode is to be.
pub struct NewInode<'a> {
    /// Directory it is made in.
    pub parent: Fid,
    /// Type and permission bits asked for.
    pub mode: u32,
    /// Bits to leave out, where no default list says otherwise.
    pub umask: u32,
    /// Who makes it.
    pub cred: &'a Credentials,
}

/// Makes an inode under POSIX rules: owner, group (that of a set-gid directory), mode by umask or
/// default list. It has no name yet.
///
/// # Errors
/// `NoSpace` when FIDs run out; those of the store.
pub fn make(txn: &mut Txn<'_>, parent: &Inode, new: &NewInode<'_>) -> Result<(Fid, Inode)> {
    let fid = txn.new_fid()?;
    let kind = FileType::from_mode(new.mode).ok_or(ErrorKind::Invalid)?;
    let is_dir = kind == FileType::Directory;
    let inherits = parent.mode & mode::SETGID != 0;
    let gid = if inherits { parent.gid } else { new.cred.gid };
    let mut bits = new.mode & mode::PERMISSIONS;
    let (mut has_acl, mut has_default_acl) = (false, false);
    match view::default_acl(txn, new.parent, parent)? {
        Some(default) if kind != FileType::Symlink => {
            let (inherited, list) = default.inherit(bits);
            bits = inherited;
            if let Some(list) = list {
                has_acl = true;
                txn.put_raw(keys::xattr(fid, ACCESS_XATTR), Some(list.encode()));
            }
            if is_dir {
                has_default_acl = true;
                txn.put_raw(keys::xattr(fid, DEFAULT_XATTR), Some(default.encode()));
            }
        }
        _ => bits &= !(new.umask & 0o777),
    }
    if is_dir && inherits {
        bits |= mode::SETGID;
    } else if bits & mode::SETGID != 0
        && !is_dir
        && !new.cred.is_root()
        && !new.cred.in_group(gid)?
    {
        bits &= !mode::SETGID;
    }
    let mut inode = Inode {
        mode: kind.mode_bits() | bits,
        nlink: if is_dir { 2 } else { 1 },
        uid: new.cred.uid,
        gid,
        parent: new.parent.0,
        has_acl,
        has_default_acl,
        xattrs: has_acl as u32 + has_default_acl as u32,
        spec: if is_dir { parent.spec.clone() } else { None },
        ..Inode::default()
    };
    inode.set_atime(txn.now);
    inode.set_mtime(txn.now, txn.now);
    inode.touch_ctime(txn.now);
    (inode.btime, inode.btime_ns) = (txn.now.secs, txn.now.nanos);
    Ok((fid, inode))
}

/// Gives an inode a name. The name must be free.
pub fn attach(txn: &mut Txn<'_>, dir: Fid, parent: &Inode, name: &[u8], fid: Fid, kind: FileType) {
    let mut parent = parent.clone();
    parent.entries += 1;
    if kind == FileType::Directory {
        parent.nlink += 1;
    }
    parent.touch_entries(txn.now);
    txn.put_inode(dir, parent);
    txn.put_dirent(dir, name, Dirent { fid: fid.0, kind: kind as u32 });
}

/// Takes a name away. The inode is left as it is.
pub fn detach(txn: &mut Txn<'_>, dir: Fid, parent: &Inode, name: &[u8], kind: FileType) {
    let mut parent = parent.clone();
    parent.entries = parent.entries.saturating_sub(1);
    if kind == FileType::Directory {
        parent.nlink = parent.nlink.saturating_sub(1);
    }
    parent.touch_entries(txn.now);
    txn.put_inode(dir, parent);
    txn.delete_dirent(dir, name);
}

/// Notes that an inode has lost a name; the last one makes it an orphan or removes it.
///
/// # Errors
/// Those of the store.
pub fn drop_name(txn: &mut Txn<'_>, fid: Fid, inode: &Inode, dir: Fid, name: &[u8]) -> Result<()> {
    let mut inode = inode.clone();
    inode.nlink = if inode.is_dir() { 0 } else { inode.nlink.saturating_sub(1) };
    inode.touch_ctime(txn.now);
    if inode.parent == dir.0 && inode.name == name {
        (inode.parent, inode.name) = (0, Vec::new());
    }
    if inode.nlink > 0 {
        txn.put_inode(fid, inode);
        return Ok(());
    }
    // While clients reclaim what they had open before a restart, nobody knows what is open.
    let lingers = txn.planner.lingering.has(fid);
    if txn.planner.opens.is_open(fid) || txn.planner.recovering || lingers {
        txn.put_raw(keys::orphan(fid), Some(Vec::new()));
        txn.put_inode(fid, inode);
        return Ok(());
    }
    remove(txn, fid, &inode)
}

/// Removes an inode without names; its objects become garbage.
///
/// # Errors
/// Those of the store.
pub fn remove(txn: &mut Txn<'_>, fid: Fid, inode: &Inode) -> Result<()> {
    txn.delete_inode(fid);
    if inode.xattrs > 0 {
        txn.remove_xattrs(fid)?;
    }
    if inode.inline {
        txn.put_raw(keys::inline(fid), None);
    }
    for &client in &inode.writers {
        txn.put_raw(keys::writer(weft_model::ClientId(client), fid), None);
    }
    if inode.touched || !inode.writers.is_empty() {
        let garbage = Garbage { layout: inode.layout.clone() };
        txn.put_raw(keys::garbage(fid), Some(garbage.encode_to_vec()));
        txn.planner.garbage.push(fid);
    }
    Ok(())
}

/// Attributes for a reply.
pub fn entry(fid: Fid, inode: &Inode, client: weft_model::ClientId) -> pb::mds::Entry {
    // To an inline file nobody writes without the target's knowing.
    let written_elsewhere = inode.written_by_others(client.0) && !inode.inline;
    pb::mds::Entry {
        attr: Some((&inode.attr(fid)).into()),
        written_elsewhere,
        layout: if written_elsewhere { inode.layout.clone() } else { None },
        size_epoch: inode.size_epoch,
        bare: inode.xattrs == 0,
        ..pb::mds::Entry::default()
    }
}

/// The same for who opens it: with the layout of a regular file, and where its bytes are. `marked`: sessions
/// may have written to it.
pub fn entry_of_open(
    fid: Fid,
    inode: &Inode,
    client: weft_model::ClientId,
    marked: bool,
) -> pb::mds::Entry {
    let place = inline::place(inode, marked).into();
    pb::mds::Entry { layout: inode.layout.clone(), place, ..entry(fid, inode, client) }
}

/// Whether `dir` is `ancestor` or lies below it.
///
/// # Errors
/// `Loop` when the chain of parents does not end; those of the store.
pub fn is_below(txn: &mut Txn<'_>, dir: Fid, ancestor: Fid) -> Result<bool> {
    /// Longer than any path: PATH_MAX is 4096 bytes, but chains of relative steps go deeper.
    const LIMIT: usize = 1 << 20;
    let mut at = dir;
    for _ in 0..LIMIT {
        if at == ancestor {
            return Ok(true);
        }
        if at == Fid::ROOT {
            return Ok(false);
        }
        let inode: Arc<Inode> = txn.inode(at)?;
        at = Fid(inode.parent);
    }
    Err(ErrorKind::Loop.into())
}
