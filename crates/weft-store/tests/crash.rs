//! `kill -9` at random moments, and what a power cut could leave.

mod common;

use common::*;
use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use weft_model::{ObjectId, TargetId, checksum};
use weft_store::kv::Batch;
use weft_store::{Check, LastStop, ObjectStore};

const THREADS: u64 = 3;
const SPAN: u64 = 3 << 20;

/// One step of a victim: the same in the victim and in the one who checks.
enum Step {
    Write { offset: u64, data: Vec<u8> },
    Truncate { size: u64 },
    Punch { offset: u64, len: u64 },
}

fn steps(round: u64, thread: u64) -> impl Iterator<Item = Step> {
    let mut rng = SmallRng::seed_from_u64(round * 100 + thread);
    std::iter::repeat_with(move || {
        let offset = rng.random_range(0..SPAN);
        match rng.random_range(0..10) {
            0 => Step::Truncate { size: offset },
            1 => Step::Punch { offset, len: rng.random_range(1..SPAN / 4) },
            2..=5 => {
                let data = vec![rng.random(); rng.random_range(1..10_000)];
                Step::Write { offset, data }
            }
            _ => {
                let data = vec![rng.random(); 1 << 20];
                Step::Write { offset: offset / 4096 * 4096, data }
            }
        }
    })
}

fn victims_object(round: u64, thread: u64) -> ObjectId {
    object(round * 10 + thread + 1)
}

/// Not a test of its own: what the parent starts and kills.
#[test]
fn victim() {
    let (Ok(dir), Ok(round)) = (std::env::var("WEFT_VICTIM"), std::env::var("WEFT_ROUND")) else {
        return;
    };
    let round: u64 = round.parse().unwrap();
    let target = open(Path::new(&dir));
    let (store, kv) = (objects(&target), target.kv());
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let store = &store;
            scope.spawn(move || {
                let id = victims_object(round, thread);
                for (number, step) in steps(round, thread).enumerate() {
                    match step {
                        Step::Write { offset, data } => write(&**store, id, offset, &data),
                        Step::Truncate { size } => store.truncate(id, size).unwrap(),
                        Step::Punch { offset, len } => store.punch(id, offset, len).unwrap(),
                    }
                    let key = format!("k{round}.{thread}.{number}");
                    kv.write(Batch::new().put(key.as_bytes(), b"done")).unwrap();
                    // One write of a few bytes to a pipe is whole or not there.
                    let line = format!("{thread} {number}\n");
                    std::io::stderr().write_all(line.as_bytes()).unwrap();
                }
            });
        }
    });
}

/// Runs a victim for a while, kills it, and returns the number of steps acknowledged per thread.
fn kill_one(dir: &Path, round: u64, after: Duration) -> Vec<usize> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "victim", "--nocapture", "--test-threads=1"])
        .env("WEFT_VICTIM", dir)
        .env("WEFT_ROUND", round.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stderr.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        std::io::Read::read_to_string(&mut pipe, &mut text).unwrap();
        text
    });
    std::thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap();
    let text = reader.join().unwrap();
    let mut acknowledged = vec![0; THREADS as usize];
    for line in text.lines() {
        let numbers: Vec<usize> = line.split(' ').filter_map(|n| n.parse().ok()).collect();
        assert_eq!(numbers.len(), 2, "the victim said {line:?}");
        acknowledged[numbers[0]] = numbers[1] + 1;
    }
    acknowledged
}

fn apply(bytes: &mut Vec<u8>, step: &Step) {
    match step {
        Step::Write { offset, data } => {
            let (start, end) = (*offset as usize, *offset as usize + data.len());
            bytes.resize(bytes.len().max(end), 0);
            bytes[start..end].copy_from_slice(data);
        }
        Step::Truncate { size } => bytes.resize(*size as usize, 0),
        Step::Punch { offset, len } => {
            let end = bytes.len().min((offset + len) as usize);
            let start = end.min(*offset as usize);
            bytes[start..end].fill(0);
        }
    }
}

/// Every byte must be that before or that after the step that was cut short.
fn check_object(store: &dyn ObjectStore, round: u64, thread: u64, acknowledged: usize) {
    let id = victims_object(round, thread);
    let mut before = Vec::new();
    let mut all = steps(round, thread);
    all.by_ref().take(acknowledged).for_each(|step| apply(&mut before, &step));
    let mut after = before.clone();
    apply(&mut after, &all.next().unwrap());

    assert_eq!(scrub(store, id), Vec::<u64>::new(), "round {round} thread {thread}");
    let seen = read(store, id, 0, 2 * SPAN as usize);
    assert!(seen.len() >= before.len().min(after.len()));
    assert!(seen.len() <= before.len().max(after.len()));
    let byte = |image: &[u8], at: usize| image.get(at).copied().unwrap_or(0);
    for (at, &byte_seen) in seen.iter().enumerate() {
        let legal = [byte(&before, at), byte(&after, at)];
        assert!(legal.contains(&byte_seen), "round {round} thread {thread} byte {at}");
    }
}

#[test]
fn kill_nine() {
    let dir = tempfile::tempdir().unwrap();
    format(dir.path(), TargetId::ost(2));
    let mut rng = SmallRng::seed_from_u64(9);
    let mut total = 0;
    for round in 0..12 {
        let wait = Duration::from_millis(rng.random_range(30..250));
        let acknowledged = kill_one(dir.path(), round, wait);
        let target = open(dir.path());
        assert!(round == 0 || target.last_stop() == LastStop::ProcessCrash);
        for (thread, &count) in acknowledged.iter().enumerate() {
            total += count;
            check_object(&*objects(&target), round, thread as u64, count);
            for number in 0..count {
                let key = format!("k{round}.{thread}.{number}");
                assert!(target.kv().get(key.as_bytes()).unwrap().is_some(), "{key}");
            }
            objects(&target).destroy(victims_object(round, thread as u64)).unwrap();
        }
    }
    println!("{total} steps acknowledged");
    assert!(total > 100);
}

/// Data of an unsynced write has reached the disk and its checksums have not, or the other way.
#[test]
fn a_power_cut_leaves_every_block_readable() {
    for keep_data in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        format(dir.path(), TargetId::ost(3));
        let target = open(dir.path());
        let (store, id) = (objects(&target), object(1));
        write(&*store, id, 0, &[1; 100_000]);
        store.sync(&[id]).unwrap();
        let path = data_path(dir.path(), id);
        let sums = path.with_file_name(format!("{id}.crc"));
        let old = [std::fs::read(&path).unwrap(), std::fs::read(&sums).unwrap()];
        write(&*store, id, 40_000, &[2; 100_000]);
        drop((store, target));
        if keep_data {
            std::fs::write(&sums, &old[1]).unwrap();
        } else {
            std::fs::write(&path, &old[0]).unwrap();
        }
        pretend_power_cut(dir.path());
        let target = open(dir.path());
        assert_eq!(target.last_stop(), LastStop::PowerLoss);
        let store = objects(&target);
        assert!(scrub(&*store, id).is_empty());
        let seen = read(&*store, id, 0, 200_000);
        assert_eq!(seen[..40_000], [1; 40_000]);
        assert_eq!(seen.len(), if keep_data { 140_000 } else { 100_000 });
        // Extending over what was lost finds holes, not old checksums.
        write(&*store, id, 300_000, &[3]);
        assert_eq!(read(&*store, id, seen.len() as u64, 1000), vec![0; 1000]);
        assert!(scrub(&*store, id).is_empty());
    }
}

/// The disk keeps an old copy of files that were cut or destroyed; what was synced later stays.
#[test]
fn a_power_cut_brings_nothing_back_that_was_cut_off() {
    let dir = tempfile::tempdir().unwrap();
    format(dir.path(), TargetId::ost(3));
    let [cut, twice, gone, again, grown] = [1, 2, 3, 4, 5].map(object);
    let target = open(dir.path());
    let store = objects(&target);
    for id in [cut, twice, gone, again, grown] {
        write(&*store, id, 0, &[1; 100_000]);
    }
    store.sync_all().unwrap();
    let files = |id| {
        let data = data_path(dir.path(), id);
        let sums = data.with_file_name(format!("{id}.crc"));
        [data, sums].map(|path| (path.clone(), std::fs::read(path).unwrap()))
    };
    let old = [cut, twice, gone].map(files);
    store.truncate(cut, 5000).unwrap();
    store.truncate(twice, 100).unwrap();
    write(&*store, twice, 90_000, &[2; 10]);
    store.truncate(twice, 50_000).unwrap();
    [gone, again].iter().for_each(|&id| store.destroy(id).unwrap());
    store.sync(&[gone, again]).unwrap();
    write(&*store, again, 0, &[3; 10]);
    store.truncate(grown, 10).unwrap();
    write(&*store, grown, 10, &[4; 1000]);
    store.sync(&[again, grown]).unwrap();
    drop((store, target));
    for (path, bytes) in old.as_flattened() {
        std::fs::write(path, bytes).unwrap();
    }
    pretend_power_cut(dir.path());
    let target = open(dir.path());
    let store = objects(&target);
    let size = |id| store.stat(id).unwrap().map(|stat| stat.size);
    assert_eq!((size(cut), size(twice), size(gone)), (Some(5000), Some(100), None));
    assert_eq!(read(&*store, cut, 0, 10_000), [1; 5000]);
    assert_eq!(read(&*store, again, 0, 100), [3; 10]);
    assert_eq!(read(&*store, grown, 0, 2000), [&[1; 10][..], &[4; 1000]].concat());
    assert!([cut, twice, again, grown].iter().all(|&id| scrub(&*store, id).is_empty()));
}

/// Only marked regions are made good after a power cut.
#[test]
fn a_power_cut_does_not_launder_damage() {
    let dir = tempfile::tempdir().unwrap();
    format(dir.path(), TargetId::ost(3));
    let (calm, busy) = (object(1), object(2));
    let target = open(dir.path());
    write(&*objects(&target), calm, 0, &[1; 10_000]);
    write(&*objects(&target), busy, 0, &[1; 10_000]);
    target.close().unwrap();
    let target = open(dir.path());
    assert_eq!(target.last_stop(), LastStop::Clean);
    write(&*objects(&target), busy, 5000, &[2; 100]);
    drop(target);
    flip(&data_path(dir.path(), calm), 5000);
    pretend_power_cut(dir.path());
    let target = open(dir.path());
    let store = objects(&target);
    assert_eq!(scrub(&*store, calm), vec![4096]);
    assert!(scrub(&*store, busy).is_empty());
    // Nor does writing to a part of the block: only all of it.
    let sums = checksum::compute(4100, &[9; 10]);
    assert!(store.write(calm, 4100, &sums, &[9; 10], Check::Trust).is_err());
    assert!(store.truncate(calm, 5000).is_err());
    assert!(store.punch(calm, 5000, 10).is_err());
    write(&*store, calm, 4096, &[9; 4096]);
    assert!(scrub(&*store, calm).is_empty());
}

/// The syncer takes marks back once regions are calm, and not before they are durable.
#[test]
fn marks_go_when_regions_are_calm() {
    let dir = tempfile::tempdir().unwrap();
    format(dir.path(), TargetId::ost(3));
    let mut params = weft_store::OpenParams { reserve: Some(0), ..Default::default() };
    params.objects.sync_every = Duration::from_millis(20);
    let target = weft_store::Target::open(dir.path(), &params).unwrap();
    let marks = || {
        let mut count = 0;
        let visit = &mut |_: &[u8], _: &[u8]| {
            count += 1;
            std::ops::ControlFlow::Continue(())
        };
        target.kv().scan(&[0], &[1], visit).unwrap();
        count
    };
    for n in 0..40 {
        write(&*objects(&target), object(n), 0, &[1; 5000]);
    }
    assert_eq!(marks(), 40);
    for _ in 0..200 {
        std::thread::sleep(Duration::from_millis(20));
        if marks() == 0 {
            return;
        }
    }
    panic!("{} marks are left", marks());
}
