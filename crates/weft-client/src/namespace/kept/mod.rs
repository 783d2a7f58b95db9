//! What this client knows without asking: names that are missing in directories it has made, attributes of
//! directories it has changed, and inodes without extended attributes. All of it counts while a grant
//! says that nobody else has changed it.
//!
//! Who unpacks an archive looks for each name before making it, and for capabilities before giving a file
//! an owner; and the kernel drops a directory's attributes whenever something is made in it, only to
//! ask for them with the next path that leads there. Design: `docs/design/0004-grants.md`.

mod names;

use super::entry::{Found, Known};
use crate::client::Client;
use crate::ctx::Ctx;
use crate::grants::{Asked, Grant};
use names::Names;
use parking_lot::Mutex;
use std::collections::HashMap;
use weft_model::{Attr, Fid, FileType};

/// Inodes of which something is known, of each kind; beyond, all are forgotten.
const MAX_KEPT: usize = 65_536;

/// What is known.
#[derive(Default)]
pub(crate) struct Kept {
    names: Mutex<Names>,
    /// Without extended attributes.
    bare: Mutex<HashMap<Fid, Grant>>,
    /// Directories as this client's last change has left them.
    changed: Mutex<HashMap<Fid, (Attr, Grant)>>,
}

fn put<T>(map: &mut HashMap<Fid, T>, fid: Fid, value: T) {
    if map.len() >= MAX_KEPT {
        map.clear();
    }
    map.insert(fid, value);
}

/// A change of a directory by this client is under way. Unless its answer tells what the directory is like
/// afterwards, nothing is known of that any more.
pub(crate) struct DirChange<'c> {
    client: &'c Client,
    dir: Fid,
    asked: Asked,
    told: bool,
}

impl DirChange<'_> {
    /// When it was asked for.
    pub(crate) fn asked(&self) -> &Asked {
        &self.asked
    }

    /// What the answer tells of the directory.
    pub(crate) fn tells(mut self, attr: Option<Attr>, grant: Grant) {
        let Some(attr) = attr.filter(|attr| attr.fid == self.dir && grant != Grant::NONE) else {
            return;
        };
        self.told = true;
        let mut changed = self.client.kept.changed.lock();
        // Within the lock, against those who forget. Changes that overlap are answered in any order.
        let newer = |(known, _): &(Attr, Grant)| known.change > attr.change;
        if !self.client.grants.has_changed_since(&self.asked)
            && !changed.get(&self.dir).is_some_and(newer)
        {
            put(&mut changed, self.dir, (attr, grant));
        }
    }

    /// It was no directory, or has not been changed.
    pub(crate) fn dismiss(mut self) {
        self.told = true;
    }
}

impl Drop for DirChange<'_> {
    fn drop(&mut self) {
        if !self.told {
            let mut changed = self.client.kept.changed.lock();
            self.client.grants.note_change();
            changed.remove(&self.dir);
        }
    }
}

impl Client {
    /// A request is going to be sent that changes a directory.
    pub(crate) fn changing_dir(&self, dir: Fid) -> DirChange<'_> {
        DirChange { client: self, dir, asked: self.asking(), told: false }
    }

    /// The same for a request that may make a name in it.
    pub(crate) fn making(&self, parent: Fid, name: &[u8]) -> DirChange<'_> {
        self.kept.names.lock().adding(parent, name);
        self.changing_dir(parent)
    }

    /// The same for a request that may change who may search it.
    pub(crate) fn changing_access(&self, dir: Fid) -> DirChange<'_> {
        self.kept.names.lock().forget(dir);
        self.changing_dir(dir)
    }

    /// What a reply tells, for who asked; what can be known from it later is kept.
    pub(crate) fn found(
        &self,
        known: &Known,
        attr: Attr,
        asked: &Asked,
        parent: Option<Fid>,
    ) -> Found {
        let found = known.found(attr, asked, parent);
        if known.is_bare && found.grant != Grant::NONE {
            put(&mut self.kept.bare.lock(), attr.fid, found.grant);
        }
        if let Some(parent) = parent {
            self.keep_name_grant(parent, found.name_grant);
        }
        found
    }

    /// The same for a name that was made.
    pub(crate) fn made(&self, change: DirChange<'_>, known: &Known, attr: Attr) -> Found {
        let found = self.found(known, attr, change.asked(), Some(change.dir));
        change.tells(known.parent, found.name_grant);
        found
    }

    /// This client has made a directory.
    pub(crate) fn keep_made(&self, found: &Found) {
        if found.kind == FileType::Directory && !self.grant_left(&found.grant).is_zero() {
            self.kept.names.lock().made(&found.attr, found.grant);
        }
    }

    /// Something was told of a name in a directory.
    pub(crate) fn keep_name_grant(&self, parent: Fid, grant: Grant) {
        self.kept.names.lock().renew(parent, grant, |grant| self.grant_left(grant));
    }

    /// Whether a name is known to be missing, and the grant that says so.
    pub(crate) fn knows_absent(&self, ctx: &Ctx<'_>, parent: Fid, name: &[u8]) -> Option<Grant> {
        let grant = self.kept.names.lock().absence(parent, name, ctx.cred.uid)?;
        (!self.grant_left(&grant).is_zero()).then_some(grant)
    }

    /// Whether an inode is known to have no extended attributes.
    pub(crate) fn knows_bare(&self, fid: Fid) -> bool {
        let grant = self.kept.bare.lock().get(&fid).copied();
        grant.is_some_and(|grant| !self.grant_left(&grant).is_zero())
    }

    /// The attributes of a directory, if they are known.
    pub(crate) fn knows_dir(&self, fid: Fid) -> Option<Found> {
        let (attr, grant) = self.kept.changed.lock().get(&fid).copied()?;
        let counts = !self.grant_left(&grant).is_zero();
        counts.then_some(Found { attr, grant, name_grant: Grant::NONE })
    }
}
