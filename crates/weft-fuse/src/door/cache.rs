//! What the kernel may keep under the client's grants, and how it is taken back.
//!
//! Lifetimes are told to the kernel while *publishing*: from the moment a grant is found to count
//! until the reply was handed over. A recall waits for those who are publishing just then, so that
//! what it takes back has reached the kernel, and whoever publishes later finds the grant void.
//! Design: `docs/design/0004-grants.md`.

use crate::kernel::{Device, Notifier, abi};
use parking_lot::{ArcRwLockReadGuard, Mutex, RawRwLock, RwLock};
use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use weft_client::{Keeping, Recalled};
use weft_model::{DataVersion, Fid, Timespec};

/// No grant outlives its recall by more than this, whatever the kernel does.
const TERM: Duration = Duration::from_secs(1);
/// Files whose pages are remembered as of some version, beside those that are open.
const MAX_KNOWN: usize = 65_536;

thread_local! {
    static PUBLISHING: RefCell<Option<ArcRwLockReadGuard<RawRwLock, ()>>> =
        const { RefCell::new(None) };
}

/// The kernel's caches, as far as they have to be looked after.
pub(super) struct KernelCache {
    root: Fid,
    notifier: OnceLock<Notifier>,
    publishing: Arc<RwLock<()>>,
    pages: Mutex<HashMap<u64, Pages>>,
}

/// Pages of a file.
#[derive(Clone, Copy)]
struct Pages {
    /// What they are pages of.
    version: DataVersion,
    /// Handles that read through them.
    opens: u32,
}

impl KernelCache {
    pub(super) fn new(root: Fid) -> KernelCache {
        KernelCache {
            root,
            notifier: OnceLock::new(),
            publishing: Arc::default(),
            pages: Mutex::default(),
        }
    }

    /// The kernel answers on this device from now on.
    pub(super) fn attach(&self, device: &Arc<Device>) {
        self.notifier.get_or_init(|| Notifier::new(device.clone()));
    }

    /// This thread is going to tell the kernel lifetimes, until [`end_publishing`]. Between the two it
    /// must not wait for anything.
    pub(super) fn publish(&self) {
        PUBLISHING.with_borrow_mut(|held| {
            held.get_or_insert_with(|| self.publishing.read_arc());
        });
    }

    /// A file is opened to be read through the page cache. Whether the pages there are its own.
    pub(super) fn open(&self, node: u64, version: DataVersion) -> bool {
        let mut pages = self.pages.lock();
        if pages.len() >= MAX_KNOWN {
            pages.retain(|_, known| known.opens > 0);
        }
        let known = pages.get(&node).copied();
        let opens = known.map_or(0, |known| known.opens) + 1;
        pages.insert(node, Pages { version, opens });
        known.is_some_and(|known| known.version == version)
    }

    /// An earlier process has opened such a file. What pages there are is not known.
    pub(super) fn opened_before(&self, node: u64) {
        let never = Timespec { secs: 0, nanos: 0 };
        let version = DataVersion { size: u64::MAX, mtime: never, ctime: never, change: 0 };
        let mut pages = self.pages.lock();
        pages.entry(node).or_insert(Pages { version, opens: 0 }).opens += 1;
    }

    /// Such a handle was closed.
    pub(super) fn close(&self, node: u64) {
        if let Some(known) = self.pages.lock().get_mut(&node) {
            known.opens = known.opens.saturating_sub(1);
        }
    }

    /// A file was written past the page cache. Reads that went on meanwhile may have left pages there
    /// from before.
    pub(super) fn written(&self, node: u64, offset: u64, len: u64) {
        let known = self.pages.lock().get(&node).copied();
        if known.is_some() && len > 0 {
            self.tell(|notifier| notifier.inval_inode(node, offset as i64, len as i64));
        }
    }

    fn tell(&self, act: impl FnOnce(&Notifier) -> io::Result<()>) -> bool {
        let Some(notifier) = self.notifier.get() else { return true };
        match act(notifier) {
            Ok(()) => true,
            // Nothing cached, or nothing mounted any more.
            Err(error) => {
                let done = [libc::ENOENT, libc::ENOTCONN, libc::ENODEV];
                error.raw_os_error().is_some_and(|code| done.contains(&code))
            }
        }
    }
}

impl Keeping for KernelCache {
    fn drop_granted(&self, recalled: &[Recalled]) {
        drop(self.publishing.write());
        let mut dropped = true;
        for Recalled { fid, is_dir } in recalled {
            let node = if *fid == self.root { abi::ROOT_ID } else { fid.0 };
            let from = if *is_dir { -1 } else { 0 };
            dropped &= self.tell(|notifier| notifier.inval_inode(node, from, 0));
        }
        if recalled.iter().any(|recalled| recalled.is_dir) {
            dropped &= self.tell(Notifier::expire_all_entries);
        }
        if !dropped {
            // An older kernel. What it was told ends by itself.
            std::thread::sleep(TERM);
        }
    }
}

/// The kernel has been told.
pub(super) fn end_publishing() {
    PUBLISHING.with_borrow_mut(|held| drop(held.take()));
}

/// Whether this thread still has to call [`end_publishing`].
pub(super) fn is_publishing() -> bool {
    PUBLISHING.with_borrow(|held| held.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(size: u64) -> DataVersion {
        let time = Timespec { secs: 1, nanos: 0 };
        DataVersion { size, mtime: time, ctime: time, change: 0 }
    }

    #[test]
    fn pages_are_kept_for_the_same_version_only() {
        let cache = KernelCache::new(Fid::ROOT);
        assert!(!cache.open(7, version(1)));
        cache.close(7);
        assert!(cache.open(7, version(1)));
        cache.close(7);
        assert!(!cache.open(7, version(2)));
        assert!(cache.open(7, version(2)));
    }

    #[test]
    fn a_recall_waits_for_those_who_publish() {
        let cache = Arc::new(KernelCache::new(Fid::ROOT));
        cache.publish();
        cache.publish();
        let recalling = cache.clone();
        let recall = std::thread::spawn(move || {
            recalling.drop_granted(&[Recalled { fid: Fid(9), is_dir: false }]);
        });
        std::thread::sleep(Duration::from_millis(50));
        assert!(!recall.is_finished());
        end_publishing();
        recall.join().unwrap();
    }
}
