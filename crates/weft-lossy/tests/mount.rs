//! The mount as programs see it, and what a cut leaves of what they did.
//!
//! No maps: a fault in the process that also serves the mount would wait for itself.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use weft_lossy::{Disk, Lossy, Mode};

/// Does `work` on a mount, cuts the power, and hands what is left to `look`, for some seeds.
fn cut(mode: Mode, work: impl Fn(&Path), look: impl Fn(&Path)) {
    if !Path::new("/dev/fuse").exists() {
        return eprintln!("SKIPPED: this machine has no /dev/fuse");
    }
    let dir = tempfile::tempdir().unwrap();
    let lossy = Lossy::mount(Disk::new(mode, 1), dir.path()).unwrap();
    work(dir.path());
    lossy.cut_power();
    assert_eq!(fs::read_dir(dir.path()).unwrap_err().raw_os_error(), Some(libc::EIO));
    let disk = lossy.unmount();
    for seed in 0..30 {
        let lossy = Lossy::mount(disk.after_power_cut(seed), dir.path()).unwrap();
        look(dir.path());
        lossy.unmount();
    }
}

fn sync_dir(dir: &Path) {
    File::open(dir).unwrap().sync_all().unwrap();
}

#[test]
fn what_is_synced_is_there_and_the_rest_old_new_or_mixed() {
    for mode in [Mode::Ordered, Mode::Posix] {
        let work = |dir: &Path| {
            let file = File::create(dir.join("a")).unwrap();
            file.write_all_at(&[1; 20_000], 0).unwrap();
            file.sync_data().unwrap();
            sync_dir(dir);
            file.write_all_at(&[2; 5000], 5000).unwrap();
            fs::write(dir.join("b"), "never synced").unwrap();
            fs::rename(dir.join("a"), dir.join("c")).unwrap();
        };
        cut(mode, work, |dir| {
            let (old, new) = (dir.join("a"), dir.join("c"));
            assert!(old.exists() != new.exists(), "a rename is done or not");
            let data = fs::read(if old.exists() { old } else { new }).unwrap();
            assert_eq!(data.len(), 20_000);
            assert!(data.iter().enumerate().all(|(at, &byte)| match at {
                5000..10_000 => byte == 1 || byte == 2,
                _ => byte == 1,
            }));
        });
    }
}

#[test]
fn modes_differ_in_what_an_fsync_of_a_file_does_for_its_name() {
    let seen = |mode| {
        let named = std::cell::Cell::new(0);
        let work = |dir: &Path| {
            let mut file = File::create(dir.join("a")).unwrap();
            file.write_all(b"data").unwrap();
            file.sync_all().unwrap();
        };
        cut(mode, work, |dir| {
            if let Ok(data) = fs::read(dir.join("a")) {
                assert_eq!(data, b"data");
                named.set(named.get() + 1);
            }
        });
        named.get()
    };
    if Path::new("/dev/fuse").exists() {
        assert_eq!(seen(Mode::Ordered), 30);
        assert!((1..30).contains(&seen(Mode::Posix)));
    }
}

#[test]
fn holes_links_and_locks_work() {
    let work = |dir: &Path| {
        let path = dir.join("a");
        let file = File::create_new(&path).unwrap();
        file.lock().unwrap();
        assert!(File::open(&path).unwrap().try_lock().is_err());
        file.set_len(64 << 10).unwrap();
        file.write_all_at(&[7], 8192).unwrap();
        file.sync_all().unwrap();
        assert_eq!(fs::metadata(&path).unwrap().blocks(), 8);
        sync_dir(dir);
        fs::hard_link(&path, dir.join("b")).unwrap();
        fs::create_dir(dir.join("d")).unwrap();
        fs::rename(dir.join("d"), dir.join("e")).unwrap();
        assert_eq!(fs::read_dir(dir).unwrap().count(), 3);
        fs::remove_file(dir.join("b")).unwrap();
        fs::remove_dir(dir.join("e")).unwrap();
    };
    cut(Mode::Posix, work, |dir| {
        let data = fs::read(dir.join("a")).unwrap();
        assert_eq!((data.len(), data[8192], data[8191]), (64 << 10, 7, 0));
    });
}
