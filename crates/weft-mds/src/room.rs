//! Which requests make the store grow. They are refused while only the reserve of the disk is left; all
//! others, above all those that make room, go on: unlink, truncation, closing.

use crate::ops::rename::WHITEOUT;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use weft_model::Result;
use weft_rpc::Request;
use weft_rpc::pb::mds;

/// The disk's room, and whether somebody has missed some.
pub struct Room {
    admit: Box<dyn Fn(u64) -> Result<()> + Send + Sync>,
    missed: AtomicBool,
    /// Inodes when room was made last.
    inodes: AtomicU64,
}

impl Room {
    /// `admit` says whether the store may grow by so many bytes.
    pub fn new(admit: Box<dyn Fn(u64) -> Result<()> + Send + Sync>) -> Room {
        Room { admit, missed: AtomicBool::new(false), inodes: AtomicU64::new(u64::MAX) }
    }

    /// Asks for `bytes` more.
    ///
    /// # Errors
    /// `NoSpace`.
    pub fn admit(&self, bytes: u64) -> Result<()> {
        (self.admit)(bytes).inspect_err(|_| self.missed.store(true, Ordering::Relaxed))
    }

    /// Whether room should be made: some was missed, and one name of a hundred has gone since the last
    /// time. Removed names take room until the store has rewritten its files, which it does in its own
    /// time, and not at all while nothing is written to it.
    pub fn is_worth_while(&self, inodes: u64) -> bool {
        if !self.missed.swap(false, Ordering::Relaxed) {
            return false;
        }
        let last = self.inodes.load(Ordering::Relaxed);
        let worth = inodes < last - last / 100;
        if worth || inodes > last {
            self.inodes.store(inodes, Ordering::Relaxed);
        }
        worth
    }
}

/// What a name with its inode and the answer take in the log, rounded up.
const ENTRY: u64 = 1 << 10;

/// Bytes to ask the disk for before a request is carried out, if it makes the store grow.
pub fn wanted(request: &Request) -> Option<u64> {
    use Request as Q;
    match request {
        Q::Create(_) | Q::Mknod(_) | Q::Mkdir(_) | Q::Tmpfile(_) | Q::Link(_) => Some(ENTRY),
        Q::Symlink(r) => Some(ENTRY + r.target.len() as u64),
        Q::Rename(r) if r.flags & WHITEOUT != 0 => Some(ENTRY),
        Q::UpdateWritten(mds::UpdateWritten { written: Some(written), .. })
        | Q::Fsync(mds::Fsync { written: Some(written), .. })
        | Q::Close(mds::Close { written: Some(written), .. })
            if !written.data.is_empty() =>
        {
            Some(written.data.iter().map(|extent| ENTRY + extent.data.len() as u64).sum())
        }
        Q::SetXattr(r) => Some(ENTRY + r.value.len() as u64),
        _ => None,
    }
}
