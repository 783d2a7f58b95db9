//! An object store without a server: a target in a directory of its own, for as long as it is surveyed.

use anyhow::Context;
use parking_lot::Mutex;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weft_eval::survey::Objects;
use weft_model::{Fid, ObjectId, TargetId, checksum};
use weft_store::objects::Check;
use weft_store::superblock::Uuid;
use weft_store::{FormatParams, ObjectStore, OpenParams, Target};

/// Objects of a scratch OST.
pub struct Store {
    objects: Arc<dyn ObjectStore>,
    /// Closed when its objects are removed.
    target: Mutex<Option<Target>>,
    dir: PathBuf,
}

impl Store {
    /// Formats and opens an OST in `dir/survey-ost.PID`.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn make(dir: &Path) -> anyhow::Result<Store> {
        let dir = dir.join(format!("survey-ost.{}", std::process::id()));
        let params = FormatParams {
            cluster: Uuid::random()?,
            target: TargetId::ost(0),
            created: 0,
            force: false,
        };
        Target::format(&dir, &params)?;
        let target = Target::open(&dir, &OpenParams::default())?;
        let objects = target.objects().context("an OST has objects")?;
        Ok(Store { objects, target: Mutex::new(Some(target)), dir })
    }
}

const fn id(object: u32) -> ObjectId {
    ObjectId { fid: Fid(1 << 32 | object as u64), index: 0 }
}

impl Objects for Store {
    fn write(&self, object: u32, data: &[u8], offset: u64) -> io::Result<()> {
        let sums = checksum::compute(offset, data);
        self.objects.write(id(object), offset, &sums, data, Check::Trust).map_err(io::Error::other)
    }

    fn read(&self, object: u32, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let mut sums = Vec::new();
        let read = self.objects.read(id(object), offset, buffer, &mut sums, Check::Trust);
        if read.map_err(io::Error::other)? != buffer.len() {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let damaged = |at| io::Error::new(ErrorKind::InvalidData, format!("damaged at {at}"));
        checksum::verify(offset, buffer, &sums).map_err(damaged)
    }

    fn sync(&self, object: u32) -> io::Result<()> {
        self.objects.sync(&[id(object)]).map_err(io::Error::other)
    }

    fn remove(&self) -> io::Result<()> {
        if let Some(target) = self.target.lock().take() {
            target.close().map_err(io::Error::other)?;
            std::fs::remove_dir_all(&self.dir)?;
        }
        Ok(())
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // After a failure; otherwise there is nothing left.
        let _ = self.remove();
    }
}
