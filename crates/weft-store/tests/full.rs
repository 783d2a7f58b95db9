//! A disk that is full: errors that say so, nothing lost, and work that goes on when there is
//! space again. Needs to mount a tmpfs and an ext4 image, so it does nothing where that fails.

mod common;

use common::*;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use weft_model::{ErrorKind, TargetId, checksum};
use weft_store::kv::{Batch, Profile};
use weft_store::{Check, Kv, OpenParams, RocksKv, Target};

struct Mount<'a>(&'a Path);

impl Drop for Mount<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

fn run(program: &str, arguments: &[&str]) -> bool {
    Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
}

fn tmpfs<'a>(dir: &'a Path, size: &str) -> Option<Mount<'a>> {
    let path = dir.to_str().unwrap();
    let done = run("mount", &["-t", "tmpfs", "-o", &format!("size={size}"), "none", path]);
    done.then_some(Mount(dir))
}

fn ext4<'a>(dir: &'a Path, image: &Path, size: u64) -> Option<Mount<'a>> {
    fs::File::create(image).unwrap().set_len(size).unwrap();
    let image = image.to_str().unwrap();
    let done = run("mkfs.ext4", &["-q", "-m", "0", image])
        && run("mount", &["-o", "loop", image, dir.to_str().unwrap()]);
    done.then_some(Mount(dir))
}

fn fill(path: &Path) {
    let mut file = fs::File::create(path).unwrap();
    let mut step = 1 << 20;
    while step > 0 {
        if std::io::Write::write_all(&mut file, &vec![0; step]).is_err() {
            step /= 2;
        }
    }
    let _ = file.sync_all();
}

fn store_survives(dir: &Path) {
    let kv =
        RocksKv::create(&dir.join("kv"), Profile { memtable_bytes: 1 << 20, log_bytes: 1 << 20 })
            .unwrap();
    let value = [7; 1000];
    let mut written = 0u64;
    let mut put = |kv: &RocksKv| {
        let result = kv.write(Batch::new().put(&written.to_be_bytes(), &value));
        written += u64::from(result.is_ok());
        result
    };
    assert!((0..100).all(|_| put(&kv).is_ok()));
    kv.sync().unwrap();
    let ballast = dir.join("ballast");
    fill(&ballast);
    let error = (0..100_000).find_map(|_| put(&kv).err()).expect("the disk is full");
    assert_eq!(error.kind, ErrorKind::NoSpace, "{error}");
    assert_eq!(put(&kv).unwrap_err().kind, ErrorKind::NoSpace);
    assert!(kv.get(&5u64.to_be_bytes()).unwrap().is_some());
    if let Err(error) = kv.sync() {
        assert_eq!(error.kind, ErrorKind::NoSpace, "{error}");
    }
    assert!(!kv.stats().poisoned);

    fs::remove_file(&ballast).unwrap();
    let start = Instant::now();
    while let Err(error) = put(&kv) {
        assert_eq!(error.kind, ErrorKind::NoSpace, "{error}");
        assert!(start.elapsed() < Duration::from_secs(20), "still full: {error}");
        std::thread::sleep(Duration::from_millis(50));
    }
    println!("took writes again after {:?}", start.elapsed());
    assert!((0..1000).all(|_| put(&kv).is_ok()));
    kv.sync().unwrap();
    drop(kv);
    let kv = RocksKv::open(&dir.join("kv"), Profile::SMALL).unwrap();
    for n in 0..written {
        assert!(kv.get(&n.to_be_bytes()).unwrap().is_some(), "{n} of {written}");
    }
}

/// RocksDB looks for space itself every 5 s, and other threads sync all the time: neither may get
/// in the way.
fn store_survives_a_long_wait(dir: &Path) {
    let profile = Profile { memtable_bytes: 1 << 20, log_bytes: 1 << 20 };
    let kv = RocksKv::create(&dir.join("kv"), profile).unwrap();
    let ballast = dir.join("ballast");
    let done = std::sync::atomic::AtomicBool::new(false);
    let put = |n: u64| kv.write(Batch::new().put(&n.to_be_bytes(), &[7; 1000]));
    let mut written = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                match kv.sync() {
                    Ok(_) => {}
                    Err(error) => assert_eq!(error.kind, ErrorKind::NoSpace, "{error}"),
                }
            }
        });
        for _ in 0..2 {
            fill(&ballast);
            while put(written).is_ok() {
                written += 1;
            }
            std::thread::sleep(Duration::from_secs(6));
            assert_eq!(put(written).unwrap_err().kind, ErrorKind::NoSpace);
            fs::remove_file(&ballast).unwrap();
            std::thread::sleep(Duration::from_secs(6));
            let start = Instant::now();
            while put(written).is_err() {
                assert!(start.elapsed() < Duration::from_secs(20));
                std::thread::sleep(Duration::from_millis(50));
            }
            written += 1;
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert!(!kv.stats().poisoned);
    for n in 0..written {
        assert!(kv.get(&n.to_be_bytes()).unwrap().is_some(), "{n} of {written}");
    }
}

fn objects_survive(dir: &Path) {
    format(&dir.join("ost"), TargetId::ost(1));
    // A log that is soon full.
    let profile = Some(Profile { memtable_bytes: 1 << 20, log_bytes: 1 << 20 });
    let params = OpenParams { reserve: Some(0), profile, ..OpenParams::default() };
    let target = Target::open(&dir.join("ost"), &params).unwrap();
    let store = objects(&target);
    let old = vec![1u8; 3 << 20];
    write(&*store, object(1), 0, &old);
    store.sync_all().unwrap();
    fill(&dir.join("ballast"));
    let data = vec![2u8; 1 << 20];
    let sums = checksum::compute(1000, &data);
    let mut failed = 0;
    for number in 0..200 {
        // The pieces lie alike in all of these, so their checksums are the same.
        let offset = 1000 + number * (1 << 20);
        match store.write(object(2), offset, &sums, &data, Check::Trust) {
            Ok(()) => {}
            Err(error) => {
                assert_eq!(error.kind, ErrorKind::NoSpace, "{error}");
                failed += 1;
            }
        }
    }
    assert!(failed > 0);
    assert_eq!(scrub(&*store, object(2)), Vec::<u64>::new());
    // What is there can be overwritten and read.
    write(&*store, object(1), 1 << 20, &data);
    assert_eq!(read(&*store, object(1), 1 << 20, 1 << 20), data);
    // Removing goes on, also where no note of it can be taken; none of these gives anything back.
    let missing: Vec<_> = (1000..100_000).map(object).collect();
    missing.iter().for_each(|&id| store.destroy(id).unwrap());
    store.destroy(object(2)).unwrap();
    store.sync(&missing).unwrap();
    assert_eq!(store.stat(object(2)).unwrap(), None);
    fs::remove_file(dir.join("ballast")).unwrap();
    // The store of notes comes back when it is asked again.
    let deadline = Instant::now() + Duration::from_secs(20);
    while let Err(error) =
        store.write(object(2), 0, &checksum::compute(0, &data), &data, Check::Trust)
    {
        assert!(error.kind == ErrorKind::NoSpace && Instant::now() < deadline, "{error}");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(read(&*store, object(1), 0, 1 << 20), old[..1 << 20]);
    store.sync_all().unwrap();
    drop(store);
    target.close().unwrap();
}

fn reserve_is_kept(dir: &Path) {
    format(&dir.join("ost"), TargetId::ost(1));
    let params = OpenParams { reserve: Some(20 << 20), ..OpenParams::default() };
    let target = Target::open(&dir.join("ost"), &params).unwrap();
    let store = objects(&target);
    let data = vec![2u8; 1 << 20];
    let sums = checksum::compute(0, &data);
    let write = |number: u64| store.write(object(number), 0, &sums, &data, Check::Trust);
    let error = (0..).find_map(|number| write(number).err()).unwrap();
    assert_eq!(error.kind, ErrorKind::NoSpace);
    assert_eq!(target.space().unwrap().available >> 21, 0);
    assert!(run("sh", &["-c", &format!("head -c 18M /dev/zero > {}/probe", dir.display())]));
    write(0).unwrap();
    target.kv().write(Batch::new().put(b"still", b"works")).unwrap();
    assert_eq!(target.admit(1 << 20).unwrap_err().kind, ErrorKind::NoSpace);
}

fn on_small_disks(check: fn(&Path)) {
    let outer = tempfile::tempdir().unwrap();
    let dir = outer.path().join("mnt");
    fs::create_dir(&dir).unwrap();
    match tmpfs(&dir, "100m") {
        Some(_mount) => check(&dir),
        None => println!("cannot mount a tmpfs; skipped"),
    }
    match ext4(&dir, &outer.path().join("image"), 100 << 20) {
        Some(_mount) => check(&dir),
        None => println!("cannot mount an image; skipped"),
    }
}

#[test]
fn store_on_a_full_disk() {
    on_small_disks(store_survives);
}

#[test]
fn store_on_a_disk_that_stays_full() {
    on_small_disks(store_survives_a_long_wait);
}

#[test]
fn objects_on_a_full_disk() {
    on_small_disks(objects_survive);
}

#[test]
fn reserve_on_a_full_disk() {
    on_small_disks(reserve_is_kept);
}
