//! Between the kernel's types and those of the model.

use super::Door;
use crate::kernel::{
    Attr, Attributes, Entry, Lock, LockKind, OpenFlags, Opened, SetAttr, SetTime, Statfs, Time,
};
use std::time::Duration;
use weft_client::{DirEntry, Found, FsStat, Grant, LockRange};
use weft_model as model;
use weft_model::FileType;

/// Preferred size of transfers, for programs that ask: one full request.
const IO_SIZE: u32 = 1 << 20;
/// Unit in which space is told.
const BLOCK: u64 = 4096;

fn time(time: model::Timespec) -> Time {
    Time { secs: time.secs, nanos: time.nanos }
}

fn timespec(time: Time) -> model::Timespec {
    model::Timespec { secs: time.secs, nanos: time.nanos }
}

fn set_time(set: SetTime) -> model::SetTime {
    match set {
        SetTime::Now => model::SetTime::Now,
        SetTime::At(time) => model::SetTime::At(timespec(time)),
    }
}

/// Attributes as the kernel has them.
pub(super) fn attr(attr: &model::Attr) -> Attr {
    Attr {
        ino: attr.fid.0,
        size: attr.size,
        blocks: attr.blocks,
        atime: time(attr.atime),
        mtime: time(attr.mtime),
        ctime: time(attr.ctime),
        mode: attr.kind.mode_bits() | attr.mode,
        nlink: attr.nlink,
        uid: attr.uid,
        gid: attr.gid,
        rdev: attr.rdev,
        blksize: if attr.kind == FileType::Regular { IO_SIZE } else { BLOCK as u32 },
    }
}

/// Time of birth.
pub(super) fn btime(attr: &model::Attr) -> Time {
    time(attr.btime)
}

/// Changes as the client has them.
pub(super) fn set_attr(set: &SetAttr) -> model::SetAttr {
    model::SetAttr {
        mode: set.mode.map(|mode| mode & model::attr::mode::PERMISSIONS),
        uid: set.uid,
        gid: set.gid,
        size: set.size,
        atime: set.atime.map(set_time),
        mtime: set.mtime.map(set_time),
        ctime: set.ctime.map(timespec),
        kill_suidgid: set.kill_suidgid,
    }
}

/// The owner of locks made with flock(2) through a handle. The kernel's number will not do: it is the address of
/// the open file, and the next file opened may have the same before the kernel has told that this one is closed.
pub(super) const fn flock_owner(fh: u64) -> u64 {
    fh
}

/// A lock as the client has it.
pub(super) fn lock_range(lock: &Lock) -> LockRange {
    LockRange {
        owner: if lock.flock { flock_owner(lock.fh) } else { lock.owner },
        flock: lock.flock,
        kind: match lock.kind {
            LockKind::Shared => weft_client::LockKind::Read,
            LockKind::Exclusive => weft_client::LockKind::Write,
            LockKind::Unlock => weft_client::LockKind::Unlock,
        },
        start: lock.start,
        end: lock.end,
        pid: lock.pid,
    }
}

/// What `asked` is told of the lock in its way, if there is one.
pub(super) fn lock_found(asked: &Lock, found: Option<LockRange>) -> Lock {
    let Some(found) = found else { return Lock { kind: LockKind::Unlock, ..*asked } };
    let kind = match found.kind {
        weft_client::LockKind::Read => LockKind::Shared,
        weft_client::LockKind::Write => LockKind::Exclusive,
        weft_client::LockKind::Unlock => LockKind::Unlock,
    };
    let LockRange { start, end, pid, .. } = found;
    Lock { kind, start, end, pid, ..*asked }
}

/// Totals as the kernel has them.
pub(super) fn statfs(stat: &FsStat) -> Statfs {
    let free = stat.bytes_free / BLOCK;
    Statfs {
        blocks: stat.bytes / BLOCK,
        bfree: free,
        bavail: free,
        files: stat.files,
        ffree: stat.files_free,
        bsize: BLOCK as u32,
        namelen: stat.name_max,
        frsize: BLOCK as u32,
    }
}

impl Door {
    pub(super) fn entry(&self, found: &Found) -> Entry {
        Entry {
            node: self.node(found.fid),
            generation: 0,
            attr: attr(found),
            entry_ttl: self.ttl(&found.name_grant, self.config.entry_ttl),
            attr_ttl: self.ttl(&found.grant, self.config.attr_ttl),
        }
    }

    /// There is no such name.
    pub(super) fn absent(&self, grant: &Grant) -> model::Result<Entry> {
        match self.ttl(grant, Duration::ZERO) {
            Duration::ZERO => Err(model::ErrorKind::NotFound.into()),
            ttl => Ok(Entry::negative(ttl)),
        }
    }

    pub(super) fn attributes(&self, found: &Found) -> Attributes {
        Attributes { attr: attr(found), ttl: self.ttl(&found.grant, self.config.attr_ttl) }
    }

    /// How long the kernel may keep what was granted; at least as long as it was told to anyway.
    pub(super) fn ttl(&self, grant: &Grant, least: Duration) -> Duration {
        if *grant == Grant::NONE {
            return least;
        }
        self.cache.publish();
        self.client.grant_left(grant).max(least)
    }

    /// An entry of a listing. Without attributes it tells number and type only, and so does one of
    /// `.` or `..`, which have none.
    pub(super) fn listed(&self, listed: &DirEntry) -> Entry {
        if let Some(found) = &listed.attr {
            return self.entry(found);
        }
        let (ino, mode) = (listed.fid.0, listed.kind.mode_bits());
        Entry { node: 0, ..Entry::new(Attr { ino, mode, ..Attr::default() }, Duration::ZERO) }
    }

    /// An open file, with the treatment that every file gets.
    pub(super) fn opened(&self, fh: u64) -> Opened {
        let direct = OpenFlags::DIRECT_IO | OpenFlags::PARALLEL_DIRECT_WRITES;
        Opened::new(fh, if self.config.direct_io { direct } else { OpenFlags::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_in_the_way_keeps_who_asked() {
        let asked = Lock {
            fh: 1,
            owner: 2,
            start: 0,
            end: 9,
            kind: LockKind::Exclusive,
            pid: 3,
            flock: false,
        };
        assert_eq!(lock_found(&asked, None).kind, LockKind::Unlock);
        let other = LockRange { owner: 7, start: 4, end: 5, pid: 8, ..lock_range(&asked) };
        let found = lock_found(&asked, Some(other));
        assert_eq!((found.start, found.end, found.pid), (4, 5, 8));
        assert_eq!((found.kind, found.fh), (LockKind::Exclusive, 1));
    }
}
