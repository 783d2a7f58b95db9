//! Random operations on both object stores against plain vectors.

mod common;

use common::*;
use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::collections::BTreeMap;
use weft_model::{ErrorKind, ObjectId, TargetId, checksum};
use weft_store::objects::Seek;
use weft_store::{Check, MemObjects, ObjectStore};

type Model = BTreeMap<ObjectId, Vec<u8>>;

/// Offsets and lengths that like block boundaries.
fn range(rng: &mut SmallRng, most: u64) -> (u64, u64) {
    let mut near = |most: u64| {
        let value = rng.random_range(0..most);
        match rng.random_range(0..3) {
            0 => value,
            1 => value / 4096 * 4096,
            _ => (value / 4096 * 4096 + rng.random_range(0..3)).saturating_sub(1),
        }
    };
    (near(most), near(most / 2))
}

fn step(rng: &mut SmallRng, store: &dyn ObjectStore, model: &mut Model) {
    let id = object(rng.random_range(1..4));
    let (offset, len) = range(rng, 200_000);
    let check = if rng.random() { Check::Trust } else { Check::Verify };
    match rng.random_range(0..20) {
        0..=6 => {
            let data: Vec<u8> = (0..len).map(|_| rng.random()).collect();
            let sums = checksum::compute(offset, &data);
            store.write(id, offset, &sums, &data, check).unwrap();
            if len > 0 {
                let bytes = model.entry(id).or_default();
                bytes.resize(bytes.len().max((offset + len) as usize), 0);
                bytes[offset as usize..(offset + len) as usize].copy_from_slice(&data);
            }
        }
        7..=13 => {
            let bytes = model.get(&id).map_or(&[][..], Vec::as_slice);
            let start = bytes.len().min(offset as usize);
            let end = bytes.len().min((offset + len) as usize);
            assert_eq!(read(store, id, offset, len as usize), bytes[start..end]);
        }
        14 | 15 => {
            store.truncate(id, offset).unwrap();
            if offset > 0 || model.contains_key(&id) {
                model.entry(id).or_default().resize(offset as usize, 0);
            }
        }
        16 | 17 => {
            let zero = rng.random();
            if zero && len > 0 {
                store.zero(id, offset, len, false).unwrap();
                let bytes = model.entry(id).or_default();
                bytes.resize(bytes.len().max((offset + len) as usize), 0);
            } else {
                store.punch(id, offset, len).unwrap();
            }
            if let Some(bytes) = model.get_mut(&id) {
                let start = bytes.len().min(offset as usize);
                let end = bytes.len().min((offset + len) as usize);
                bytes[start..end].fill(0);
            }
        }
        18 => store.sync(&[id]).unwrap(),
        _ if rng.random_range(0..10) == 0 => {
            store.destroy(id).unwrap();
            model.remove(&id);
        }
        _ => assert!(scrub(store, id).is_empty()),
    }
    let size = store.stat(id).unwrap().map(|stat| stat.size);
    assert_eq!(size, model.get(&id).map(|bytes| bytes.len() as u64));
}

fn compare(store: &dyn ObjectStore, model: &Model) {
    let mut ids = store.list(None, 100).unwrap();
    ids.sort_unstable();
    assert_eq!(ids, model.keys().copied().collect::<Vec<_>>());
    for (&id, bytes) in model {
        assert_eq!(&read(store, id, 0, 1 << 20), bytes);
        assert!(scrub(store, id).is_empty());
    }
}

#[test]
fn files_do_as_vectors_do() {
    for seed in 0..4 {
        println!("seed {seed}");
        let mut rng = SmallRng::seed_from_u64(seed);
        let dir = tempfile::tempdir().unwrap();
        format(dir.path(), TargetId::ost(1));
        let mut model = Model::new();
        for round in 0..4 {
            let target = open(dir.path());
            let store = objects(&target);
            compare(&*store, &model);
            for _ in 0..300 {
                step(&mut rng, &*store, &mut model);
            }
            compare(&*store, &model);
            if round % 3 == 2 {
                // What was written behind a cut and not synced goes with the power.
                store.sync_all().unwrap();
            }
            drop(store);
            match round % 3 {
                0 => target.close().unwrap(),
                1 => drop(target),
                _ => {
                    drop(target);
                    pretend_power_cut(dir.path());
                }
            }
        }
    }
}

#[test]
fn memory_does_as_vectors_do() {
    for seed in 0..8 {
        println!("seed {seed}");
        let mut rng = SmallRng::seed_from_u64(seed);
        let store = MemObjects::new();
        let mut model = Model::new();
        for _ in 0..1000 {
            step(&mut rng, &store, &mut model);
        }
        compare(&store, &model);
    }
}

#[test]
fn a_power_cut_leaves_memory_readable_and_what_was_synced() {
    for seed in 0..50 {
        println!("seed {seed}");
        let mut rng = SmallRng::seed_from_u64(seed);
        let store = MemObjects::new();
        let mut model = Model::new();
        (0..40).for_each(|_| step(&mut rng, &store, &mut model));
        store.sync_all().unwrap();
        let synced = model.clone();
        let mtime = |id| store.stat(id).unwrap().map(|stat| stat.mtime);
        let before: Vec<_> = (1..4).map(|n| mtime(object(n))).collect();
        (0..3).for_each(|_| step(&mut rng, &store, &mut model));
        let changed: Vec<ObjectId> = (1..4)
            .map(object)
            .zip(before)
            .filter(|&(id, old)| mtime(id) != old)
            .map(|p| p.0)
            .collect();
        store.crash_power(&mut || rng.random());
        for id in store.list(None, 100).unwrap() {
            assert!(scrub(&store, id).is_empty());
            let bytes = read(&store, id, 0, 1 << 20);
            if !changed.contains(&id) {
                assert_eq!(Some(&bytes), synced.get(&id));
            }
        }
    }
}

#[test]
fn damage_on_the_wire_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    format(dir.path(), TargetId::ost(1));
    let target = open(dir.path());
    let store = objects(&target);
    let mut data = vec![7u8; 10_000];
    let sums = checksum::compute(100, &data);
    data[9_000] ^= 1;
    let error = store.write(object(1), 100, &sums, &data, Check::Verify).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Checksum);
    // The last piece is partial, so it is checked even when the caller is trusted.
    let error = store.write(object(1), 100, &sums, &data, Check::Trust).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Checksum);
    assert_eq!(store.stat(object(1)).unwrap().map_or(0, |stat| stat.size), 0);
    let error = store.write(object(1), 100, &sums[1..], &data, Check::Trust).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid);
    let error = store.write(object(1), 1 << 60, &[0], &[1], Check::Trust).unwrap_err();
    assert_eq!(error.kind, ErrorKind::FileTooBig);
}

#[test]
fn holes_are_holes() {
    let dir = tempfile::tempdir().unwrap();
    format(dir.path(), TargetId::ost(1));
    let target = open(dir.path());
    let (memory, disk) = (MemObjects::new(), objects(&target));
    for store in [&memory as &dyn ObjectStore, &*disk] {
        let id = object(5);
        write(store, id, 1 << 30, &[1; 4096]);
        assert!(store.stat(id).unwrap().unwrap().blocks < 1000);
        assert_eq!(read(store, id, 4095, 8192), vec![0; 8192]);
        assert_eq!(store.seek(id, 0, Seek::Data).unwrap(), 1 << 30);
        assert_eq!(store.seek(id, 0, Seek::Hole).unwrap(), 0);
        assert_eq!(store.seek(id, 1 << 30, Seek::Hole).unwrap(), (1 << 30) + 4096);
        let beyond = store.seek(id, 2 << 30, Seek::Data).unwrap_err();
        assert_eq!(beyond.kind, ErrorKind::NoSuchOffset);
        assert_eq!(store.list(Some(id), 10).unwrap(), vec![]);
        assert_eq!(read(store, object(6), 0, 100), b"");
    }
}

#[test]
fn more_objects_than_open_files() {
    let dir = tempfile::tempdir().unwrap();
    format(dir.path(), TargetId::ost(1));
    let mut params = weft_store::OpenParams { reserve: Some(0), ..Default::default() };
    params.objects.max_open = 64;
    let target = weft_store::Target::open(dir.path(), &params).unwrap();
    let store = objects(&target);
    for n in 0..1000u64 {
        write(&*store, object(n), 10, &n.to_le_bytes());
    }
    let files = std::fs::read_dir("/proc/self/fd").unwrap().count();
    assert!(files < 600, "{files} files are open");
    let mut seen = 0;
    let mut last = None;
    loop {
        let page = store.list(last, 77).unwrap();
        seen += page.len();
        let Some(&id) = page.last() else { break };
        last = Some(id);
    }
    assert_eq!(seen, 1000);
    store.sync_all().unwrap();
    for n in 0..1000u64 {
        assert_eq!(read(&*store, object(n), 10, 100), n.to_le_bytes());
    }
}
