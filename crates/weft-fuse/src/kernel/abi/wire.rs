//! Wire structures: what the kernel sends (`…In`) and expects back (`…Out`).
//!
//! All are plain integers in host byte order, padded to 8 bytes, and copied out of the request
//! buffer, so no alignment is assumed. Sizes are asserted at compile time.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Declares `#[repr(C)]` wire structures, each with its size in bytes asserted.
macro_rules! wire {
    ($($(#[$doc:meta])* $name:ident ($size:literal) { $($field:ident: $type:ty),* $(,)? })*) => {$(
        $(#[$doc])*
        #[allow(missing_docs)] // fields are those of the kernel's structure
        #[repr(C)]
        #[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
        pub struct $name { $(pub $field: $type),* }
        const _: () = assert!(size_of::<$name>() == $size);
    )*};
}

wire! {
    /// Head of every request.
    InHeader (40) { len: u32, opcode: u32, unique: u64, nodeid: u64, uid: u32, gid: u32, pid: u32,
        total_extlen: u16, padding: u16 }
    /// Head of every reply and notification; `error` is 0, a negated errno or a notification code.
    OutHeader (16) { len: u32, error: i32, unique: u64 }

    /// File attributes; times are signed seconds although the kernel writes `uint64_t`.
    AttrOutBody (88) { ino: u64, size: u64, blocks: u64, atime: i64, mtime: i64, ctime: i64,
        atimensec: u32, mtimensec: u32, ctimensec: u32, mode: u32, nlink: u32, uid: u32, gid: u32,
        rdev: u32, blksize: u32, flags: u32 }
    /// Reply of `getattr` and `setattr`.
    AttrOut (104) { attr_valid: u64, attr_valid_nsec: u32, dummy: u32, attr: AttrOutBody }
    /// Reply of `lookup` and of everything that makes a name.
    EntryOut (128) { nodeid: u64, generation: u64, entry_valid: u64, attr_valid: u64,
        entry_valid_nsec: u32, attr_valid_nsec: u32, attr: AttrOutBody }

    /// Time of a `statx` reply.
    SxTime (16) { sec: i64, nsec: u32, reserved: i32 }
    /// Attributes of a `statx` reply.
    StatxBody (256) { mask: u32, blksize: u32, attributes: u64, nlink: u32, uid: u32, gid: u32,
        mode: u16, spare0: u16, ino: u64, size: u64, blocks: u64, attributes_mask: u64,
        atime: SxTime, btime: SxTime, ctime: SxTime, mtime: SxTime, rdev_major: u32,
        rdev_minor: u32, dev_major: u32, dev_minor: u32, spare2: [u64; 14] }
    /// Argument of `statx`.
    StatxIn (24) { getattr_flags: u32, reserved: u32, fh: u64, sx_flags: u32, sx_mask: u32 }
    /// Reply of `statx`.
    StatxOut (288) { attr_valid: u64, attr_valid_nsec: u32, flags: u32, spare: [u64; 2],
        stat: StatxBody }

    /// Argument of `forget`.
    ForgetIn (8) { nlookup: u64 }
    /// One node of `batch_forget`.
    ForgetOne (16) { nodeid: u64, nlookup: u64 }
    /// Head of `batch_forget`, followed by `count` times [`ForgetOne`].
    BatchForgetIn (8) { count: u32, dummy: u32 }
    /// Argument of `getattr`.
    GetattrIn (16) { getattr_flags: u32, dummy: u32, fh: u64 }
    /// Argument of `setattr`.
    SetattrIn (88) { valid: u32, padding: u32, fh: u64, size: u64, lock_owner: u64, atime: i64,
        mtime: i64, ctime: i64, atimensec: u32, mtimensec: u32, ctimensec: u32, mode: u32,
        unused4: u32, uid: u32, gid: u32, unused5: u32 }
    /// Argument of `mknod`, followed by the name.
    MknodIn (16) { mode: u32, rdev: u32, umask: u32, padding: u32 }
    /// Argument of `mkdir`, followed by the name.
    MkdirIn (8) { mode: u32, umask: u32 }
    /// Argument of `rename`, followed by the old and the new name.
    RenameIn (8) { newdir: u64 }
    /// Argument of `rename2`, followed by the old and the new name.
    Rename2In (16) { newdir: u64, flags: u32, padding: u32 }
    /// Argument of `link`, followed by the new name.
    LinkIn (8) { oldnodeid: u64 }
    /// Argument of `open` and `opendir`.
    OpenIn (8) { flags: u32, open_flags: u32 }
    /// Argument of `create` and `tmpfile`, followed by the name.
    CreateIn (16) { flags: u32, mode: u32, umask: u32, open_flags: u32 }
    /// Reply of `open` and `opendir`, second part of the reply of `create`.
    OpenOut (16) { fh: u64, open_flags: u32, backing_id: i32 }
    /// Argument of `release` and `releasedir`.
    ReleaseIn (24) { fh: u64, flags: u32, release_flags: u32, lock_owner: u64 }
    /// Argument of `flush`.
    FlushIn (24) { fh: u64, unused: u32, padding: u32, lock_owner: u64 }
    /// Argument of `read`, `readdir` and `readdirplus`.
    ReadIn (40) { fh: u64, offset: u64, size: u32, read_flags: u32, lock_owner: u64, flags: u32,
        padding: u32 }
    /// Argument of `write`, followed by the data.
    WriteIn (40) { fh: u64, offset: u64, size: u32, write_flags: u32, lock_owner: u64, flags: u32,
        padding: u32 }
    /// Reply of `write` and of the 32-bit `copy_file_range`.
    WriteOut (8) { size: u32, padding: u32 }
    /// Reply of `statfs`.
    StatfsOut (80) { blocks: u64, bfree: u64, bavail: u64, files: u64, ffree: u64, bsize: u32,
        namelen: u32, frsize: u32, padding: u32, spare: [u32; 6] }
    /// Argument of `fsync` and `fsyncdir`.
    FsyncIn (16) { fh: u64, fsync_flags: u32, padding: u32 }
    /// First part of the argument of `setxattr`, followed by [`SetxattrExt`] if negotiated.
    SetxattrIn (8) { size: u32, flags: u32 }
    /// Second part of the argument of `setxattr` (feature `SETXATTR_EXT`).
    SetxattrExt (8) { setxattr_flags: u32, padding: u32 }
    /// Argument of `getxattr` (followed by the name) and `listxattr`.
    GetxattrIn (8) { size: u32, padding: u32 }
    /// Reply of `getxattr` and `listxattr` when only the size was asked for.
    GetxattrOut (8) { size: u32, padding: u32 }
    /// A byte range lock; `kind` is `F_RDLCK`, `F_WRLCK` or `F_UNLCK`.
    FileLock (24) { start: u64, end: u64, kind: u32, pid: u32 }
    /// Argument of `getlk` and `setlk`; a lone [`FileLock`] is the reply of `getlk`.
    LkIn (48) { fh: u64, owner: u64, lk: FileLock, lk_flags: u32, padding: u32 }
    /// Argument of `access`.
    AccessIn (8) { mask: u32, padding: u32 }
    /// First part of the argument of `init`.
    InitIn (16) { major: u32, minor: u32, max_readahead: u32, flags: u32 }
    /// Second part of the argument of `init` (feature `INIT_EXT`).
    InitInExt (48) { flags2: u32, unused: [u32; 11] }
    /// Reply of `init`.
    InitOut (64) { major: u32, minor: u32, max_readahead: u32, flags: u32, max_background: u16,
        congestion_threshold: u16, max_write: u32, time_gran: u32, max_pages: u16,
        map_alignment: u16, flags2: u32, max_stack_depth: u32, request_timeout: u16,
        unused: [u16; 11] }
    /// Argument of `interrupt`.
    InterruptIn (8) { unique: u64 }
    /// Argument of `ioctl`, followed by `in_size` bytes.
    IoctlIn (32) { fh: u64, flags: u32, cmd: u32, arg: u64, in_size: u32, out_size: u32 }
    /// Reply of `ioctl`, followed by the data.
    IoctlOut (16) { result: i32, flags: u32, in_iovs: u32, out_iovs: u32 }
    /// Argument of `poll`.
    PollIn (24) { fh: u64, kh: u64, flags: u32, events: u32 }
    /// Reply of `poll`.
    PollOut (8) { revents: u32, padding: u32 }
    /// Argument of `fallocate`.
    FallocateIn (32) { fh: u64, offset: u64, length: u64, mode: u32, padding: u32 }
    /// Argument of `lseek`.
    LseekIn (24) { fh: u64, offset: u64, whence: u32, padding: u32 }
    /// Reply of `lseek`.
    LseekOut (8) { offset: u64 }
    /// Argument of `copy_file_range` in both widths.
    CopyFileRangeIn (56) { fh_in: u64, off_in: u64, nodeid_out: u64, fh_out: u64, off_out: u64,
        len: u64, flags: u64 }
    /// Reply of the 64-bit `copy_file_range`.
    CopyFileRangeOut (8) { bytes_copied: u64 }
    /// Head of a directory record, followed by the name.
    Dirent (24) { ino: u64, off: u64, namelen: u32, kind: u32 }

    /// Notification: forget cached attributes and a range of cached data.
    InvalInodeOut (24) { ino: u64, off: i64, len: i64 }
    /// Notification: forget a name, which follows NUL-terminated.
    InvalEntryOut (16) { parent: u64, namelen: u32, flags: u32 }
    /// Notification: a name was removed; the name follows NUL-terminated.
    DeleteOut (24) { parent: u64, child: u64, namelen: u32, padding: u32 }
    /// Notification: put data into the page cache; the data follows.
    StoreOut (24) { nodeid: u64, offset: u64, size: u32, padding: u32 }
    /// Notification: wake a poller.
    PollWakeupOut (8) { kh: u64 }

    /// Head of a request extension; `size` includes the head.
    ExtHeader (8) { size: u32, kind: u32 }
    /// Head of the supplementary groups extension, followed by the group numbers.
    SuppGroups (4) { nr_groups: u32 }

    /// Argument of the ioctl that registers a backing file.
    BackingMap (16) { fd: i32, flags: u32, padding: u64 }

    /// Head of an entry of a ring: both sides write the headers of requests and replies here.
    UringHeader (288) { in_out: [[u64; 8]; 2], op_in: [[u64; 8]; 2], entry: UringEntry }
    /// Part of [`UringHeader`]: what a request or reply is and how long its payload.
    UringEntry (32) { flags: u64, commit_id: u64, payload_sz: u32, padding: u32, reserved: u64 }
    /// Argument of commands to a ring, in the submission queue entry.
    UringCommand (24) { flags: u64, commit_id: u64, qid: u16, padding: [u16; 3] }
}
