//! Layouts as users see and set them.

use crate::client::Client;
use crate::ctx::Ctx;
use crate::metrics::Op;
use weft_model::layout::LayoutSpec;
use weft_model::{Attr, ErrorKind, Fid, FsError, Layout, Result};
use weft_rpc::pb::mds;

/// The layout of a file or what a directory hands down.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LayoutOf {
    /// The inode's attributes, as the MDT has them.
    pub attr: Attr,
    /// Of a file.
    pub layout: Option<Layout>,
    /// Of a directory that has one of its own.
    pub spec: Option<LayoutSpec>,
    /// The MDT has the bytes of a small file: the layout says where they would go.
    pub inline: bool,
}

impl Client {
    /// The layout of a file, or what a directory hands down to new entries.
    ///
    /// # Errors
    /// `Stale`, and those of the MDT.
    pub fn get_layout(&self, ctx: &Ctx<'_>, fid: Fid) -> Result<LayoutOf> {
        self.timed(Op::Layout, || {
            let reply = self.ask(fid, mds::GetLayout { fid: fid.0 }, &self.patience(ctx))?;
            let missing = || FsError::new(ErrorKind::Protocol, "get layout");
            Ok(LayoutOf {
                attr: reply.attr.ok_or_else(missing)?.try_into()?,
                layout: reply.layout.map(Layout::try_from).transpose()?,
                spec: reply.spec.map(LayoutSpec::try_from).transpose()?,
                inline: reply.inline,
            })
        })
    }

    /// Sets what a directory hands down, or the layout of a file that has no data yet.
    ///
    /// # Errors
    /// `Invalid` for an impossible layout, `Busy` or `NotSupported` for a file with data, `Perm`, and
    /// those of the MDT.
    pub fn set_layout(&self, ctx: &Ctx<'_>, fid: Fid, spec: &LayoutSpec) -> Result<()> {
        self.timed(Op::Layout, || {
            let _change = self.changing_dir(fid);
            self.ask_as(ctx, fid, |cred| mds::SetLayout {
                cred,
                fid: fid.0,
                spec: Some(spec.into()),
            })?;
            Ok(())
        })
    }

    /// A path of the inode, relative to the root of its volume; one of possibly several.
    ///
    /// # Errors
    /// `Stale` or `NotFound` when it has no name any more, and those of the MDT.
    pub fn fid_to_path(&self, ctx: &Ctx<'_>, fid: Fid) -> Result<Vec<u8>> {
        self.timed(Op::Layout, || {
            Ok(self.ask(fid, mds::FidToPath { fid: fid.0 }, &self.patience(ctx))?.path)
        })
    }
}
