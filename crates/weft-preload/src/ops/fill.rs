//! Attributes and space in the structures of the C library.

use weft_client::FsStat;
use weft_model::{Attr, FileType, Timespec};

/// Preferred size of transfers, for programs that ask.
const IO_SIZE: i64 = 1 << 20;
/// Unit in which space is told.
const BLOCK: u64 = 4096;
/// Major number of the devices that file systems seem to be on: one that Linux gives to nobody.
const MAJOR: u32 = 0xf57;
/// What statfs(2) says of a FUSE mount, so that programs see the same.
const FUSE_MAGIC: i64 = 0x6573_5546;

fn device(mount: usize) -> (u32, u32) {
    (MAJOR, mount as u32)
}

fn zeroed<T>() -> T {
    // SAFETY: used for structures of numbers only, for which zeros are a value.
    unsafe { std::mem::zeroed() }
}

/// As stat(2) has it.
pub fn stat(mount: usize, attr: &Attr) -> libc::stat64 {
    let mut out: libc::stat64 = zeroed();
    let (major, minor) = device(mount);
    out.st_dev = libc::makedev(major, minor);
    out.st_ino = attr.fid.0;
    out.st_mode = attr.kind.mode_bits() | attr.mode;
    out.st_nlink = attr.nlink.into();
    (out.st_uid, out.st_gid) = (attr.uid, attr.gid);
    out.st_rdev = attr.rdev.into();
    out.st_size = attr.size as i64;
    out.st_blksize = block_size(attr) as _;
    out.st_blocks = attr.blocks as i64;
    (out.st_atime, out.st_atime_nsec) = (attr.atime.secs, attr.atime.nanos.into());
    (out.st_mtime, out.st_mtime_nsec) = (attr.mtime.secs, attr.mtime.nanos.into());
    (out.st_ctime, out.st_ctime_nsec) = (attr.ctime.secs, attr.ctime.nanos.into());
    out
}

fn block_size(attr: &Attr) -> i64 {
    if attr.kind == FileType::Regular { IO_SIZE } else { BLOCK as i64 }
}

/// As statx(2) has it.
pub fn statx(mount: usize, attr: &Attr) -> libc::statx {
    let mut out: libc::statx = zeroed();
    let time = |time: Timespec| {
        let mut out: libc::statx_timestamp = zeroed();
        (out.tv_sec, out.tv_nsec) = (time.secs, time.nanos);
        out
    };
    out.stx_mask = libc::STATX_BASIC_STATS | libc::STATX_BTIME;
    out.stx_blksize = block_size(attr) as u32;
    out.stx_nlink = attr.nlink;
    (out.stx_uid, out.stx_gid) = (attr.uid, attr.gid);
    out.stx_mode = (attr.kind.mode_bits() | attr.mode) as u16;
    out.stx_ino = attr.fid.0;
    out.stx_size = attr.size;
    out.stx_blocks = attr.blocks;
    (out.stx_atime, out.stx_btime) = (time(attr.atime), time(attr.btime));
    (out.stx_ctime, out.stx_mtime) = (time(attr.ctime), time(attr.mtime));
    let rdev = attr.rdev.into();
    (out.stx_rdev_major, out.stx_rdev_minor) = (libc::major(rdev), libc::minor(rdev));
    (out.stx_dev_major, out.stx_dev_minor) = device(mount);
    out
}

/// As statfs(2) has it.
pub fn statfs(stat: &FsStat) -> libc::statfs64 {
    let mut out: libc::statfs64 = zeroed();
    out.f_type = FUSE_MAGIC as _;
    out.f_bsize = BLOCK as _;
    out.f_frsize = BLOCK as _;
    out.f_blocks = stat.bytes / BLOCK;
    out.f_bfree = stat.bytes_free / BLOCK;
    out.f_bavail = out.f_bfree;
    out.f_files = stat.files;
    out.f_ffree = stat.files_free;
    out.f_namelen = stat.name_max as _;
    out
}

/// As statvfs(3) has it.
pub fn statvfs(stat: &FsStat) -> libc::statvfs64 {
    let mut out: libc::statvfs64 = zeroed();
    out.f_bsize = BLOCK;
    out.f_frsize = BLOCK;
    out.f_blocks = stat.bytes / BLOCK;
    out.f_bfree = stat.bytes_free / BLOCK;
    out.f_bavail = out.f_bfree;
    out.f_files = stat.files;
    out.f_ffree = stat.files_free;
    out.f_favail = stat.files_free;
    out.f_namemax = stat.name_max.into();
    out
}
