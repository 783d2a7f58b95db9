//! The client library on real servers in one process: random operations against a reference file
//! system in memory, and what two clients see of each other.
//!
//! A failure prints its seed; `WEFT_SEED=n cargo test -p weft --test client_library` repeats it.

mod cluster;
mod data;
mod names;
mod run;

use cluster::Cluster;
use run::Run;
use std::sync::Arc;
use std::time::Duration;
use weft_client::{Client, CreateArgs, Ctx, LockKind, LockRange, OpenFile, OpenFlags, Whence};
use weft_model::layout::{ComponentSpec, EOF, LayoutSpec};
use weft_model::{ErrorKind, SetAttr, SetTime, Timespec};

/// Object storage targets of a cluster.
const OSTS: u16 = 3;
/// Operations of a run.
const STEPS: usize = 1500;

/// Small stripes, and a first component of one object: transfers cross many objects.
fn striped() -> LayoutSpec {
    let first = ComponentSpec {
        end: 16_384,
        stripe_unit: 4096,
        stripe_count: 1,
        ..ComponentSpec::default()
    };
    let rest = ComponentSpec { end: EOF, stripe_count: 3, ..first.clone() };
    LayoutSpec { components: vec![first, rest] }
}

#[test]
fn agrees_with_a_reference_file_system() {
    let given = std::env::var("WEFT_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = given.map_or(1..13, |seed: u64| seed..seed + 1);
    for seed in seeds {
        println!("seed {seed}");
        let mut run = Run::new(seed);
        (0..STEPS).for_each(|_| run.step());
        run.finish();
    }
}

fn two() -> (Cluster, Arc<Client>, Arc<Client>) {
    let cluster = Cluster::start();
    let (a, b) = (cluster.mount(), cluster.mount());
    (cluster, a, b)
}

fn create(client: &Client, name: &[u8], flags: OpenFlags) -> OpenFile {
    let args = CreateArgs { mode: 0o644, flags, ..CreateArgs::default() };
    client.create(&Ctx::root(), client.root(), name, &args).unwrap().file
}

#[test]
fn appends_of_two_clients_fall_side_by_side() {
    let (_cluster, a, b) = two();
    let flags = OpenFlags::READ | OpenFlags::WRITE | OpenFlags::APPEND;
    const EACH: usize = 200;
    std::thread::scope(|scope| {
        for (client, byte) in [(&a, 1u8), (&b, 2), (&a, 3), (&b, 4)] {
            scope.spawn(move || {
                let file = create(client, b"log", flags);
                for _ in 0..EACH {
                    client.write(&Ctx::root(), &file, 0, &[byte; 100]).unwrap();
                }
                client.close(&Ctx::root(), &file, None).unwrap();
            });
        }
    });
    let file = create(&a, b"log", OpenFlags::READ);
    let mut buf = vec![0; 4 * EACH * 100 + 1];
    assert_eq!(a.read(&Ctx::root(), &file, 0, &mut buf).unwrap(), 4 * EACH * 100);
    let mut counts = [0; 5];
    for record in buf[..4 * EACH * 100].chunks(100) {
        assert!(record.iter().all(|&byte| byte == record[0]), "a torn record");
        counts[record[0] as usize] += 1;
    }
    assert_eq!(counts, [0, EACH, EACH, EACH, EACH]);
}

#[test]
fn a_waiting_lock_is_granted_in_turn_and_circles_are_found() {
    let (_cluster, a, b) = two();
    let flags = OpenFlags::READ | OpenFlags::WRITE;
    let (in_a, in_b) = (create(&a, b"f", flags), create(&b, b"f", flags));
    let lock = |kind, start| LockRange { owner: 1, flock: false, kind, start, end: start, pid: 1 };
    let ctx = Ctx::root;
    a.lock(&ctx(), &in_a, &lock(LockKind::Write, 0), false).unwrap();
    b.lock(&ctx(), &in_b, &lock(LockKind::Write, 1), false).unwrap();
    let held = b.test_lock(&ctx(), &in_b, &lock(LockKind::Read, 0)).unwrap().unwrap();
    assert_eq!((held.kind, held.start), (LockKind::Write, 0));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| b.lock(&ctx(), &in_b, &lock(LockKind::Write, 0), true));
        std::thread::sleep(Duration::from_millis(50));
        let circle = a.lock(&ctx(), &in_a, &lock(LockKind::Write, 1), true).unwrap_err();
        assert_eq!(circle.kind, ErrorKind::Deadlock);
        a.flush(&ctx(), &in_a, 1).unwrap();
        waiting.join().unwrap().unwrap();
    });
}

#[test]
fn times_set_by_hand_survive_closing() {
    let (_cluster, a, b) = two();
    let file = create(&a, b"f", OpenFlags::WRITE);
    a.write(&Ctx::root(), &file, 0, b"data").unwrap();
    let then = Timespec { secs: 1_000_000, nanos: 5 };
    let set = SetAttr { mtime: Some(SetTime::At(then)), ..SetAttr::default() };
    assert_eq!(a.setattr(&Ctx::root(), file.fid(), &set, Some(&file)).unwrap().mtime, then);
    a.close(&Ctx::root(), &file, None).unwrap();
    let seen = b.lookup(&Ctx::root(), b.root(), b"f").unwrap();
    assert_eq!((seen.mtime, seen.size, seen.blocks), (then, 4, 8));
}

#[test]
fn holes_are_found_across_stripes_and_ranges_are_copied() {
    let (_cluster, a, _b) = two();
    let ctx = Ctx::root();
    a.set_layout(&ctx, a.root(), &striped()).unwrap();
    let flags = OpenFlags::READ | OpenFlags::WRITE;
    let (file, copy) = (create(&a, b"f", flags), create(&a, b"g", flags));
    a.write(&ctx, &file, 40_960, &[7; 8192]).unwrap();
    let size = SetAttr { size: Some(100_000), ..SetAttr::default() };
    a.setattr(&ctx, file.fid(), &size, None).unwrap();
    assert_eq!(a.seek(&ctx, &file, 0, Whence::Hole).unwrap(), 0);
    assert_eq!(a.seek(&ctx, &file, 0, Whence::Data).unwrap(), 40_960);
    assert_eq!(a.seek(&ctx, &file, 40_960, Whence::Hole).unwrap(), 49_152);
    let none = a.seek(&ctx, &file, 49_152, Whence::Data).unwrap_err();
    assert_eq!(none.kind, ErrorKind::NoSuchOffset);
    assert_eq!(a.copy_range(&ctx, (&file, 40_000), (&copy, 0), 1 << 30).unwrap(), 60_000);
    let mut buf = vec![0; 70_000];
    assert_eq!(a.read(&ctx, &copy, 0, &mut buf).unwrap(), 60_000);
    assert!(buf[960..9152].iter().all(|&byte| byte == 7) && buf[959] == 0 && buf[9152] == 0);
    assert!(a.statfs(&ctx).unwrap().bytes_free > 0);
}
