//! From the plain types to the wire structures of replies.

use super::abi::*;
use super::types::*;

impl From<&Attr> for AttrOutBody {
    fn from(attr: &Attr) -> AttrOutBody {
        AttrOutBody {
            ino: attr.ino,
            size: attr.size,
            blocks: attr.blocks,
            atime: attr.atime.secs,
            mtime: attr.mtime.secs,
            ctime: attr.ctime.secs,
            atimensec: attr.atime.nanos,
            mtimensec: attr.mtime.nanos,
            ctimensec: attr.ctime.nanos,
            mode: attr.mode,
            nlink: attr.nlink,
            uid: attr.uid,
            gid: attr.gid,
            rdev: attr.rdev,
            blksize: attr.blksize,
            flags: 0,
        }
    }
}

impl From<&Attributes> for AttrOut {
    fn from(attributes: &Attributes) -> AttrOut {
        AttrOut {
            attr_valid: attributes.ttl.as_secs(),
            attr_valid_nsec: attributes.ttl.subsec_nanos(),
            dummy: 0,
            attr: (&attributes.attr).into(),
        }
    }
}

impl From<&Entry> for EntryOut {
    fn from(entry: &Entry) -> EntryOut {
        EntryOut {
            nodeid: entry.node,
            generation: entry.generation,
            entry_valid: entry.entry_ttl.as_secs(),
            attr_valid: entry.attr_ttl.as_secs(),
            entry_valid_nsec: entry.entry_ttl.subsec_nanos(),
            attr_valid_nsec: entry.attr_ttl.subsec_nanos(),
            attr: (&entry.attr).into(),
        }
    }
}

impl From<&Opened> for OpenOut {
    fn from(opened: &Opened) -> OpenOut {
        let Opened { fh, flags, backing_id } = *opened;
        OpenOut { fh, open_flags: flags.0, backing_id }
    }
}

impl From<&Statfs> for StatfsOut {
    fn from(statfs: &Statfs) -> StatfsOut {
        StatfsOut {
            blocks: statfs.blocks,
            bfree: statfs.bfree,
            bavail: statfs.bavail,
            files: statfs.files,
            ffree: statfs.ffree,
            bsize: statfs.bsize,
            namelen: statfs.namelen,
            frsize: statfs.frsize,
            ..StatfsOut::default()
        }
    }
}

fn sx_time(time: Time) -> SxTime {
    SxTime { sec: time.secs, nsec: time.nanos, reserved: 0 }
}

impl From<&Statx> for StatxOut {
    fn from(statx: &Statx) -> StatxOut {
        let Attr { ino, size, blocks, atime, mtime, ctime, .. } = statx.attr;
        let Attr { mode, nlink, uid, gid, rdev, blksize, .. } = statx.attr;
        let born = if statx.btime.is_some() { libc::STATX_BTIME } else { 0 };
        let stat = StatxBody {
            mask: libc::STATX_BASIC_STATS | born,
            blksize,
            attributes: statx.attributes,
            nlink,
            uid,
            gid,
            mode: mode as u16,
            ino,
            size,
            blocks,
            attributes_mask: statx.attributes_mask,
            atime: sx_time(atime),
            btime: sx_time(statx.btime.unwrap_or_default()),
            ctime: sx_time(ctime),
            mtime: sx_time(mtime),
            rdev_major: (rdev >> 8) & 0xfff,
            rdev_minor: (rdev & 0xff) | ((rdev >> 12) & 0xfff00),
            ..StatxBody::default()
        };
        StatxOut {
            attr_valid: statx.ttl.as_secs(),
            attr_valid_nsec: statx.ttl.subsec_nanos(),
            stat,
            ..StatxOut::default()
        }
    }
}

impl From<&SetattrIn> for SetAttr {
    fn from(set: &SetattrIn) -> SetAttr {
        let asked = |bit| set.valid & bit != 0;
        let time = |bit, now, secs, nanos| match (asked(bit), asked(now)) {
            (false, _) => None,
            (true, true) => Some(SetTime::Now),
            (true, false) => Some(SetTime::At(Time { secs, nanos })),
        };
        SetAttr {
            mode: asked(fattr::MODE).then_some(set.mode),
            uid: asked(fattr::UID).then_some(set.uid),
            gid: asked(fattr::GID).then_some(set.gid),
            size: asked(fattr::SIZE).then_some(set.size),
            atime: time(fattr::ATIME, fattr::ATIME_NOW, set.atime, set.atimensec),
            mtime: time(fattr::MTIME, fattr::MTIME_NOW, set.mtime, set.mtimensec),
            ctime: asked(fattr::CTIME).then_some(Time { secs: set.ctime, nanos: set.ctimensec }),
            fh: asked(fattr::FH).then_some(set.fh),
            lock_owner: asked(fattr::LOCKOWNER).then_some(set.lock_owner),
            kill_suidgid: asked(fattr::KILL_SUIDGID),
        }
    }
}

impl LockKind {
    /// From the number of `struct flock`.
    pub(crate) fn from_raw(raw: u32) -> Option<LockKind> {
        match raw as i32 {
            libc::F_RDLCK => Some(LockKind::Shared),
            libc::F_WRLCK => Some(LockKind::Exclusive),
            libc::F_UNLCK => Some(LockKind::Unlock),
            _ => None,
        }
    }

    fn raw(self) -> u32 {
        (match self {
            LockKind::Shared => libc::F_RDLCK,
            LockKind::Exclusive => libc::F_WRLCK,
            LockKind::Unlock => libc::F_UNLCK,
        }) as u32
    }
}

impl From<&Lock> for FileLock {
    fn from(lock: &Lock) -> FileLock {
        FileLock { start: lock.start, end: lock.end, kind: lock.kind.raw(), pid: lock.pid }
    }
}
