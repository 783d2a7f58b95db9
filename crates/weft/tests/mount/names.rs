//! Names: directories, links, renaming, and files without a name.

use crate::cluster::Cluster;
use crate::sys::{self, errno};
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;
use weft_fuse::door::DoorConfig;

fn text(path: &std::path::Path) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
fn directories_files_and_links() {
    let cluster = Cluster::start();
    let mount = cluster.mount();
    let path = |name: &str| mount.path(name);
    assert_eq!(fs::metadata(path("")).unwrap().ino(), mount.client().root().0);
    fs::create_dir_all(path("a/b/c")).unwrap();
    assert_eq!(fs::metadata(path("a")).unwrap().nlink(), 3);
    fs::write(path("a/file"), "one").unwrap();
    fs::hard_link(path("a/file"), path("a/b/other")).unwrap();
    assert_eq!(fs::metadata(path("a/file")).unwrap().nlink(), 2);
    symlink("../file", path("a/b/link")).unwrap();
    assert_eq!(fs::read_link(path("a/b/link")).unwrap().to_str(), Some("../file"));
    assert_eq!(text(&path("a/b/link")), "one");
    assert_eq!(errno(fs::remove_dir(path("a"))), libc::ENOTEMPTY);
    assert_eq!(errno(fs::remove_file(path("a/b"))), libc::EISDIR);
    assert_eq!(errno(fs::create_dir(path("a"))), libc::EEXIST);
    assert_eq!(errno(fs::metadata(path("a/file/x"))), libc::ENOTDIR);
    let exclusive = OpenOptions::new().write(true).create_new(true).open(path("a/file"));
    assert_eq!(errno(exclusive), libc::EEXIST);
    fs::remove_dir_all(path("a")).unwrap();
    assert_eq!(errno(fs::metadata(path("a"))), libc::ENOENT);
}

#[test]
fn renaming() {
    let cluster = Cluster::start();
    let mount = cluster.mount();
    let path = |name: &str| mount.path(name);
    fs::create_dir_all(path("full/inner")).unwrap();
    fs::create_dir(path("empty")).unwrap();
    fs::write(path("one"), "1").unwrap();
    fs::write(path("two"), "2").unwrap();
    let rename = |from, to, flags| errno(sys::rename(&path(from), &path(to), flags));
    assert_eq!(rename("one", "empty", 0), libc::EISDIR);
    assert_eq!(rename("empty", "one", 0), libc::ENOTDIR);
    assert_eq!(rename("empty", "full", 0), libc::ENOTEMPTY);
    assert_eq!(rename("full", "full/inner/x", 0), libc::EINVAL);
    assert_eq!(rename("one", "two", libc::RENAME_NOREPLACE), libc::EEXIST);
    assert_eq!(rename("one", "none", libc::RENAME_EXCHANGE), libc::ENOENT);
    assert_eq!(rename("one", "two", libc::RENAME_EXCHANGE), 0);
    assert_eq!((text(&path("one")), text(&path("two"))), ("2".into(), "1".into()));
    assert_eq!(rename("one", "two", 0), 0);
    assert_eq!(text(&path("two")), "2");
    assert_eq!(rename("full", "empty", 0), 0);
    assert!(path("empty/inner").exists() && !path("one").exists() && !path("full").exists());
    assert_eq!(rename("two", "empty/inner/moved", libc::RENAME_NOREPLACE), 0);
    assert_eq!(text(&path("empty/inner/moved")), "2");
}

/// What an overlay asks of the file system that it writes to.
#[test]
fn renaming_leaves_a_whiteout() {
    let cluster = Cluster::start();
    let mount = cluster.mount();
    let path = |name: &str| mount.path(name);
    fs::create_dir_all(path("dir/inner")).unwrap();
    fs::write(path("one"), "1").unwrap();
    fs::write(path("two"), "2").unwrap();
    let whiteout =
        |from, to, flags| errno(sys::rename(&path(from), &path(to), libc::RENAME_WHITEOUT | flags));
    let is_whiteout = |name: &str| {
        let found = fs::symlink_metadata(path(name)).unwrap();
        found.file_type().is_char_device() && found.rdev() == 0
    };
    assert_eq!(whiteout("one", "two", libc::RENAME_NOREPLACE), libc::EEXIST);
    assert_eq!(whiteout("one", "two", libc::RENAME_EXCHANGE), libc::EINVAL);
    assert_eq!(text(&path("one")), "1");
    assert_eq!(whiteout("one", "two", 0), 0);
    assert_eq!(text(&path("two")), "1");
    assert_eq!(whiteout("dir/inner", "inner", libc::RENAME_NOREPLACE), 0);
    assert!(path("inner").is_dir() && is_whiteout("one") && is_whiteout("dir/inner"));
    let links = |name: &str| fs::metadata(path(name)).unwrap().nlink();
    assert_eq!((links("dir"), links("inner")), (2, 2));
    // One is moved over another, which is itself left as one.
    assert_eq!(whiteout("one", "dir/inner", 0), 0);
    assert!(is_whiteout("one") && is_whiteout("dir/inner"));
    fs::remove_file(path("one")).unwrap();
    fs::remove_dir_all(path("dir")).unwrap();
}

#[test]
fn longest_names() {
    let cluster = Cluster::start();
    let mount = cluster.mount();
    let (longest, too_long) = ("n".repeat(255), "n".repeat(256));
    fs::write(mount.path(&longest), "x").unwrap();
    assert_eq!(text(&mount.path(&longest)), "x");
    assert_eq!(errno(File::create(mount.path(&too_long))), libc::ENAMETOOLONG);
    assert_eq!(errno(fs::metadata(mount.path(&too_long))), libc::ENAMETOOLONG);
    let listed = fs::read_dir(mount.path("")).unwrap().next().unwrap().unwrap();
    assert_eq!(listed.file_name().to_str(), Some(longest.as_str()));
}

#[test]
fn an_unlinked_file_lives_while_it_is_open() {
    let cluster = Cluster::start();
    let mount = cluster.mount();
    let path = mount.path("file");
    let mut file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
    file.write_all(b"still here").unwrap();
    fs::remove_file(&path).unwrap();
    assert_eq!(errno(fs::metadata(&path)), libc::ENOENT);
    let attr = file.metadata().unwrap();
    assert_eq!((attr.nlink(), attr.len()), (0, 10));
    file.set_len(5).unwrap();
    file.set_permissions(fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(file.metadata().unwrap().mode() & 0o7777, 0o600);
    file.rewind().unwrap();
    let mut rest = String::new();
    file.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "still");
}

#[test]
fn a_file_without_a_name_gets_one() {
    let cluster = Cluster::start();
    let mount = cluster.mount();
    let mut options = File::options();
    options.read(true).write(true).custom_flags(libc::O_TMPFILE);
    let mut file = options.open(mount.path("")).unwrap();
    file.write_all(b"born").unwrap();
    assert_eq!(file.metadata().unwrap().nlink(), 0);
    assert_eq!(fs::read_dir(mount.path("")).unwrap().count(), 0);
    sys::link_open(&file, &mount.path("name")).unwrap();
    drop(file);
    assert_eq!(text(&mount.path("name")), "born");
    let excluded = options.custom_flags(libc::O_TMPFILE | libc::O_EXCL).open(mount.path(""));
    assert_eq!(errno(sys::link_open(&excluded.unwrap(), &mount.path("no"))), libc::ENOENT);
}

#[test]
fn special_files() {
    let cluster = Cluster::start();
    let mount = cluster.mount();
    let device = libc::makedev(8, 300);
    sys::mknod(&mount.path("block"), libc::S_IFBLK | 0o600, device).unwrap();
    let attr = fs::metadata(mount.path("block")).unwrap();
    assert!(attr.file_type().is_block_device());
    assert_eq!(attr.rdev(), device);
    sys::mknod(&mount.path("pipe"), libc::S_IFIFO | 0o600, 0).unwrap();
    let pipe = mount.path("pipe");
    let writer = std::thread::spawn(move || fs::write(pipe, "through").unwrap());
    assert_eq!(text(&mount.path("pipe")), "through");
    writer.join().unwrap();
    let listener = UnixListener::bind(mount.path("socket")).unwrap();
    UnixStream::connect(mount.path("socket")).unwrap();
    listener.accept().unwrap();
    assert!(fs::metadata(mount.path("socket")).unwrap().file_type().is_socket());
    sys::mknod(&mount.path("plain"), libc::S_IFREG | 0o640, 0).unwrap();
    fs::write(mount.path("plain"), "data").unwrap();
    assert_eq!(text(&mount.path("plain")), "data");
}

/// With lifetimes the kernel uses `READDIRPLUS`.
#[test]
fn a_mount_that_caches_names() {
    let cluster = Cluster::start();
    let ttl = Duration::from_secs(1);
    let mount =
        cluster.mount_with(DoorConfig { entry_ttl: ttl, attr_ttl: ttl, ..DoorConfig::default() });
    fs::create_dir(mount.path("dir")).unwrap();
    for number in 0..300u32 {
        fs::write(mount.path(&format!("dir/{number}")), number.to_string()).unwrap();
    }
    let mut total = 0;
    for entry in fs::read_dir(mount.path("dir")).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        let attr = entry.metadata().unwrap();
        assert_eq!(attr.len(), name.len() as u64);
        assert_eq!(text(&entry.path()), name);
        fs::remove_file(entry.path()).unwrap();
        total += 1;
    }
    assert_eq!(total, 300);
    fs::remove_dir(mount.path("dir")).unwrap();
}
