//! Removing and moving names: unlink, rmdir, rename.

use crate::client::Client;
use crate::ctx::Ctx;
use crate::metrics::Op;
use crate::namespace::kept::DirChange;
use weft_model::{Attr, Fid, Result};
use weft_rpc::pb::mds;

impl Client {
    /// Removes the name of something that is no directory. The inode lives on while it is open.
    ///
    /// # Errors
    /// `NotFound`, `IsDir`, `Access`, `Perm`, and those of the MDT.
    pub fn unlink(&self, ctx: &Ctx<'_>, parent: Fid, name: &[u8]) -> Result<()> {
        self.timed(Op::Unlink, || {
            let change = self.changing_dir(parent);
            let request = |cred| mds::Unlink { cred, parent: parent.0, name: name.to_vec() };
            self.removed(change, self.ask_as(ctx, parent, request)?)
        })
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// `NotFound`, `NotDir`, `NotEmpty`, `Access`, `Perm`, and those of the MDT.
    pub fn rmdir(&self, ctx: &Ctx<'_>, parent: Fid, name: &[u8]) -> Result<()> {
        self.timed(Op::Rmdir, || {
            let change = self.changing_dir(parent);
            let request = |cred| mds::Rmdir { cred, parent: parent.0, name: name.to_vec() };
            self.removed(change, self.ask_as(ctx, parent, request)?)
        })
    }

    /// What the answer to a removal tells of the directory.
    fn removed(&self, change: DirChange<'_>, reply: mds::Removed) -> Result<()> {
        let parent = reply.parent.map(Attr::try_from).transpose()?;
        let fid = parent.map_or(Fid(0), |parent| parent.fid);
        let grant = change.asked().grant(fid, reply.parent_grant_ms);
        self.keep_name_grant(fid, grant);
        change.tells(parent, grant);
        Ok(())
    }

    /// Moves a name, replacing what is at the new one. `flags`: `RENAME_NOREPLACE` 1,
    /// `RENAME_EXCHANGE` 2, `RENAME_WHITEOUT` 4 (leaves a character device 0/0 at the old one).
    ///
    /// # Errors
    /// `NotFound`, `Exists`, `NotEmpty`, `IsDir`, `NotDir`, `Loop`, `Invalid`, `CrossDevice` when the
    /// directories are on two MDTs, and those of the MDT.
    pub fn rename(
        &self,
        ctx: &Ctx<'_>,
        parent: Fid,
        name: &[u8],
        new_parent: Fid,
        new_name: &[u8],
        flags: u32,
    ) -> Result<()> {
        self.timed(Op::Rename, || {
            let _changes = (self.changing_dir(parent), self.making(new_parent, new_name));
            let request = |cred| mds::Rename {
                cred,
                parent: parent.0,
                name: name.to_vec(),
                new_parent: new_parent.0,
                new_name: new_name.to_vec(),
                flags,
            };
            self.ask_as(ctx, parent, request).map(|_| ())
        })
    }
}
