//! The open inodes of a mount.

use super::OpenInode;
use crate::ahead::Advice;
use crate::flags::OpenFlags;
use crate::namespace::entry::Known;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use weft_model::{Fid, Timespec};

/// The open inodes of a mount, by FID.
#[derive(Default)]
pub struct InodeTable {
    inodes: Mutex<BTreeMap<Fid, Arc<OpenInode>>>,
}

impl InodeTable {
    /// The inode, if it is open here.
    pub(crate) fn get(&self, fid: Fid) -> Option<Arc<OpenInode>> {
        self.inodes.lock().get(&fid).cloned()
    }

    /// Takes note of a new handle.
    pub(crate) fn attach(
        &self,
        known: &Known,
        handle: u64,
        flags: OpenFlags,
        now: impl FnOnce() -> Timespec,
    ) -> Arc<OpenInode> {
        let mut inodes = self.inodes.lock();
        let inode = match inodes.get(&known.attr.fid) {
            Some(inode) => {
                inode.learn(known);
                inode.clone()
            }
            None => {
                let inode = Arc::new(OpenInode::new(known, now()));
                inodes.insert(known.attr.fid, inode.clone());
                inode
            }
        };
        inode.handles().insert(handle, flags);
        inode
    }

    /// Forgets a handle, and the inode with its last one. Whether there was such a handle.
    pub(crate) fn detach(&self, inode: &OpenInode, handle: u64) -> bool {
        let mut inodes = self.inodes.lock();
        let mut handles = inode.handles();
        let known = handles.remove(&handle).is_some();
        inode.ahead().advise(handle, Advice::Normal);
        if known && handles.is_empty() {
            inodes.remove(&inode.fid());
        }
        known
    }

    /// The inodes of one MDT.
    pub(crate) fn of_mdt(&self, is_there: impl Fn(Fid) -> bool) -> Vec<Arc<OpenInode>> {
        let inodes = self.inodes.lock();
        inodes.values().filter(|inode| is_there(inode.fid())).cloned().collect()
    }

    /// The inodes with unreported writes.
    pub(crate) fn dirty(&self) -> Vec<Arc<OpenInode>> {
        self.select(|inode| inode.state().unreported.is_dirty())
    }

    /// Some of the inodes.
    pub(crate) fn select(&self, chosen: impl Fn(&OpenInode) -> bool) -> Vec<Arc<OpenInode>> {
        self.inodes.lock().values().filter(|inode| chosen(inode)).cloned().collect()
    }

    /// Every open handle.
    pub(crate) fn all_handles(&self) -> Vec<(Arc<OpenInode>, u64)> {
        let inodes: Vec<_> = self.inodes.lock().values().cloned().collect();
        inodes
            .into_iter()
            .flat_map(|inode| {
                let handles: Vec<u64> = inode.handles().keys().copied().collect();
                handles.into_iter().map(move |handle| (inode.clone(), handle))
            })
            .collect()
    }
}
