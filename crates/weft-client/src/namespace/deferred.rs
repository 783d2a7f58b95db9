//! Modes and times that are set on a delegated file and told to the MDT with its next report: who unpacks an
//! archive sets three attributes of each file just before closing it. Nobody else is told of the file before,
//! and this client's own requests that depend on them send them first.

use super::entry::Found;
use crate::client::Client;
use crate::ctx::Ctx;
use crate::grants::Grant;
use crate::inode::OpenInode;
use weft_model::attr::mode;
use weft_model::{Attr, Credentials, Fid, Result, SetAttr, SetTime, Timespec};
use weft_rpc::pb::mds;
use weft_rpc::router::Patience;

/// Attributes that the MDT has not been told of.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Deferred {
    mode: Option<u32>,
    atime: Option<Timespec>,
    mtime: Option<Timespec>,
    /// When any of them was set last.
    ctime: Timespec,
    /// Who may set all of them: root, or the owner.
    uid: u32,
    gid: u32,
}

impl Deferred {
    /// Those of `set`, if `cred` may set them whatever the MDT knows beyond `attr`, and no rule of set-id bits
    /// comes in: there are none that a change of the owner could take away.
    fn of(set: &SetAttr, attr: &Attr, cred: &Credentials, now: Timespec) -> Option<Deferred> {
        const SET_ID: u32 = mode::SETUID | mode::SETGID;
        let owner = cred.uid == 0 || cred.uid == attr.uid;
        let owned =
            set.uid.unwrap_or(attr.uid) == attr.uid && set.gid.unwrap_or(attr.gid) == attr.gid;
        let plain = (set.mode.unwrap_or(0) | attr.mode) & SET_ID == 0;
        let rare = set.size.is_some() || set.ctime.is_some();
        let time = |time: SetTime| match time {
            SetTime::At(time) => time,
            SetTime::Now => now,
        };
        (owner && owned && plain && !rare).then(|| Deferred {
            mode: set.mode,
            atime: set.atime.map(time),
            mtime: set.mtime.map(time),
            ctime: now,
            uid: cred.uid,
            gid: cred.gid,
        })
    }

    /// Sets these, too.
    pub(crate) fn add(&mut self, later: Deferred) {
        let Deferred { mode, atime, mtime, .. } = later;
        *self = Deferred {
            mode: mode.or(self.mode),
            atime: atime.or(self.atime),
            mtime: mtime.or(self.mtime),
            ..later
        };
    }

    /// A later write sets the time anew.
    pub(crate) const fn forget_mtime(&mut self) {
        self.mtime = None;
    }

    /// Lays them over attributes.
    pub(crate) fn overlay(&self, attr: &mut Attr) {
        attr.mode = self.mode.unwrap_or(attr.mode);
        attr.atime = self.atime.unwrap_or(attr.atime);
        attr.mtime = self.mtime.unwrap_or(attr.mtime);
        attr.ctime = attr.ctime.max(self.ctime);
    }

    pub(crate) fn to_wire(&self) -> mds::Attributes {
        let cred = Credentials { uid: self.uid, gid: self.gid, groups: None };
        mds::Attributes {
            cred: Some((&cred).into()),
            mode: self.mode,
            atime: self.atime.map(Into::into),
            mtime: self.mtime.map(Into::into),
            ctime: Some(self.ctime.into()),
        }
    }
}

impl Client {
    /// Sets attributes of a delegated file, if they can be told to the MDT later. What is granted of the
    /// answer is nothing: names and links may have changed.
    pub(crate) fn defer_attr(
        &self,
        ctx: &Ctx<'_>,
        inode: &OpenInode,
        set: &SetAttr,
        patience: &Patience<'_>,
    ) -> Result<Option<Found>> {
        if !self.config.writes_behind {
            return Ok(None);
        }
        // Held shared, it keeps the file delegated.
        let _shared = self.acquire(patience, || inode.io.try_read())?;
        if !inode.buffer().delegated {
            return Ok(None);
        }
        let mut state = inode.state();
        let Some(deferred) = Deferred::of(set, &state.attr(), &ctx.cred, self.env().now()) else {
            return Ok(None);
        };
        state.unreported.defer(deferred);
        let mut attr = state.attr();
        drop(state);
        inode.unreported().overlay_own(&mut attr);
        Ok(Some(Found { attr, grant: Grant::NONE, name_grant: Grant::NONE }))
    }

    /// Tells the MDT of what was deferred, before it is asked something that depends on it.
    pub(crate) fn tell_deferred(&self, fid: Fid, patience: &Patience<'_>) -> Result<()> {
        match self.inodes.get(fid).filter(|inode| inode.state().unreported.has_deferred()) {
            Some(inode) => self.report(&inode, patience),
            None => Ok(()),
        }
    }
}
