//! The virtual extended attributes; what they are is told in [`crate::door`].

use super::Door;
use serde_json::json;
use weft_client::Ctx;
use weft_model::layout::LayoutSpec;
use weft_model::{ErrorKind, Fid, FsError, Result};

const PREFIX: &[u8] = b"weft.";

/// Whether an attribute is one of ours.
pub(super) fn is_virtual(name: &[u8]) -> bool {
    name.starts_with(PREFIX)
}

impl Door {
    /// The value of a virtual attribute.
    pub(super) fn virtual_xattr(&self, ctx: &Ctx<'_>, fid: Fid, name: &[u8]) -> Result<Vec<u8>> {
        let no_data = || FsError::from(ErrorKind::NoData);
        match &name[PREFIX.len()..] {
            b"fid" => Ok(fid.to_string().into_bytes()),
            b"path" => self.client.fid_to_path(ctx, fid),
            b"layout" => json(&self.client.get_layout(ctx, fid)?.layout.ok_or_else(no_data)?),
            b"spec" => json(&self.client.get_layout(ctx, fid)?.spec.ok_or_else(no_data)?),
            b"stat" => self.stat(ctx, fid),
            _ => Err(no_data()),
        }
    }

    fn stat(&self, ctx: &Ctx<'_>, fid: Fid) -> Result<Vec<u8>> {
        // Not the attributes that come with the layout: these are exact as to the size, and who writes the
        // file has said so when they are told.
        let attr = self.client.getattr(ctx, fid)?.attr;
        let placed = self.client.get_layout(ctx, fid)?;
        json(&json!({
            "fid": fid.to_string(),
            "mdt": self.client.map().mdt_of(fid),
            "attr": attr,
            "inline": placed.inline,
            "layout": placed.layout,
            "spec": placed.spec,
        }))
    }

    /// Sets a virtual attribute. Which of the two names is used says what the caller believes the
    /// inode to be, and the MDS knows.
    pub(super) fn set_virtual_xattr(
        &self,
        ctx: &Ctx<'_>,
        fid: Fid,
        name: &[u8],
        value: &[u8],
    ) -> Result<()> {
        if !matches!(&name[PREFIX.len()..], b"layout.set" | b"spec.set") {
            return Err(ErrorKind::NotSupported.into());
        }
        let spec: LayoutSpec = serde_json::from_slice(value)
            .map_err(|error| FsError::new(ErrorKind::Invalid, "decode layout").because(error))?;
        self.client.set_layout(ctx, fid, &spec)
    }
}

fn json(value: &impl serde::Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(value)
        .map_err(|error| FsError::new(ErrorKind::Invalid, "encode JSON").because(error))
}
