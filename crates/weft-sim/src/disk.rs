//! Disks of a process: the stores in memory, with the moments at which a process can be killed.

use crate::plan::Sabotage;
use crate::process::Process;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use weft_model::{ObjectId, Result};
use weft_store::kv::{VerifyReport, Visit};
use weft_store::objects::{ObjectStat, ScrubReport, Seek, StatFs};
use weft_store::{Batch, Check, Kv, KvStats, MemKv, MemObjects, ObjectStore};

/// How often a sabotaged disk loses what it was given.
const SABOTAGE_RATE: u64 = 40;

/// One process's way to a disk. The process may die before or after each change.
#[derive(Clone)]
pub struct Disk<T> {
    /// What is on it, whoever lives.
    pub inner: Arc<T>,
    /// Who uses it.
    pub process: Process,
    /// Whether changes are moments to die at.
    pub mortal: bool,
}

impl<T> Disk<T> {
    fn change<R>(&self, what: &str, change: impl FnOnce(&T) -> R) -> R {
        self.process.check();
        let world = &self.process.world;
        let rate = if self.mortal { world.plan.kill_at_disk } else { 0 };
        if world.fault(rate) {
            self.process.die(&format!("before {what}"));
        }
        let changed = change(&self.inner);
        if world.fault(rate) {
            self.process.die(&format!("after {what}"));
        }
        changed
    }

    fn look(&self) -> &T {
        self.process.check();
        &self.inner
    }

    fn loses(&self, kind: Sabotage) -> bool {
        let world = &self.process.world;
        world.plan.sabotage == Some(kind) && world.fault(SABOTAGE_RATE)
    }

    fn skips_syncs(&self) -> bool {
        self.process.world.plan.sabotage == Some(Sabotage::SkipSyncs)
    }
}

impl Kv for Disk<MemKv> {
    fn get_with(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.look().get_with(key, read)
    }

    fn scan(&self, from: &[u8], until: &[u8], visit: &mut Visit<'_>) -> Result<()> {
        self.look().scan(from, until, visit)
    }

    fn write(&self, batch: &Batch) -> Result<u64> {
        if self.loses(Sabotage::LoseBatches) {
            return Ok(self.inner.stats().written_lsn);
        }
        self.change("a batch", |kv| kv.write(batch))
    }

    fn sync(&self) -> Result<u64> {
        if self.skips_syncs() {
            return Ok(self.inner.stats().written_lsn);
        }
        self.change("a sync of the log", |kv| kv.sync())
    }

    fn checkpoint(&self, dir: &Path) -> Result<()> {
        self.look().checkpoint(dir)
    }

    fn verify(
        &self,
        from: &[u8],
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<VerifyReport> {
        self.look().verify(from, progress)
    }

    fn stats(&self) -> KvStats {
        self.inner.stats()
    }
}

impl ObjectStore for Disk<MemObjects> {
    fn write(
        &self,
        id: ObjectId,
        offset: u64,
        sums: &[u32],
        data: &[u8],
        check: Check,
    ) -> Result<()> {
        if self.loses(Sabotage::LoseWrites) {
            return Ok(());
        }
        self.change("a write", |objects| objects.write(id, offset, sums, data, check))
    }

    fn read(
        &self,
        id: ObjectId,
        offset: u64,
        buffer: &mut [u8],
        sums: &mut Vec<u32>,
        check: Check,
    ) -> Result<usize> {
        self.look().read(id, offset, buffer, sums, check)
    }

    fn truncate(&self, id: ObjectId, size: u64) -> Result<()> {
        self.change("a truncation", |objects| objects.truncate(id, size))
    }

    fn punch(&self, id: ObjectId, offset: u64, len: u64) -> Result<()> {
        self.change("a punch", |objects| objects.punch(id, offset, len))
    }

    fn allocate(&self, id: ObjectId, offset: u64, len: u64, keep_size: bool) -> Result<()> {
        self.change("an allocation", |objects| objects.allocate(id, offset, len, keep_size))
    }

    fn seek(&self, id: ObjectId, offset: u64, what: Seek) -> Result<u64> {
        self.look().seek(id, offset, what)
    }

    fn stat(&self, id: ObjectId) -> Result<Option<ObjectStat>> {
        self.look().stat(id)
    }

    fn sync(&self, ids: &[ObjectId]) -> Result<()> {
        if self.skips_syncs() {
            return Ok(());
        }
        self.change("a sync", |objects| objects.sync(ids))
    }

    fn sync_all(&self) -> Result<()> {
        self.change("a sync of all", |objects| objects.sync_all())
    }

    fn destroy(&self, id: ObjectId) -> Result<()> {
        self.change("a removal", |objects| objects.destroy(id))
    }

    fn list(&self, after: Option<ObjectId>, limit: usize) -> Result<Vec<ObjectId>> {
        self.look().list(after, limit)
    }

    fn statfs(&self) -> Result<StatFs> {
        self.look().statfs()
    }

    fn scrub(
        &self,
        id: ObjectId,
        pace: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<ScrubReport> {
        self.look().scrub(id, pace)
    }
}
