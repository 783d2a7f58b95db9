//! Who asks, and what POSIX lets them do. Used by the MDS, which never relies on the client's checks.

use crate::acl::Acl;
use crate::attr::{Attr, FileType, mode};
use crate::error::{ErrorKind, FsError, Result};

/// Wanted access: execute or search.
pub const EXEC: u8 = 1;
/// Wanted access: write.
pub const WRITE: u8 = 2;
/// Wanted access: read.
pub const READ: u8 = 4;

/// Identity of the caller, as the client states it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Credentials {
    /// File system user id.
    pub uid: u32,
    /// File system group id.
    pub gid: u32,
    /// Supplementary groups; `None` when the client has not looked them up. A decision that hangs on
    /// them is then answered with [`ErrorKind::NeedGroups`], and the client asks again with them.
    pub groups: Option<Vec<u32>>,
}

impl Credentials {
    /// The superuser.
    pub fn root() -> Credentials {
        Credentials { uid: 0, gid: 0, groups: Some(Vec::new()) }
    }

    /// Whether this is the superuser.
    pub const fn is_root(&self) -> bool {
        self.uid == 0
    }

    /// Membership in `gid`.
    ///
    /// # Errors
    /// `NeedGroups` when only the supplementary groups could tell.
    pub fn in_group(&self, gid: u32) -> Result<bool> {
        if self.gid == gid {
            return Ok(true);
        }
        match &self.groups {
            Some(groups) => Ok(groups.contains(&gid)),
            None => Err(ErrorKind::NeedGroups.into()),
        }
    }
}

/// Checks `wanted` (a mask of [`READ`], [`WRITE`], [`EXEC`]) against mode bits and access list,
/// by the algorithm of POSIX 1003.1e (draft 17), 23.1.5.
///
/// # Errors
/// `Access`, or `NeedGroups`.
pub fn check_access(cred: &Credentials, attr: &Attr, acl: Option<&Acl>, wanted: u8) -> Result<()> {
    let denied = || Err(FsError::from(ErrorKind::Access));
    if cred.is_root() {
        let may_execute = attr.kind == FileType::Directory || attr.mode & mode::ANY_EXEC != 0;
        return if wanted & EXEC == 0 || may_execute { Ok(()) } else { denied() };
    }
    let allows = |bits: u32| bits as u8 & wanted == wanted;
    if cred.uid == attr.uid {
        return if allows(attr.mode >> 6) { Ok(()) } else { denied() };
    }
    if let Some(acl) = acl {
        return if acl.permits(cred, attr, wanted)? { Ok(()) } else { denied() };
    }
    let (group, other) = (allows(attr.mode >> 3), allows(attr.mode));
    if group == other {
        return if group { Ok(()) } else { denied() };
    }
    if cred.in_group(attr.gid)? == group { Ok(()) } else { denied() }
}

/// Whether `cred` may remove or rename the entry of `child` in `dir` as far as the sticky bit goes.
///
/// # Errors
/// `Perm`.
pub fn check_sticky(cred: &Credentials, dir: &Attr, child: &Attr) -> Result<()> {
    let bound = dir.mode & mode::STICKY != 0;
    if bound && !cred.is_root() && cred.uid != child.uid && cred.uid != dir.uid {
        return Err(ErrorKind::Perm.into());
    }
    Ok(())
}

/// Whether `cred` owns the inode, as chmod and utimes demand.
///
/// # Errors
/// `Perm`.
pub fn check_owner(cred: &Credentials, attr: &Attr) -> Result<()> {
    if cred.is_root() || cred.uid == attr.uid { Ok(()) } else { Err(ErrorKind::Perm.into()) }
}

/// The mode after a write, truncate or chown by `cred` (clears set-id bits).
pub fn drop_suidgid(attr: &Attr) -> u32 {
    if attr.kind == FileType::Directory {
        return attr.mode;
    }
    let setgid = attr.mode & (mode::SETGID | mode::GROUP_EXEC) == mode::SETGID | mode::GROUP_EXEC;
    attr.mode & !(mode::SETUID | if setgid { mode::SETGID } else { 0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attr::Timespec;
    use crate::id::Fid;

    fn attr(kind: FileType, mode: u32, uid: u32, gid: u32) -> Attr {
        let zero = Timespec::default();
        Attr {
            fid: Fid::ROOT,
            kind,
            mode,
            nlink: 1,
            uid,
            gid,
            size: 0,
            blocks: 0,
            rdev: 0,
            atime: zero,
            mtime: zero,
            ctime: zero,
            btime: zero,
            change: 0,
        }
    }

    fn user(uid: u32, gid: u32) -> Credentials {
        Credentials { uid, gid, groups: Some(vec![]) }
    }

    #[test]
    fn the_owner_class_decides_alone() {
        let file = attr(FileType::Regular, 0o077, 10, 20);
        assert!(check_access(&user(10, 20), &file, None, READ).is_err());
        assert!(check_access(&user(11, 20), &file, None, READ | WRITE).is_ok());
        assert!(check_access(&user(11, 21), &file, None, EXEC).is_ok());
    }

    #[test]
    fn root_executes_only_what_somebody_may() {
        let root = Credentials::root();
        assert!(check_access(&root, &attr(FileType::Regular, 0, 1, 1), None, READ | WRITE).is_ok());
        assert!(check_access(&root, &attr(FileType::Regular, 0, 1, 1), None, EXEC).is_err());
        assert!(check_access(&root, &attr(FileType::Regular, 0o010, 1, 1), None, EXEC).is_ok());
        assert!(check_access(&root, &attr(FileType::Directory, 0, 1, 1), None, EXEC).is_ok());
    }

    #[test]
    fn asks_for_groups_only_when_they_matter() {
        let cred = Credentials { uid: 5, gid: 5, groups: None };
        let shared = attr(FileType::Regular, 0o644, 1, 7);
        assert!(check_access(&cred, &shared, None, READ).is_ok());
        let group_only = attr(FileType::Regular, 0o640, 1, 7);
        let error = check_access(&cred, &group_only, None, READ).unwrap_err();
        assert_eq!(error.kind, ErrorKind::NeedGroups);
        let with = Credentials { groups: Some(vec![7]), ..cred };
        assert!(check_access(&with, &group_only, None, READ).is_ok());
    }

    #[test]
    fn sticky_directories() {
        let dir = attr(FileType::Directory, 0o1777, 0, 0);
        let file = attr(FileType::Regular, 0o666, 10, 10);
        assert!(check_sticky(&user(10, 10), &dir, &file).is_ok());
        assert_eq!(check_sticky(&user(11, 10), &dir, &file).unwrap_err().kind, ErrorKind::Perm);
        assert!(check_sticky(&Credentials::root(), &dir, &file).is_ok());
    }

    #[test]
    fn set_id_bits_go_as_in_linux() {
        assert_eq!(drop_suidgid(&attr(FileType::Regular, 0o6755, 0, 0)), 0o755);
        // Set-gid without group execution marks mandatory locking and stays.
        assert_eq!(drop_suidgid(&attr(FileType::Regular, 0o6745, 0, 0)), 0o2745);
    }
}
