//! Attributes: lookup, getattr, setattr, access.

use super::entry::{Found, Known, Lookup};
use crate::client::Client;
use crate::ctx::Ctx;
use crate::inode::OpenFile;
use crate::inode::written::Unreported;
use crate::metrics::Op;
use weft_model::{ErrorKind, Fid, FileType, Result, SetAttr, SetTime, Timespec};
use weft_rpc::pb::{self, mds};
use weft_rpc::router::Patience;

impl Client {
    /// Finds an entry of a directory. Size and times are exact as of the call.
    ///
    /// # Errors
    /// `NotFound`, `NotDir`, `Access`, `NameTooLong`, and those of the targets.
    pub fn lookup(&self, ctx: &Ctx<'_>, parent: Fid, name: &[u8]) -> Result<Found> {
        match self.lookup_or_absent(ctx, parent, name)? {
            Lookup::Found(found) => Ok(found),
            Lookup::Absent(_) => Err(ErrorKind::NotFound.into()),
        }
    }

    /// The same for those who can make something of a name's absence.
    ///
    /// # Errors
    /// As [`Client::lookup`]; `NotFound` only when the directory is gone.
    pub fn lookup_or_absent(&self, ctx: &Ctx<'_>, parent: Fid, name: &[u8]) -> Result<Lookup> {
        self.timed(Op::Lookup, || {
            if let Some(grant) = self.knows_absent(ctx, parent, name) {
                return Ok(Lookup::Absent(grant));
            }
            let asked = self.asking();
            let reply = self.ask_as(ctx, parent, |cred| mds::Lookup {
                cred,
                parent: parent.0,
                name: name.to_vec(),
            })?;
            let Some(entry) = reply.entry else {
                let grant = asked.grant(parent, reply.absence_grant_ms);
                self.keep_name_grant(parent, grant);
                return Ok(Lookup::Absent(grant));
            };
            let known = Known::try_from(entry)?;
            let own = self.own_writes(known.attr.fid);
            let attr = self.settle(&known, own.as_ref(), &self.patience(ctx))?;
            let found = self.found(&known, attr, &asked, Some(parent));
            if attr.kind == FileType::Regular && self.grants.has_reported_since(&asked) {
                let fresh = self.current_attr(attr.fid, &self.patience(ctx))?;
                return Ok(Lookup::Found(Found { name_grant: found.name_grant, ..fresh }));
            }
            Ok(Lookup::Found(found))
        })
    }

    /// Attributes of an inode. Size and times are exact as of the call.
    ///
    /// # Errors
    /// `Stale` when the inode is gone, and those of the targets.
    pub fn getattr(&self, ctx: &Ctx<'_>, fid: Fid) -> Result<Found> {
        self.timed(Op::GetAttr, || match self.knows_dir(fid) {
            Some(found) => Ok(found),
            None => self.current_attr(fid, &self.patience(ctx)),
        })
    }

    pub(crate) fn current_attr(&self, fid: Fid, patience: &Patience<'_>) -> Result<Found> {
        let asked = self.asking();
        let open = self.inodes.get(fid);
        let changes = open.as_ref().map_or(0, |inode| inode.ahead().changes());
        let own = self.own_writes(fid);
        let request = mds::GetAttr { fid: fid.0, want_layout: false };
        let known = Known::try_from(self.ask(fid, request, patience)?)?;
        let attr = self.settle(&known, own.as_ref(), patience)?;
        let found = self.found(&known, attr, &asked, None);
        if let Some(inode) = &open {
            self.cover(inode, attr.size, found.grant, changes);
        }
        Ok(found)
    }

    /// Changes attributes; `file` gives the right to change the size that was had when it was opened.
    /// Returns the attributes afterwards.
    ///
    /// # Errors
    /// `Perm`, `Access`, `FileTooBig`, `NoSpace`, `Stale`, and those of the targets.
    pub fn setattr(
        &self,
        ctx: &Ctx<'_>,
        fid: Fid,
        set: &SetAttr,
        file: Option<&OpenFile>,
    ) -> Result<Found> {
        self.timed(Op::SetAttr, || self.change_attr(ctx, fid, set, file))
    }

    pub(crate) fn change_attr(
        &self,
        ctx: &Ctx<'_>,
        fid: Fid,
        set: &SetAttr,
        file: Option<&OpenFile>,
    ) -> Result<Found> {
        let patience = self.patience(ctx);
        let asked = self.asking();
        let inode = self.inodes.get(fid);
        if let Some(inode) = &inode
            && let Some(found) = self.defer_attr(ctx, inode, set, &patience)?
        {
            return Ok(found);
        }
        let change = self.changing_access(fid);
        // The right to cut rests on the mode.
        self.tell_deferred(fid, &patience)?;
        // A write of ours must be wholly before or after a truncation.
        let _alone = match (&inode, set.size) {
            (Some(inode), Some(_)) => {
                let alone = self.acquire(&patience, || inode.io.try_write())?;
                self.write_back(inode, false, &patience)?;
                Some((alone, inode.changing(0..u64::MAX)))
            }
            _ => None,
        };
        let (mut sent, mut written) = (Unreported::default(), None);
        if let Some(inode) = &inode {
            sent = inode.unreported();
            written = self.to_report(inode, &sent, &patience);
        }
        let handle = file.filter(|_| set.size.is_some()).map_or(0, |file| file.handle);
        let kill = set.kill_suidgid || (set.size.is_some() && ctx.cred.uid != 0);
        let request = |cred| to_wire(fid, set, cred, written.clone(), handle, kill);
        let answer = self.ask_as(ctx, fid, request);
        if inode.is_none() && set.size.is_some() {
            // It may have been opened meanwhile, and have been found as it was before.
            self.inodes.get(fid).iter().for_each(|inode| drop(inode.changing(0..u64::MAX)));
        }
        let known = Known::try_from(answer?)?;
        if known.attr.kind != FileType::Directory {
            change.dismiss();
        }
        if let Some(inode) = &inode {
            let mut state = self.reported(inode, &sent);
            if set.size.is_some() {
                state.bytes = None;
                state.unreported.truncated(known.size_epoch);
            }
        }
        let own = inode.as_ref().map(|inode| inode.unreported());
        let attr = self.settle(&known, own.as_ref(), &patience)?;
        Ok(self.found(&known, attr, &asked, None))
    }

    /// Whether the caller may read (4), write (2), execute (1) an inode.
    ///
    /// # Errors
    /// `Access`, `Stale`, and those of the MDT.
    pub fn access(&self, ctx: &Ctx<'_>, fid: Fid, mask: u32) -> Result<()> {
        self.timed(Op::Access, || {
            self.tell_deferred(fid, &self.patience(ctx))?;
            self.ask_as(ctx, fid, |cred| mds::Access { cred, fid: fid.0, mask }).map(|_| ())
        })
    }
}

fn to_wire(
    fid: Fid,
    set: &SetAttr,
    cred: Option<pb::Credentials>,
    written: Option<mds::Written>,
    handle: u64,
    kill_suidgid: bool,
) -> mds::SetAttr {
    let instant = |time: Option<SetTime>| match time {
        Some(SetTime::At(time)) => Some(time.into()),
        _ => None,
    };
    mds::SetAttr {
        cred,
        fid: fid.0,
        mode: set.mode,
        uid: set.uid,
        gid: set.gid,
        size: set.size,
        atime: instant(set.atime),
        atime_now: set.atime == Some(SetTime::Now),
        mtime: instant(set.mtime),
        mtime_now: set.mtime == Some(SetTime::Now),
        ctime: set.ctime.map(|time: Timespec| time.into()),
        kill_suidgid,
        handle,
        written,
    }
}
