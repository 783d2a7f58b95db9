//! Reading state, committed or planned, and who may do what with it.

use crate::committed::Committed;
use crate::keys;
use crate::record::{Dirent, Inode};
use crate::txn::Txn;
use std::sync::Arc;
use weft_model::acl::{ACCESS_XATTR, Acl, DEFAULT_XATTR};
use weft_model::cred::{self, EXEC, WRITE};
use weft_model::{Credentials, ErrorKind, Fid, FsError, Result};

/// State to read from.
pub trait View {
    /// An inode, if it exists.
    ///
    /// # Errors
    /// Those of the store.
    fn find_inode(&mut self, fid: Fid) -> Result<Option<Arc<Inode>>>;
    /// An entry, if it exists.
    ///
    /// # Errors
    /// Those of the store.
    fn find_dirent(&mut self, dir: Fid, name: &[u8]) -> Result<Option<Dirent>>;
    /// Any other record.
    ///
    /// # Errors
    /// Those of the store.
    fn raw(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>>;
}

impl View for Txn<'_> {
    fn find_inode(&mut self, fid: Fid) -> Result<Option<Arc<Inode>>> {
        Txn::find_inode(self, fid)
    }
    fn find_dirent(&mut self, dir: Fid, name: &[u8]) -> Result<Option<Dirent>> {
        Txn::find_dirent(self, dir, name)
    }
    fn raw(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Txn::raw(self, key)
    }
}

impl View for &Committed {
    fn find_inode(&mut self, fid: Fid) -> Result<Option<Arc<Inode>>> {
        self.inode(fid)
    }
    fn find_dirent(&mut self, dir: Fid, name: &[u8]) -> Result<Option<Dirent>> {
        self.dirent(dir, name)
    }
    fn raw(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.kv.get(key)
    }
}

/// An inode that must exist.
///
/// # Errors
/// `Stale`.
pub fn inode(view: &mut impl View, fid: Fid) -> Result<Arc<Inode>> {
    view.find_inode(fid)?.ok_or_else(|| ErrorKind::Stale.into())
}

/// A directory that must exist and still have a name.
///
/// # Errors
/// `NotFound`, `NotDir`.
pub fn dir(view: &mut impl View, fid: Fid) -> Result<Arc<Inode>> {
    let inode = view.find_inode(fid)?.ok_or_else(|| FsError::from(ErrorKind::NotFound))?;
    match (inode.is_dir(), inode.nlink) {
        (false, _) => Err(ErrorKind::NotDir.into()),
        (true, 0) => Err(ErrorKind::NotFound.into()),
        (true, _) => Ok(inode),
    }
}

/// The access list of an inode.
///
/// # Errors
/// Those of the store.
pub fn acl(view: &mut impl View, fid: Fid, inode: &Inode) -> Result<Option<Acl>> {
    if !inode.has_acl {
        return Ok(None);
    }
    let value = view.raw(&keys::xattr(fid, ACCESS_XATTR))?;
    value.map(|value| Acl::decode(&value)).transpose()
}

/// The list that new entries of a directory inherit.
///
/// # Errors
/// Those of the store.
pub fn default_acl(view: &mut impl View, fid: Fid, inode: &Inode) -> Result<Option<Acl>> {
    if !inode.has_default_acl {
        return Ok(None);
    }
    let value = view.raw(&keys::xattr(fid, DEFAULT_XATTR))?;
    value.map(|value| Acl::decode(&value)).transpose()
}

/// Checks `wanted` access.
///
/// # Errors
/// `Access`, `NeedGroups`.
pub fn check(
    view: &mut impl View,
    cred: &Credentials,
    fid: Fid,
    inode: &Inode,
    wanted: u8,
) -> Result<()> {
    let acl = acl(view, fid, inode)?;
    cred::check_access(cred, &inode.attr(fid), acl.as_ref(), wanted)
}

/// A directory that `cred` may search.
///
/// # Errors
/// As [`dir`] and [`check`].
pub fn searchable(view: &mut impl View, cred: &Credentials, fid: Fid) -> Result<Arc<Inode>> {
    let dir = dir(view, fid)?;
    check(view, cred, fid, &dir, EXEC)?;
    Ok(dir)
}

/// A directory whose entries `cred` may change.
///
/// # Errors
/// As [`dir`] and [`check`].
pub fn changeable(view: &mut impl View, cred: &Credentials, fid: Fid) -> Result<Arc<Inode>> {
    let dir = dir(view, fid)?;
    check(view, cred, fid, &dir, WRITE | EXEC)?;
    Ok(dir)
}

/// The caller's identity in a request.
///
/// # Errors
/// `Protocol` when it is missing.
pub fn credentials(cred: &Option<weft_rpc::pb::Credentials>) -> Result<Credentials> {
    match cred {
        Some(cred) => Ok(cred.clone().into()),
        None => Err(FsError::new(ErrorKind::Protocol, "decode message").on("credentials")),
    }
}
