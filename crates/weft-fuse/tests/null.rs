//! The null file system through a real mount: what any program does.

mod common;

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};

use common::Mounted;
use weft_fuse::kernel::{Config, Threads};
use weft_fuse::null::{NullFs, NullOptions};

fn mount(options: NullOptions) -> Option<Mounted> {
    Mounted::new(NullFs::new(options), Config::default())
}

#[test]
fn names_come_and_go() {
    let Some(mounted) = mount(NullOptions::default()) else { return };
    let dir = mounted.path().join("dir");
    fs::create_dir(&dir).unwrap();
    let odd = dir.join(OsStr::from_bytes(b"\xff\xfe odd\nname"));
    File::create_new(&odd).unwrap();
    assert_eq!(File::create_new(&odd).unwrap_err().kind(), ErrorKind::AlreadyExists);
    fs::hard_link(&odd, dir.join("link")).unwrap();
    assert_eq!(fs::metadata(&odd).unwrap().nlink(), 2);
    symlink("some/where", dir.join("sym")).unwrap();
    assert_eq!(fs::read_link(dir.join("sym")).unwrap().as_os_str(), "some/where");
    fs::rename(&odd, mounted.path().join("moved")).unwrap();
    assert!(!odd.exists() && mounted.path().join("moved").exists());
    assert_eq!(fs::remove_dir(&dir).unwrap_err().kind(), ErrorKind::DirectoryNotEmpty);
    assert_eq!(fs::metadata(&dir).unwrap().nlink(), 2);
    fs::remove_dir_all(&dir).unwrap();
    fs::remove_file(mounted.path().join("moved")).unwrap();
    assert_eq!(fs::read_dir(mounted.path()).unwrap().count(), 0);
}

#[test]
fn attributes_change() {
    let Some(mounted) = mount(NullOptions::default()) else { return };
    let path = mounted.path().join("file");
    let file = File::create(&path).unwrap();
    file.set_permissions(fs::Permissions::from_mode(0o640)).unwrap();
    file.set_len(12345).unwrap();
    let before_epoch = std::time::UNIX_EPOCH - std::time::Duration::from_millis(1500);
    file.set_modified(before_epoch).unwrap();
    std::os::unix::fs::chown(&path, Some(7), Some(8)).unwrap();
    let meta = fs::metadata(&path).unwrap();
    assert_eq!((meta.mode() & 0o7777, meta.len(), meta.uid(), meta.gid()), (0o640, 12345, 7, 8));
    assert_eq!((meta.mtime(), meta.mtime_nsec()), (-2, 500_000_000));
}

#[test]
fn lists_ten_thousand_names_while_they_are_removed() {
    let Some(mounted) = mount(NullOptions::default()) else { return };
    let name = |number: u32| format!("a-rather-long-file-name-{number:05}");
    let all: HashSet<_> = (0..10_000).map(name).collect();
    all.iter().for_each(|name| drop(File::create_new(mounted.path().join(name)).unwrap()));
    let listed: Vec<_> = fs::read_dir(mounted.path()).unwrap().map(Result::unwrap).collect();
    assert_eq!(listed.len(), all.len());
    let names = listed.iter().map(|entry| entry.file_name().into_string().unwrap());
    assert_eq!(names.collect::<HashSet<_>>(), all);
    assert!(listed.iter().all(|entry| entry.metadata().unwrap().is_file()));
    for entry in fs::read_dir(mounted.path()).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
    assert_eq!(fs::read_dir(mounted.path()).unwrap().count(), 0);
}

#[test]
fn reads_what_was_written_in_length() {
    for direct_io in [true, false] {
        let Some(mounted) = mount(NullOptions { direct_io, ..NullOptions::default() }) else {
            return;
        };
        let path = mounted.path().join("file");
        let mut options = OpenOptions::new();
        let mut file = options.read(true).write(true).create(true).open(&path).unwrap();
        const SIZE: usize = (3 << 20) + 17;
        file.write_all(&vec![0; SIZE]).unwrap();
        assert_eq!(file.seek(SeekFrom::End(0)).unwrap(), SIZE as u64);
        let mut data = Vec::new();
        File::open(&path).unwrap().read_to_end(&mut data).unwrap();
        assert_eq!(data, vec![0; SIZE]);
        assert_eq!(file.read_at(&mut [1; 100], SIZE as u64 - 5).unwrap(), 5);
        file.sync_all().unwrap();
        File::create(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len(), 0);
    }
}

#[test]
fn many_threads_at_once() {
    let threads = Threads { spare: 1, max: 8, clone_channel: true, resident: false };
    let config = Config { threads, ..Config::default() };
    let Some(mounted) = Mounted::new(NullFs::new(NullOptions::default()), config) else { return };
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let dir = mounted.path().join(thread.to_string());
            scope.spawn(move || {
                fs::create_dir(&dir).unwrap();
                for number in 0..500 {
                    let path = dir.join(number.to_string());
                    fs::write(&path, "hello").unwrap();
                    assert_eq!(fs::metadata(&path).unwrap().len(), 5);
                    fs::remove_file(&path).unwrap();
                }
                fs::remove_dir(&dir).unwrap();
            });
        }
    });
}

#[test]
fn unmounting_ends_the_session() {
    let Some(mut mounted) = mount(NullOptions::default()) else { return };
    let path = mounted.path().join("file");
    let open = File::create(&path).unwrap();
    assert_eq!(mounted.session.unmount().unwrap_err().kind(), ErrorKind::ResourceBusy);
    assert!(path.exists());
    drop(open);
    mounted.session.unmount().unwrap();
    assert!(!path.exists());
}
