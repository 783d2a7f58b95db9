//! Attributes: times, modes, access lists, extended attributes, totals.

use crate::cluster::Cluster;
use crate::sys::{self, errno};
use std::ffi::CStr;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

const NOBODY: u32 = 65534;
/// A group that nobody is in by default.
const GROUP: u32 = 4242;
const ACCESS: &CStr = c"system.posix_acl_access";
const DEFAULT: &CStr = c"system.posix_acl_default";

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Runs a shell command as nobody with one supplementary group; whether it succeeds.
fn as_nobody(command: &str) -> bool {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).stderr(std::process::Stdio::null());
    let become_nobody = || {
        let group = GROUP;
        // SAFETY: one group, and no memory is kept.
        let results =
            unsafe { [libc::setgroups(1, &group), libc::setgid(NOBODY), libc::setuid(NOBODY)] };
        if results == [0; 3] { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    };
    // SAFETY: only system calls that are allowed between fork and exec.
    unsafe { shell.pre_exec(become_nobody) };
    shell.status().unwrap().success()
}

/// An access list as the kernel has it; entries of tag, permissions and id.
fn acl(entries: &[(u16, u16, u32)]) -> Vec<u8> {
    let mut out = 2u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        out.extend(tag.to_le_bytes());
        out.extend(permissions.to_le_bytes());
        out.extend(id.to_le_bytes());
    }
    out
}

const NO_ID: u32 = u32::MAX;

#[test]
fn times_have_nanoseconds() {
    let cluster = Cluster::start();
    let mount = cluster.mount();
    let path = mount.path("file");
    let before = std::time::SystemTime::now();
    fs::write(&path, "x").unwrap();
    let attr = fs::metadata(&path).unwrap();
    assert!(attr.created().unwrap() >= before && attr.modified().unwrap() >= before);
    sys::set_times(&path, [(1_000_000_001, 123_456_789), (-5, 999_999_999)]).unwrap();
    let attr = fs::metadata(&path).unwrap();
    assert_eq!((attr.atime(), attr.atime_nsec()), (1_000_000_001, 123_456_789));
    assert_eq!((attr.mtime(), attr.mtime_nsec()), (-5, 999_999_999));
    sys::set_times(&path, [(0, libc::UTIME_OMIT), (0, libc::UTIME_NOW)]).unwrap();
    let attr = fs::metadata(&path).unwrap();
    assert_eq!(attr.atime(), 1_000_000_001);
    assert!(attr.modified().unwrap() >= before && attr.ctime() >= attr.mtime());
}

#[test]
fn permissions_of_groups_and_set_id_bits() {
    let cluster = Cluster::start();
    let mount = cluster.mount();
    let path = mount.path("file");
    fs::write(&path, "x").unwrap();
    let name = path.display();
    set_mode(&path, 0o640);
    assert!(!as_nobody(&format!("cat {name}")));
    chown(&path, Some(0), Some(GROUP)).unwrap();
    assert!(as_nobody(&format!("test $(cat {name}) = x")));
    assert!(!as_nobody(&format!("echo y >> {name}")));
    for command in ["echo y >>", ": >", "truncate -s 1"] {
        set_mode(&path, 0o6777);
        assert!(as_nobody(&format!("{command} {name}")));
        assert_eq!(mode(&path), 0o777, "{command}");
    }
    set_mode(&path, 0o6777);
    fs::write(&path, "by root").unwrap();
    assert_eq!(mode(&path), 0o6777);
    set_mode(&mount.path(""), 0o1777);
    assert!(!as_nobody(&format!("mv {name} {name}.new")));
    chown(&path, Some(NOBODY), None).unwrap();
    assert_eq!(mode(&path), 0o777);
    assert!(as_nobody(&format!("mv {name} {name}.new")));
    fs::copy("/bin/true", mount.path("run")).unwrap();
    set_mode(&mount.path("run"), 0o711);
    assert!(as_nobody(&mount.path("run").display().to_string()));
}

#[test]
fn access_lists() {
    let cluster = Cluster::start();
    let mount = cluster.mount();
    let path = mount.path("file");
    fs::write(&path, "x").unwrap();
    set_mode(&path, 0o600);
    let name = path.display().to_string();
    assert!(!as_nobody(&format!("cat {name}")));
    let list = [(1, 6, NO_ID), (2, 4, NOBODY), (4, 0, NO_ID), (16, 4, NO_ID), (32, 0, NO_ID)];
    sys::set_xattr(&path, ACCESS, &acl(&list), 0).unwrap();
    assert_eq!(sys::get_xattr(&path, ACCESS).unwrap(), acl(&list));
    assert_eq!(mode(&path), 0o640);
    assert!(as_nobody(&format!("cat {name}")) && !as_nobody(&format!("echo y >> {name}")));
    set_mode(&path, 0o600); // the mask now
    assert!(!as_nobody(&format!("cat {name}")));
    // A default list takes the place of the umask, and is handed down.
    let dir = mount.path("dir");
    fs::create_dir(&dir).unwrap();
    let list = [(1, 7, NO_ID), (2, 7, NOBODY), (4, 5, NO_ID), (16, 7, NO_ID), (32, 5, NO_ID)];
    sys::set_xattr(&dir, DEFAULT, &acl(&list), 0).unwrap();
    let inner = dir.join("inner");
    let command = format!("umask 077; mkdir {0}; : > {0}/f", inner.display());
    assert!(Command::new("sh").args(["-c", &command]).status().unwrap().success());
    assert_eq!(sys::get_xattr(&inner, DEFAULT).unwrap(), acl(&list));
    assert_eq!((mode(&inner), mode(&inner.join("f"))), (0o775, 0o664));
    assert!(as_nobody(&format!("echo y > {}/f", inner.display())));
    sys::remove_xattr(&path, ACCESS).unwrap();
    assert_eq!(errno(sys::get_xattr(&path, ACCESS)), libc::ENODATA);
}

#[test]
fn extended_attributes() {
    let cluster = Cluster::start();
    let mount = cluster.mount();
    let path = mount.path("file");
    File::create(&path).unwrap();
    let (big, name) = (vec![7; 60_000], c"user.one");
    assert_eq!(errno(sys::get_xattr(&path, name)), libc::ENODATA);
    assert_eq!(errno(sys::set_xattr(&path, name, b"", libc::XATTR_REPLACE)), libc::ENODATA);
    sys::set_xattr(&path, name, b"value", libc::XATTR_CREATE).unwrap();
    assert_eq!(errno(sys::set_xattr(&path, name, b"", libc::XATTR_CREATE)), libc::EEXIST);
    sys::set_xattr(&path, c"trusted.two", &big, 0).unwrap();
    assert_eq!(sys::get_xattr_into(&path, name, 0).unwrap().0, 5);
    assert_eq!(errno(sys::get_xattr_into(&path, name, 4)), libc::ERANGE);
    assert_eq!(sys::get_xattr(&path, name).unwrap(), b"value");
    assert_eq!(sys::get_xattr(&path, c"trusted.two").unwrap(), big);
    assert_eq!(sys::list_xattrs(&path).unwrap(), ["trusted.two", "user.one"]);
    sys::remove_xattr(&path, name).unwrap();
    assert_eq!(errno(sys::remove_xattr(&path, name)), libc::ENODATA);
    assert_eq!(errno(sys::set_xattr(&path, c"other.x", b"", 0)), libc::EOPNOTSUPP);
}

#[test]
fn virtual_attributes() {
    let cluster = Cluster::start();
    let mount = cluster.mount();
    let (dir, path) = (mount.path("dir"), mount.path("dir/file"));
    fs::create_dir(&dir).unwrap();
    let component = r#"{"end":18446744073709551615,"pattern":"stripe","stripe_unit":65536,
        "stripe_count":2,"start_index":null,"targets":[],"pool":"","group_width":0,"group_depth":0}"#;
    let spec = format!(r#"{{"components":[{component}]}}"#);
    assert_eq!(errno(sys::get_xattr(&dir, c"weft.spec")), libc::ENODATA);
    sys::set_xattr(&dir, c"weft.spec.set", spec.as_bytes(), 0).unwrap();
    assert_eq!(errno(sys::set_xattr(&dir, c"weft.spec.set", b"{", 0)), libc::EINVAL);
    File::create(&path).unwrap();
    let json = |path: &Path, name| -> serde_json::Value {
        serde_json::from_slice(&sys::get_xattr(path, name).unwrap()).unwrap()
    };
    assert_eq!(json(&dir, c"weft.spec")["components"][0]["stripe_count"], 2);
    let targets = |path| json(path, c"weft.layout")["components"][0]["targets"].clone();
    assert_eq!(targets(&path).as_array().unwrap().len(), 2);
    let one = spec.replace("\"stripe_count\":2", "\"stripe_count\":1");
    sys::set_xattr(&path, c"weft.layout.set", one.as_bytes(), 0).unwrap();
    assert_eq!(targets(&path).as_array().unwrap().len(), 1);
    fs::write(&path, "four").unwrap();
    assert_eq!(errno(sys::set_xattr(&path, c"weft.layout.set", one.as_bytes(), 0)), libc::EBUSY);
    let stat = json(&path, c"weft.stat");
    assert_eq!((&stat["mdt"], &stat["attr"]["size"]), (&"MDT0000".into(), &4.into()));
    assert_eq!(sys::get_xattr(&path, c"weft.path").unwrap(), b"dir/file");
    let fid = String::from_utf8(sys::get_xattr(&path, c"weft.fid").unwrap()).unwrap();
    let number = fs::metadata(&path).unwrap().ino();
    assert_eq!(fid.parse::<weft_model::Fid>().unwrap().0, number);
    assert_eq!(errno(sys::get_xattr(&path, c"weft.none")), libc::ENODATA);
    assert!(sys::list_xattrs(&path).unwrap().is_empty());
}

#[test]
fn totals() {
    let cluster = Cluster::start();
    let mount = cluster.mount();
    let before = sys::statvfs(&mount.path("")).unwrap();
    assert_eq!((before.f_namemax, before.f_bsize, before.f_frsize), (255, 4096, 4096));
    assert!(before.f_blocks > 0 && before.f_bavail <= before.f_blocks && before.f_files > 0);
    (0..50).for_each(|n| drop(File::create(mount.path(&n.to_string())).unwrap()));
    let after = sys::statvfs(&mount.path("")).unwrap();
    let used = |stat: &libc::statvfs| stat.f_files - stat.f_ffree;
    assert_eq!(used(&after), used(&before) + 50);
}
