//! What the parts of a target cost, in microseconds per operation on one thread.
//!
//! `cargo run --release -p weft-store --example store_bench -- [directory]`

use std::hint::black_box;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;
use weft_model::{Fid, ObjectId, Result, TargetId, checksum};
use weft_store::kv::Batch;
use weft_store::superblock::Uuid;
use weft_store::{Check, FormatParams, ObjectStore, OpenParams, Target};

/// Runs `operation` with 0.. and prints the mean, and the 99th percentile.
fn measure(name: &str, count: u64, mut operation: impl FnMut(u64) -> Result<()>) -> Result<()> {
    let mut times = Vec::with_capacity(count as usize);
    let start = Instant::now();
    for number in 0..count {
        let before = Instant::now();
        operation(number)?;
        times.push(before.elapsed());
    }
    let mean = start.elapsed().as_secs_f64() * 1e6 / count as f64;
    times.sort_unstable();
    let p99 = times[times.len() * 99 / 100].as_secs_f64() * 1e6;
    println!("{name:44} {mean:10.2} us   p99 {p99:10.2} us   {:10.0} /s", 1e6 / mean);
    Ok(())
}

fn open(dir: &Path, target: TargetId) -> Result<Target> {
    let dir = dir.join(target.to_string());
    Target::format(&dir, &FormatParams { cluster: Uuid(1), target, created: 0, force: true })?;
    Target::open(&dir, &OpenParams::default())
}

fn scatter(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn entry_key(number: u64) -> Vec<u8> {
    let name = format!("file{:016x}", scatter(number));
    [b"d".as_slice(), &(number % 64).to_be_bytes(), name.as_bytes()].concat()
}

fn inode_key(number: u64) -> Vec<u8> {
    [b"i".as_slice(), &scatter(number).to_be_bytes()].concat()
}

fn key_value(target: &Target) -> Result<()> {
    const FILES: u64 = 300_000;
    let kv = target.kv();
    let mut inode = [0u8; 200];
    inode[..100].iter_mut().enumerate().for_each(|(at, byte)| *byte = scatter(at as u64) as u8);
    let mut batch = Batch::new();
    measure("kv: batch of dirent + inode 200 B + reply", FILES, |number| {
        batch.clear();
        batch.put(&entry_key(number), &scatter(number).to_be_bytes());
        batch.put(&inode_key(number), &inode);
        batch.put(&[b"r".as_slice(), &(number % 512).to_be_bytes()].concat(), &inode[..40]);
        kv.write(&batch).map(drop)
    })?;
    measure("kv: get inode", FILES, |number| {
        let found = kv.get_with(&inode_key(scatter(number) % FILES), &mut |value| {
            black_box(value);
        })?;
        assert!(found);
        Ok(())
    })?;
    measure("kv: get, nothing there", FILES, |number| {
        kv.get_with(&inode_key(FILES + number), &mut |_| {}).map(drop)
    })?;
    let mut seen = 0u64;
    let start = Instant::now();
    kv.scan(b"d", b"e", &mut |key, value| {
        black_box((key, value));
        seen += 1;
        ControlFlow::Continue(())
    })?;
    println!(
        "{:44} {:10.2} us",
        "kv: scan, per entry",
        start.elapsed().as_secs_f64() * 1e6 / seen as f64
    );
    measure("kv: batch + sync", 500, |number| {
        kv.write(Batch::new().put(b"s", &number.to_le_bytes()))?;
        kv.sync().map(drop)
    })
}

fn objects(store: &dyn ObjectStore) -> Result<()> {
    let object = |number| ObjectId { fid: Fid::new(3, number), index: 0 };
    let data: Vec<u8> = (0..1u64 << 20).map(|at| scatter(at) as u8).collect();
    let (large, small) = (checksum::compute(0, &data), checksum::compute(0, &data[..4096]));
    let odd = checksum::compute(100, &data[..1000]);
    let (mut buffer, mut sums) = (vec![0u8; 1 << 20], Vec::with_capacity(300));

    measure("object: first write, 4 KiB", 5000, |number| {
        store.write(object(number + 10), 0, &small, &data[..4096], Check::Trust)
    })?;
    let id = object(1);
    measure("object: write 1 MiB, new blocks", 512, |number| {
        store.write(id, number << 20, &large, &data, Check::Trust)
    })?;
    measure("object: write 1 MiB, in page cache", 1024, |number| {
        store.write(id, (number % 512) << 20, &large, &data, Check::Trust)
    })?;
    measure("object: write 1 MiB, verified here", 512, |number| {
        store.write(id, (number % 512) << 20, &large, &data, Check::Verify)
    })?;
    measure("object: write 4 KiB", 50_000, |number| {
        store.write(id, scatter(number) % 131_072 * 4096, &small, &data[..4096], Check::Trust)
    })?;
    measure("object: write 1000 B inside a block", 50_000, |number| {
        let offset = scatter(number) % 131_072 * 4096 + 100;
        store.write(id, offset, &odd, &data[..1000], Check::Trust)
    })?;
    measure("object: read 1 MiB", 1024, |number| {
        store.read(id, (number % 512) << 20, &mut buffer, &mut sums, Check::Trust).map(drop)
    })?;
    measure("object: read 1 MiB, verified here", 1024, |number| {
        store.read(id, (number % 512) << 20, &mut buffer, &mut sums, Check::Verify).map(drop)
    })?;
    measure("object: read 4 KiB", 50_000, |number| {
        let offset = scatter(number) % 131_072 * 4096;
        store.read(id, offset, &mut buffer[..4096], &mut sums, Check::Trust).map(drop)
    })?;
    store.sync_all()?;
    measure("object: write 4 KiB + sync", 300, |number| {
        store.write(id, number * 4096, &small, &data[..4096], Check::Trust)?;
        store.sync(&[id])
    })?;
    measure("object: destroy", 5000, |number| store.destroy(object(number + 10)))
}

fn main() -> Result<()> {
    let dir =
        std::env::args_os().nth(1).map_or_else(|| "/tmp/weft-store-bench".into(), PathBuf::from);
    let target = open(&dir, TargetId::mdt(0))?;
    key_value(&target)?;
    target.close()?;
    let target = open(&dir, TargetId::ost(0))?;
    if let Some(store) = target.objects() {
        objects(&*store)?;
    }
    target.close()
}
