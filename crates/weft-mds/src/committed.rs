//! Committed state: the store with the cache in front. What is read here has happened and stays.

use crate::cache::Cache;
use crate::keys;
use crate::record::{self, Dirent, Inode};
use std::sync::Arc;
use weft_model::{Fid, Result};
use weft_store::Kv;

/// The store and its cache.
pub struct Committed {
    /// The store.
    pub kv: Arc<dyn Kv>,
    /// What is in memory of it.
    pub cache: Cache,
}

impl Committed {
    /// An inode, if it exists.
    ///
    /// # Errors
    /// Those of the store.
    pub fn inode(&self, fid: Fid) -> Result<Option<Arc<Inode>>> {
        let ticket = match self.cache.inode(fid) {
            Ok(inode) => return Ok(Some(inode)),
            Err(ticket) => ticket,
        };
        let key = keys::inode(fid);
        let mut found = None;
        self.kv.get_with(&key, &mut |value| found = Some(record::decode::<Inode>(&key, value)))?;
        let Some(inode) = found.transpose()?.map(Arc::new) else { return Ok(None) };
        self.cache.offer_inode(fid, inode.clone(), ticket);
        Ok(Some(inode))
    }

    /// An entry, if it exists.
    ///
    /// # Errors
    /// Those of the store.
    pub fn dirent(&self, dir: Fid, name: &[u8]) -> Result<Option<Dirent>> {
        let ticket = match self.cache.dirent(dir, name) {
            Ok(dirent) => return Ok(Some(dirent)),
            Err(ticket) => ticket,
        };
        let key = keys::dirent(dir, name);
        let mut found = None;
        self.kv.get_with(&key, &mut |value| found = Some(record::decode::<Dirent>(&key, value)))?;
        let Some(dirent) = found.transpose()? else { return Ok(None) };
        self.cache.offer_dirent(dir, name, dirent, ticket);
        Ok(Some(dirent))
    }
}
