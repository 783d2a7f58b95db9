//! What the tests share.
#![allow(dead_code, missing_docs)]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use weft_model::{Fid, ObjectId, TargetId, checksum};
use weft_store::superblock::Uuid;
use weft_store::{Check, FormatParams, ObjectStore, OpenParams, Target};

pub const CLUSTER: Uuid = Uuid(0xc1);

pub fn format(dir: &Path, target: TargetId) {
    let params = FormatParams { cluster: CLUSTER, target, created: 1, force: false };
    Target::format(dir, &params).unwrap();
}

/// Opens without a reserve and with a syncer that stays out of the way.
pub fn open(dir: &Path) -> Target {
    let mut params = OpenParams { reserve: Some(0), ..OpenParams::default() };
    params.objects.sync_every = Duration::from_secs(3600);
    // A test beside this one may be between fork and exec, with a copy of the lock's descriptor.
    for _ in 0..100 {
        match Target::open(dir, &params) {
            Err(error) if error.kind == weft_model::ErrorKind::Busy => {
                std::thread::sleep(Duration::from_millis(10));
            }
            opened => return opened.unwrap(),
        }
    }
    Target::open(dir, &params).unwrap()
}

pub fn objects(target: &Target) -> Arc<dyn ObjectStore> {
    target.objects().unwrap()
}

pub fn object(number: u64) -> ObjectId {
    ObjectId { fid: Fid::new(2, number), index: 0 }
}

pub fn write(store: &dyn ObjectStore, id: ObjectId, offset: u64, data: &[u8]) {
    store.write(id, offset, &checksum::compute(offset, data), data, Check::Trust).unwrap();
}

/// Reads with checks on both sides.
pub fn read(store: &dyn ObjectStore, id: ObjectId, offset: u64, len: usize) -> Vec<u8> {
    let mut sums = Vec::new();
    let mut seen = vec![0xee; len];
    let count = store.read(id, offset, &mut seen, &mut sums, Check::Trust).unwrap();
    seen.truncate(count);
    checksum::verify(offset, &seen, &sums).unwrap();
    let mut again = vec![0xdd; len];
    let count = store.read(id, offset, &mut again, &mut sums, Check::Verify).unwrap();
    assert_eq!(again[..count], seen[..]);
    checksum::verify(offset, &again[..count], &sums).unwrap();
    seen
}

pub fn scrub(store: &dyn ObjectStore, id: ObjectId) -> Vec<u64> {
    store.scrub(id, &mut |_| std::ops::ControlFlow::Continue(())).unwrap().damaged
}

/// Makes the next open believe that the machine was started since.
pub fn pretend_power_cut(dir: &Path) {
    std::fs::write(dir.join("state"), "open 11111111-another-boot end\n").unwrap();
}

/// Path of the data file of an object; its checksums are beside it.
pub fn data_path(dir: &Path, id: ObjectId) -> std::path::PathBuf {
    (0..256)
        .map(|n| dir.join(format!("objects/{n:02x}/{id}")))
        .find(|path| path.exists())
        .expect("the object has a file")
}

pub fn flip(path: &Path, at: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[at] ^= 0x10;
    std::fs::write(path, bytes).unwrap();
}
