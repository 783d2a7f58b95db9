//! From a path to an inode, for commands and tests; doors walk by themselves.

use crate::client::Client;
use crate::ctx::Ctx;
use crate::namespace::entry::Found;
use weft_model::{Fid, Result};

impl Client {
    /// Attributes of what `path` names, from the root of the mount. Symbolic links are not followed:
    /// one in the middle of the path is `NotDir`. `..` at the root stays there.
    ///
    /// # Errors
    /// As [`Client::lookup`].
    pub fn walk(&self, ctx: &Ctx<'_>, path: &[u8]) -> Result<Found> {
        self.walk_from(ctx, self.root(), path)
    }

    pub(crate) fn walk_from(&self, ctx: &Ctx<'_>, root: Fid, path: &[u8]) -> Result<Found> {
        let mut trail = Vec::new();
        for name in path.split(|&byte| byte == b'/') {
            let here = trail.last().map_or(root, |found: &Found| found.fid);
            match name {
                b"" | b"." => {}
                b".." => drop(trail.pop()),
                name => trail.push(self.lookup(ctx, here, name)?),
            }
        }
        match trail.pop() {
            Some(attr) => Ok(attr),
            None => self.getattr(ctx, root),
        }
    }
}
