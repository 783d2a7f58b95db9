//! Two mounts of one cluster: each sees what the other does, at once.

use crate::cluster::Cluster;
use crate::sys::errno;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::thread;
use std::time::Duration;

#[test]
fn names_are_seen_at_once() {
    let cluster = Cluster::start();
    let (here, there) = (cluster.mount(), cluster.mount());
    fs::create_dir(here.path("dir")).unwrap();
    fs::write(there.path("dir/file"), "one").unwrap();
    let number = fs::metadata(here.path("dir/file")).unwrap().ino();
    fs::rename(there.path("dir/file"), there.path("dir/moved")).unwrap();
    assert_eq!(errno(fs::metadata(here.path("dir/file"))), libc::ENOENT);
    assert_eq!(fs::metadata(here.path("dir/moved")).unwrap().ino(), number);
    fs::write(there.path("dir/file"), "two").unwrap();
    assert_ne!(fs::metadata(here.path("dir/file")).unwrap().ino(), number);
    let names = |mount: &crate::cluster::Mount| -> BTreeSet<String> {
        let entries = fs::read_dir(mount.path("dir")).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    assert_eq!(names(&here), names(&there));
    assert_eq!(names(&here).len(), 2);
    fs::remove_dir_all(here.path("dir")).unwrap();
    assert!(!there.path("dir").exists());
    // What goes away under somebody is gone for him, too.
    let exclusive = |mount: &crate::cluster::Mount| File::create_new(mount.path("lock"));
    exclusive(&here).unwrap();
    assert_eq!(errno(exclusive(&there)), libc::EEXIST);
}

#[test]
fn data_is_seen_at_once() {
    let cluster = Cluster::start();
    let (here, there) = (cluster.mount(), cluster.mount());
    let writer = File::create_new(here.path("file")).unwrap();
    let reader = File::open(there.path("file")).unwrap();
    for round in 0..50u64 {
        let record = format!("{round:08}");
        writer.write_all_at(record.as_bytes(), round * 100_000).unwrap();
        let mut seen = [0; 8];
        reader.read_exact_at(&mut seen, round * 100_000).unwrap();
        assert_eq!(seen, record.as_bytes());
        assert_eq!(reader.metadata().unwrap().len(), round * 100_000 + 8);
        assert_eq!(fs::metadata(there.path("file")).unwrap().len(), round * 100_000 + 8);
    }
    writer.set_len(3).unwrap();
    assert_eq!(reader.metadata().unwrap().len(), 3);
    assert_eq!(fs::read(there.path("file")).unwrap(), b"000");
    fs::remove_file(here.path("file")).unwrap();
    let mut seen = [0; 3];
    reader.read_exact_at(&mut seen, 0).unwrap();
    assert_eq!(&seen, b"000");
}

#[test]
fn locks_hold_between_mounts() {
    let cluster = Cluster::start();
    let (here, there) = (cluster.mount(), cluster.mount());
    fs::write(here.path("count"), "0").unwrap();
    let (threads, rounds) = (4, 25);
    thread::scope(|scope| {
        for number in 0..threads {
            let mount = if number % 2 == 0 { &here } else { &there };
            scope.spawn(move || {
                for _ in 0..rounds {
                    let lock = File::options().write(true).open(mount.path("count")).unwrap();
                    lock.lock().unwrap();
                    let count: u32 =
                        fs::read_to_string(mount.path("count")).unwrap().parse().unwrap();
                    (&lock).write_all((count + 1).to_string().as_bytes()).unwrap();
                }
            });
        }
    });
    let count = fs::read_to_string(there.path("count")).unwrap();
    assert_eq!(count, (threads * rounds).to_string());
}

/// A mount that others may break off leaves nothing behind that keeps others from working.
#[test]
fn a_mount_that_ends_gives_its_locks_back() {
    let cluster = Cluster::start();
    let (here, there) = (cluster.mount(), cluster.mount());
    let mine = File::create(here.path("file")).unwrap();
    let theirs = File::open(there.path("file")).unwrap();
    theirs.lock().unwrap();
    assert!(mine.try_lock().is_err());
    thread::scope(|scope| {
        scope.spawn(|| mine.lock().unwrap());
        thread::sleep(Duration::from_millis(20));
        drop(theirs);
    });
    drop(there);
    fs::remove_file(here.path("file")).unwrap();
}
