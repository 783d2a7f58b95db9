//! What a reply says about an inode, and what it takes to know its size.

use crate::client::Client;
use crate::grants::{Asked, Grant};
use crate::inode::bytes::Bytes;
use crate::inode::written::Unreported;
use std::ops::Deref;
use weft_model::{Attr, ErrorKind, Fid, FileType, FsError, Layout, Result, Timespec};
use weft_rpc::pb::mds;
use weft_rpc::router::Patience;

/// A decoded `mds.Entry`.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) attr: Attr,
    pub(crate) written_elsewhere: bool,
    pub(crate) layout: Option<Layout>,
    pub(crate) size_epoch: u64,
    /// The file is delegated to this client.
    pub(crate) delegated: bool,
    /// In replies to open: where the file's bytes are.
    pub(crate) place: mds::Place,
    /// All of them, if the MDT has them and told.
    pub(crate) data: Option<mds::Inline>,
    /// The inode has no extended attributes.
    pub(crate) is_bare: bool,
    /// The directory in which the name was made, afterwards.
    pub(crate) parent: Option<Attr>,
    grant_ms: u32,
    name_grant_ms: u32,
}

/// Attributes, and what was granted with them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found {
    /// The attributes.
    pub attr: Attr,
    /// They stay as they are, and so does the data of a file.
    pub grant: Grant,
    /// The name that was asked for or made goes on to stand for this inode.
    pub name_grant: Grant,
}

impl Deref for Found {
    type Target = Attr;

    fn deref(&self) -> &Attr {
        &self.attr
    }
}

/// What is behind a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lookup {
    /// An inode.
    Found(Found),
    /// Nothing, and for how long that is granted.
    Absent(Grant),
}

impl TryFrom<mds::Entry> for Known {
    type Error = FsError;

    fn try_from(entry: mds::Entry) -> Result<Known> {
        let missing = || FsError::new(ErrorKind::Protocol, "decode entry");
        let place = entry.place();
        Ok(Known {
            attr: entry.attr.ok_or_else(missing)?.try_into()?,
            written_elsewhere: entry.written_elsewhere,
            layout: entry.layout.map(Layout::try_from).transpose()?,
            size_epoch: entry.size_epoch,
            delegated: entry.delegated,
            place,
            data: entry.data,
            is_bare: entry.bare,
            parent: entry.parent.map(Attr::try_from).transpose()?,
            grant_ms: entry.grant_ms,
            name_grant_ms: entry.name_grant_ms,
        })
    }
}

impl Known {
    /// Of an inode of which nothing is known but that it is open.
    pub(crate) fn nothing_of(fid: Fid) -> Known {
        let never = Timespec { secs: 0, nanos: 0 };
        let attr = Attr {
            fid,
            kind: FileType::Regular,
            mode: 0,
            nlink: 0,
            uid: 0,
            gid: 0,
            size: 0,
            blocks: 0,
            rdev: 0,
            atime: never,
            mtime: never,
            ctime: never,
            btime: never,
            change: 0,
        };
        Known {
            attr,
            // To be asked for.
            place: mds::Place::Inline,
            written_elsewhere: false,
            layout: None,
            size_epoch: 0,
            delegated: false,
            data: None,
            is_bare: false,
            parent: None,
            grant_ms: 0,
            name_grant_ms: 0,
        }
    }

    /// Decodes an entry that must be there.
    pub(crate) fn required(entry: Option<mds::Entry>) -> Result<Known> {
        entry.ok_or_else(|| FsError::new(ErrorKind::Protocol, "decode entry"))?.try_into()
    }

    /// With `attr` in place of the MDT's, which are not always the whole truth.
    pub(crate) fn found(&self, attr: Attr, asked: &Asked, parent: Option<Fid>) -> Found {
        let name = parent.map(|parent| asked.grant(parent, self.name_grant_ms));
        let grant = asked.grant(attr.fid, self.grant_ms);
        Found { attr, grant, name_grant: name.unwrap_or(Grant::NONE) }
    }

    /// What was told of a small file's bytes, if anything.
    pub(crate) fn bytes(&self, asked: &Asked) -> Option<Bytes> {
        let grant = asked.grant(self.attr.fid, self.grant_ms);
        // Damaged on the way: it is asked for again.
        Bytes::verified(self.attr.fid, self.data.clone()?, self.attr.size, grant).ok()
    }

    /// Whether only the OSTs know size and time: others write the file, or this client has written
    /// without knowing of the last truncation.
    pub(crate) fn is_uncertain(&self, own: Option<&Unreported>) -> bool {
        let outdated = own.and_then(Unreported::dirty_epoch).is_some_and(|e| e != self.size_epoch);
        self.attr.kind == FileType::Regular && (self.written_elsewhere || outdated)
    }
}

impl Client {
    /// What this client has written to a file and not reported. Best taken before attributes are asked
    /// for, so that no time stamp can be reported and forgotten between answer and overlay.
    pub(crate) fn own_writes(&self, fid: Fid) -> Option<Unreported> {
        Some(self.inodes.get(fid)?.unreported())
    }

    /// The attributes of what a reply told, with size and times as the OSTs and this client know them.
    pub(crate) fn settle(
        &self,
        known: &Known,
        own: Option<&Unreported>,
        patience: &Patience<'_>,
    ) -> Result<Attr> {
        let mut attr = known.attr;
        let open = self.inodes.get(attr.fid);
        if let Some(inode) = &open {
            inode.learn(known);
        }
        if let Some(own) = own {
            own.overlay(&mut attr, known.size_epoch);
        }
        if known.is_uncertain(own) {
            let layout = match (&known.layout, &open) {
                (Some(layout), _) => layout,
                (None, Some(inode)) => &*inode.layout(),
                (None, None) => return Ok(attr),
            };
            let seen = self.glimpse(attr.fid, layout, patience)?;
            attr.size = attr.size.max(seen.size);
            attr.blocks = seen.blocks;
            if let Some(mtime) = seen.mtime {
                attr.mtime = attr.mtime.max(mtime);
                attr.ctime = attr.ctime.max(mtime);
            }
        }
        Ok(attr)
    }
}
