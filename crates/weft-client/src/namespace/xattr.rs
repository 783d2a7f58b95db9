//! Extended attributes.

use crate::client::Client;
use crate::ctx::Ctx;
use crate::metrics::Op;
use weft_model::{ErrorKind, Fid, Result};
use weft_rpc::pb::mds;

impl Client {
    /// The value of an attribute.
    ///
    /// # Errors
    /// `NoData`, `Access`, `NotSupported`, and those of the MDT.
    pub fn getxattr(&self, ctx: &Ctx<'_>, fid: Fid, name: &[u8]) -> Result<Vec<u8>> {
        self.timed(Op::Xattr, || {
            if self.knows_bare(fid) {
                return Err(ErrorKind::NoData.into());
            }
            if name.starts_with(b"system.") {
                self.tell_deferred(fid, &self.patience(ctx))?;
            }
            let request = |cred| mds::GetXattr { cred, fid: fid.0, name: name.to_vec() };
            Ok(self.ask_as(ctx, fid, request)?.value)
        })
    }

    /// Sets an attribute. `flags`: `XATTR_CREATE` 1, `XATTR_REPLACE` 2. `kill_sgid`: a change of the
    /// access list by somebody outside the group takes the set-gid bit away.
    ///
    /// # Errors
    /// `Exists`, `NoData`, `TooBig`, `Perm`, `NotSupported`, and those of the MDT.
    pub fn setxattr(
        &self,
        ctx: &Ctx<'_>,
        fid: Fid,
        name: &[u8],
        value: &[u8],
        flags: u32,
        kill_sgid: bool,
    ) -> Result<()> {
        self.timed(Op::Xattr, || {
            self.tell_deferred(fid, &self.patience(ctx))?;
            let request = |cred| mds::SetXattr {
                cred,
                fid: fid.0,
                name: name.to_vec(),
                value: value.to_vec(),
                flags,
                kill_sgid,
            };
            // Access lists say who may search a directory.
            let _change = self.changing_access(fid);
            let outcome = self.ask_as(ctx, fid, request).map(|_| ());
            // Also after an error: it may have been set. Answers on their way may not say so.
            self.grants.void(fid);
            outcome
        })
    }

    /// Names of all attributes the caller may see.
    ///
    /// # Errors
    /// `Access`, and those of the MDT.
    pub fn listxattr(&self, ctx: &Ctx<'_>, fid: Fid) -> Result<Vec<Vec<u8>>> {
        self.timed(Op::Xattr, || {
            if self.knows_bare(fid) {
                return Ok(Vec::new());
            }
            Ok(self.ask_as(ctx, fid, |cred| mds::ListXattr { cred, fid: fid.0 })?.names)
        })
    }

    /// Removes an attribute.
    ///
    /// # Errors
    /// `NoData`, `Perm`, and those of the MDT.
    pub fn removexattr(&self, ctx: &Ctx<'_>, fid: Fid, name: &[u8]) -> Result<()> {
        self.timed(Op::Xattr, || {
            self.tell_deferred(fid, &self.patience(ctx))?;
            let _change = self.changing_access(fid);
            let request = |cred| mds::RemoveXattr { cred, fid: fid.0, name: name.to_vec() };
            self.ask_as(ctx, fid, request).map(|_| ())
        })
    }
}
