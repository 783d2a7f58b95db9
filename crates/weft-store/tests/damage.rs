//! Damage is found and named, and refused without losing anything.

mod common;

use common::*;
use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;
use weft_model::{ErrorKind, TargetId};
use weft_store::kv::{Batch, Profile};
use weft_store::superblock::Uuid;
use weft_store::{Check, FormatParams, Kv, MemObjects, OpenParams, RocksKv, Target};

#[test]
fn a_flipped_bit_in_data_or_checksums_is_found() {
    let dir = tempfile::tempdir().unwrap();
    format(dir.path(), TargetId::ost(1));
    let target = open(dir.path());
    let store = objects(&target);
    for (number, suffix, at) in [(1, "", 9000), (2, ".crc", 9)] {
        let id = object(number);
        write(&*store, id, 0, &[5; 20_000]);
        let path = data_path(dir.path(), id);
        flip(&PathBuf::from(format!("{}{suffix}", path.display())), at);
        assert_eq!(scrub(&*store, id), vec![8192]);
        let (mut buffer, mut sums) = (vec![0; 20_000], Vec::new());
        let error = store.read(id, 0, &mut buffer, &mut sums, Check::Verify).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Checksum);
        assert!(error.to_string().contains(&format!("object={id} offset=8192")), "{error}");
        // A trusting read hands the stored checksum over, and the client sees the damage.
        let count = store.read(id, 0, &mut buffer, &mut sums, Check::Trust).unwrap();
        let seen = weft_model::checksum::verify(0, &buffer[..count], &sums);
        assert_eq!(seen, Err(8192));
        // A part of a block is always checked.
        assert!(store.read(id, 8200, &mut buffer[..10], &mut sums, Check::Trust).is_err());
        assert_eq!(read(&*store, id, 0, 8192), [5; 8192]);
    }
    let memory = MemObjects::new();
    write(&memory, object(1), 0, &[5; 20_000]);
    assert!(memory.flip_data(object(1), 9000));
    assert_eq!(scrub(&memory, object(1)), vec![8192]);
    assert!(memory.flip_sum(object(1), 0));
    assert_eq!(scrub(&memory, object(1)), vec![0, 8192]);
}

#[test]
fn a_flipped_bit_in_a_sorted_file_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("kv");
    let profile = Profile { memtable_bytes: 1 << 20, log_bytes: 1 << 20 };
    let kv = RocksKv::create(&path, profile).unwrap();
    for n in 0..40_000u64 {
        kv.write(Batch::new().put(&n.to_be_bytes(), &n.wrapping_mul(77).to_le_bytes().repeat(8)))
            .unwrap();
    }
    let clean = kv.verify(&[], &mut |_| ControlFlow::Continue(())).unwrap();
    assert!(clean.damaged.is_empty() && clean.keys == 40_000, "{clean:?}");
    let (mut slices, mut keys, mut from) = (0, 0, Some(Vec::new()));
    while let Some(key) = from {
        let slice = kv.verify(&key, &mut |_| ControlFlow::Break(())).unwrap();
        (slices, keys, from) = (slices + 1, keys + slice.keys, slice.next);
    }
    assert_eq!((slices, keys), (10, 40_000));
    drop(kv);
    let file = fs::read_dir(&path)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|e| e == "sst"))
        .expect("a sorted file");
    flip(&file, 5000);
    let kv = RocksKv::open(&path, profile).unwrap();
    let report = kv.verify(&[], &mut |_| ControlFlow::Continue(())).unwrap();
    let name = file.file_name().unwrap().to_str().unwrap();
    assert!(report.damaged[0].contains(name), "{report:?} should name {name}");
    let error = kv.scan(&[], &[], &mut |_, _| ControlFlow::Continue(())).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Checksum, "{error}");
    assert!(error.to_string().contains(name), "{error}");
}

#[test]
fn a_checkpoint_is_a_store() {
    let dir = tempfile::tempdir().unwrap();
    let kv = RocksKv::create(&dir.path().join("kv"), Profile::SMALL).unwrap();
    let lsn = kv.write(Batch::new().put(b"a", b"1").put(b"b", b"2")).unwrap();
    assert!(kv.sync().unwrap() >= lsn);
    kv.checkpoint(&dir.path().join("copy")).unwrap();
    let later = kv.write(Batch::new().delete_range(b"a", b"b")).unwrap();
    assert!(later > lsn && kv.get(b"a").unwrap().is_none());
    let copy = RocksKv::open(&dir.path().join("copy"), Profile::SMALL).unwrap();
    assert_eq!(copy.get(b"a").unwrap().as_deref(), Some(&b"1"[..]));
    assert_eq!(
        RocksKv::open(&dir.path().join("kv"), Profile::SMALL).err().unwrap().kind,
        ErrorKind::Busy
    );
    assert!(RocksKv::open(&dir.path().join("nothing"), Profile::SMALL).is_err());
    assert_eq!(
        RocksKv::create(&dir.path().join("kv"), Profile::SMALL).err().unwrap().kind,
        ErrorKind::Exists
    );
}

#[test]
fn format_and_open_refuse_what_is_not_theirs() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t");
    let mut params =
        FormatParams { cluster: CLUSTER, target: TargetId::ost(7), created: 5, force: false };
    fs::create_dir(&path).unwrap();
    fs::write(path.join("thesis.tex"), "years of work").unwrap();
    params.force = true;
    assert_eq!(Target::format(&path, &params).unwrap_err().kind, ErrorKind::NotEmpty);
    fs::remove_file(path.join("thesis.tex")).unwrap();
    params.force = false;

    let first = Target::format(&path, &params).unwrap();
    assert_eq!(Target::format(&path, &params).unwrap_err().kind, ErrorKind::Exists);
    let target = open(&path);
    write(&*objects(&target), object(1), 0, b"x");
    params.force = true;
    assert_eq!(Target::format(&path, &params).unwrap_err().kind, ErrorKind::Busy);
    let error = Target::open(&path, &OpenParams::default()).err().unwrap();
    assert_eq!(error.kind, ErrorKind::Busy);
    assert!(error.to_string().contains(&std::process::id().to_string()), "{error}");
    target.close().unwrap();

    let wrong = |params: OpenParams| Target::open(&path, &params).err().unwrap();
    let other = OpenParams { cluster: Some(Uuid(1)), ..OpenParams::default() };
    assert_eq!(wrong(other).kind, ErrorKind::Invalid);
    let other = OpenParams { target: Some(TargetId::ost(8)), ..OpenParams::default() };
    assert!(wrong(other).to_string().contains("OST0007, expected OST0008"));

    let again = Target::format(&path, &params).unwrap();
    assert_ne!(again.uuid, first.uuid);
    let target = open(&path);
    assert!(objects(&target).list(None, 10).unwrap().is_empty());
    target.close().unwrap();

    let text = fs::read(path.join("superblock")).unwrap();
    fs::write(path.join("superblock"), &text[..40]).unwrap();
    assert_eq!(wrong(OpenParams::default()).kind, ErrorKind::Checksum);
    fs::remove_file(path.join("superblock")).unwrap();
    assert_eq!(wrong(OpenParams::default()).kind, ErrorKind::NotFound);
    // What is left looks like a format that was cut short, so the next one may have it.
    params.force = false;
    Target::format(&path, &params).unwrap();
}
