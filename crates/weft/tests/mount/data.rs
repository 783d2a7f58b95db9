//! The bytes of files.

use crate::cluster::Cluster;
use crate::sys::{self, Map, errno};
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::thread;

const MIB: u64 = 1 << 20;

fn open(path: &Path) -> File {
    File::options().read(true).write(true).create(true).truncate(false).open(path).unwrap()
}

/// Bytes that differ from place to place.
fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 + at / 4096) as u8).collect()
}

#[test]
fn what_is_written_is_read_across_stripes() {
    let cluster = Cluster::start();
    let mount = cluster.mount();
    let wanted = pattern(9 * MIB as usize + 123);
    fs::write(mount.path("file"), &wanted).unwrap();
    assert!(fs::read(mount.path("file")).unwrap() == wanted);
    let file = open(&mount.path("file"));
    let mut part = vec![0; 3 * MIB as usize];
    file.read_exact_at(&mut part, 3 * MIB - 7).unwrap();
    assert!(part == wanted[3 * MIB as usize - 7..][..part.len()]);
    let copy = open(&mount.path("copy"));
    let copied = sys::copy_range(&file, &copy, wanted.len()).unwrap();
    assert_eq!(copied, wanted.len() as u64);
    assert!(fs::read(mount.path("copy")).unwrap() == wanted);
    assert_eq!(File::create(mount.path("file")).unwrap().metadata().unwrap().len(), 0);
}

#[test]
fn appends_of_many_do_not_overlap() {
    let cluster = Cluster::start();
    let (mount, other) = (cluster.mount(), cluster.mount());
    let (threads, records) = (4, 100);
    thread::scope(|scope| {
        for number in 0..threads {
            let path = if number % 2 == 0 { mount.path("log") } else { other.path("log") };
            scope.spawn(move || {
                let mut file = File::options().append(true).create(true).open(path).unwrap();
                for record in 0..records {
                    file.write_all(format!("{number:2} {record:04}\n").as_bytes()).unwrap();
                }
            });
        }
    });
    let text = fs::read_to_string(mount.path("log")).unwrap();
    for number in 0..threads {
        let mine = text.lines().filter(|line| line.starts_with(&format!("{number:2} ")));
        let wanted = (0..records).map(|record| format!("{number:2} {record:04}"));
        assert!(mine.eq(wanted), "thread {number}");
    }
    assert_eq!(text.lines().count(), threads * records);
}

/// Whether a write appends is the affair of the moment, and a memory map never does.
#[test]
fn appending_can_be_turned_on_and_off() {
    let cluster = Cluster::start();
    let mount = cluster.mount();
    let mut file = open(&mount.path("file"));
    file.write_all(b"0123456789").unwrap();
    sys::set_flags(&file, libc::O_APPEND).unwrap();
    file.rewind().unwrap();
    file.write_all(b"end").unwrap();
    sys::set_flags(&file, 0).unwrap();
    file.rewind().unwrap();
    file.write_all(b"AB").unwrap();
    assert_eq!(fs::read(mount.path("file")).unwrap(), b"AB23456789end");
    let file = File::options().read(true).append(true).open(mount.path("file")).unwrap();
    let mut map = Map::new(&file, 10);
    map.bytes()[2..4].copy_from_slice(b"CD");
    map.sync();
    drop(map);
    assert_eq!(fs::read(mount.path("file")).unwrap(), b"ABCD456789end");
}

#[test]
fn holes() {
    let cluster = Cluster::start();
    let mount = cluster.mount();
    let file = open(&mount.path("file"));
    file.write_all_at(&pattern(8192), 10 * MIB).unwrap();
    file.set_len(20 * MIB).unwrap();
    let seek = |offset: u64, whence| sys::seek(&file, offset as i64, whence);
    assert_eq!(seek(0, libc::SEEK_DATA).unwrap(), 10 * MIB);
    assert_eq!(seek(10 * MIB, libc::SEEK_HOLE).unwrap(), 10 * MIB + 8192);
    assert_eq!(seek(0, libc::SEEK_HOLE).unwrap(), 0);
    assert_eq!(errno(seek(11 * MIB, libc::SEEK_DATA)), libc::ENXIO);
    assert_eq!(errno(seek(20 * MIB, libc::SEEK_HOLE)), libc::ENXIO);
    assert!(file.metadata().unwrap().blocks() * 512 < MIB);
    let punch = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    sys::fallocate(&file, punch, 10 * MIB as i64, 4096).unwrap();
    assert_eq!(seek(0, libc::SEEK_DATA).unwrap(), 10 * MIB + 4096);
    let mut block = vec![1; 8192];
    file.read_exact_at(&mut block, 10 * MIB).unwrap();
    assert!(block[..4096].iter().all(|&byte| byte == 0));
    assert!(block[4096..] == pattern(8192)[4096..]);
    assert_eq!(file.metadata().unwrap().len(), 20 * MIB);
}

#[test]
fn reserving_and_truncating() {
    let cluster = Cluster::start();
    let mount = cluster.mount();
    let file = open(&mount.path("file"));
    let len = || file.metadata().unwrap().len();
    sys::fallocate(&file, libc::FALLOC_FL_KEEP_SIZE, 0, MIB as i64).unwrap();
    assert_eq!(len(), 0);
    sys::fallocate(&file, 0, 0, 3 * MIB as i64).unwrap();
    assert_eq!(len(), 3 * MIB);
    assert_eq!(errno(sys::fallocate(&file, libc::FALLOC_FL_COLLAPSE_RANGE, 0, 4096)), 95);
    file.write_all_at(&[7; 1000], 0).unwrap();
    file.set_len(100).unwrap();
    file.set_len(200).unwrap();
    let mut bytes = Vec::new();
    (&file).read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes, [[7; 100], [0; 100]].concat());
    (&file).seek(SeekFrom::End(50)).unwrap();
    (&file).write_all(b"x").unwrap();
    assert_eq!(len(), 251);
}

#[test]
fn memory_maps_and_calls_see_each_other() {
    let cluster = Cluster::start();
    let mount = cluster.mount();
    let file = open(&mount.path("file"));
    file.write_all_at(&pattern(20_000), 0).unwrap();
    let mut map = Map::new(&file, 20_000);
    assert!(map.bytes() == pattern(20_000));
    map.bytes()[5000..5004].copy_from_slice(b"map!");
    map.sync();
    let mut four = [0; 4];
    file.read_exact_at(&mut four, 5000).unwrap();
    assert_eq!(&four, b"map!");
    file.write_all_at(b"call", 9000).unwrap();
    assert_eq!(&map.bytes()[9000..9004], b"call");
    drop(map);
    assert_eq!(file.metadata().unwrap().len(), 20_000);
}

#[test]
fn direct_and_synchronous() {
    let cluster = Cluster::start();
    let mount = cluster.mount();
    let mut options = File::options();
    options.read(true).write(true).create(true).custom_flags(libc::O_DIRECT | libc::O_DSYNC);
    let file = options.open(mount.path("file")).unwrap();
    let mut room = vec![0u8; 3 * 65_536];
    let start = room.as_ptr().align_offset(4096);
    let block = &mut room[start..start + 131_072];
    block.copy_from_slice(&pattern(131_072));
    file.write_all_at(block, 0).unwrap();
    block.fill(0);
    file.read_exact_at(block, 0).unwrap();
    assert!(block == pattern(131_072));
    file.sync_data().unwrap();
    file.sync_all().unwrap();
    let top = File::open(mount.path("")).unwrap();
    top.sync_all().unwrap();
    sys::sync_all(&top).unwrap();
}

/// The MDT finishes in the background what truncations have left undone. Those under way it must
/// leave alone: cutting once more, later, would take what was written since.
#[test]
fn a_truncation_is_over_when_it_is_answered() {
    let cluster = Cluster::start();
    let mount = cluster.mount();
    thread::scope(|scope| {
        for number in 0..4 {
            let path = mount.path(&number.to_string());
            scope.spawn(move || {
                let file = open(&path);
                for round in 0..300u32 {
                    file.write_all_at(&round.to_le_bytes(), 100_000).unwrap();
                    file.set_len(10).unwrap();
                    file.write_all_at(&round.to_be_bytes(), 50_000).unwrap();
                    let mut seen = [0; 4];
                    for _ in 0..5 {
                        file.read_exact_at(&mut seen, 50_000).unwrap();
                        assert_eq!(seen, round.to_be_bytes(), "round {round}");
                    }
                }
            });
        }
    });
}
