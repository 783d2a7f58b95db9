//! Making names: mknod, mkdir, symlink, link; and reading a link.

use super::entry::{Found, Known};
use crate::client::Client;
use crate::ctx::Ctx;
use crate::metrics::Op;
use weft_model::layout::LayoutSpec;
use weft_model::{Fid, Result};
use weft_rpc::pb::mds;

impl Client {
    /// Makes a pipe, socket, device or regular file. `mode` has the type bits; the umask is the
    /// caller's. `layout` is for regular files.
    ///
    /// # Errors
    /// `Exists`, `NotDir`, `Access`, `Perm`, `NoSpace`, and those of the MDT.
    pub fn mknod(
        &self,
        ctx: &Ctx<'_>,
        parent: Fid,
        name: &[u8],
        mode: u32,
        rdev: u32,
        layout: Option<&LayoutSpec>,
    ) -> Result<Found> {
        self.timed(Op::Mknod, || {
            let change = self.making(parent, name);
            let entry = self.ask_as(ctx, parent, |cred| mds::Mknod {
                cred,
                parent: parent.0,
                name: name.to_vec(),
                mode,
                umask: ctx.umask,
                rdev,
                layout: layout.map(Into::into),
            })?;
            let known = Known::try_from(entry)?;
            Ok(self.made(change, &known, known.attr))
        })
    }

    /// Makes a directory.
    ///
    /// # Errors
    /// `Exists`, `NotDir`, `Access`, `TooManyLinks`, and those of the MDT.
    pub fn mkdir(&self, ctx: &Ctx<'_>, parent: Fid, name: &[u8], mode: u32) -> Result<Found> {
        self.timed(Op::Mkdir, || {
            let change = self.making(parent, name);
            let entry = self.ask_as(ctx, parent, |cred| mds::Mkdir {
                cred,
                parent: parent.0,
                name: name.to_vec(),
                mode,
                umask: ctx.umask,
            })?;
            let known = Known::try_from(entry)?;
            let found = self.made(change, &known, known.attr);
            self.keep_made(&found);
            Ok(found)
        })
    }

    /// Makes a symbolic link to `target`.
    ///
    /// # Errors
    /// `Exists`, `NotDir`, `Access`, `NameTooLong`, and those of the MDT.
    pub fn symlink(&self, ctx: &Ctx<'_>, parent: Fid, name: &[u8], target: &[u8]) -> Result<Found> {
        self.timed(Op::Symlink, || {
            let change = self.making(parent, name);
            let entry = self.ask_as(ctx, parent, |cred| mds::Symlink {
                cred,
                parent: parent.0,
                name: name.to_vec(),
                target: target.to_vec(),
            })?;
            let known = Known::try_from(entry)?;
            Ok(self.made(change, &known, known.attr))
        })
    }

    /// Gives an inode one more name.
    ///
    /// # Errors
    /// `Exists`, `Perm` for a directory, `TooManyLinks`, `CrossDevice` when the directory and the
    /// inode are on two MDTs, and those of the MDT.
    pub fn link(&self, ctx: &Ctx<'_>, fid: Fid, parent: Fid, name: &[u8]) -> Result<Found> {
        self.timed(Op::Link, || {
            let own = self.own_writes(fid);
            let change = self.making(parent, name);
            let entry = self.ask_as(ctx, parent, |cred| mds::Link {
                cred,
                fid: fid.0,
                parent: parent.0,
                name: name.to_vec(),
            })?;
            let known = Known::try_from(entry)?;
            let attr = self.settle(&known, own.as_ref(), &self.patience(ctx))?;
            Ok(self.made(change, &known, attr))
        })
    }

    /// The target of a symbolic link.
    ///
    /// # Errors
    /// `Invalid` when it is none, `Stale`, and those of the MDT.
    pub fn readlink(&self, ctx: &Ctx<'_>, fid: Fid) -> Result<Vec<u8>> {
        self.timed(Op::Readlink, || {
            Ok(self.ask(fid, mds::Readlink { fid: fid.0 }, &self.patience(ctx))?.target)
        })
    }
}
