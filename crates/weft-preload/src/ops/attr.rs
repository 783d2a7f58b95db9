//! Attributes of places and open files.

use crate::cache::Key;
use crate::caller;
use crate::description::Description;
use crate::path::{Errno, Spot};
use crate::process::Process;
use weft_client::FsStat;
use weft_model::attr::mode::PERMISSIONS;
use weft_model::{Attr, Fid, SetAttr, SetTime, Timespec};

/// Attributes of what a path names.
///
/// # Errors
/// `ENOENT`.
pub fn of_spot(spot: &Spot) -> Result<Attr, Errno> {
    spot.found.ok_or(Errno(libc::ENOENT))
}

/// Attributes of an open file.
///
/// # Errors
/// Those of the servers.
pub fn of_file(process: &Process, description: &Description) -> Result<Attr, Errno> {
    Ok(process.live(description.mount)?.cache.attr(description.fid)?.attr)
}

/// Changes attributes.
///
/// # Errors
/// Those of the servers.
pub fn set(process: &Process, mount: usize, fid: Fid, set: &SetAttr) -> Result<(), Errno> {
    let live = process.live(mount)?;
    let _change = live.cache.change(vec![Key::Attr(fid)]);
    live.client.setattr(&caller::ctx(), fid, set, None)?;
    Ok(())
}

/// What chmod(2) changes.
pub fn mode(mode: u32) -> SetAttr {
    SetAttr { mode: Some(mode & PERMISSIONS), ..SetAttr::default() }
}

/// What chown(2) changes. The kernel has set-id bits of files taken away, and so do we.
pub fn owner(attr: &Attr, uid: u32, gid: u32) -> SetAttr {
    let given = |id: u32| (id != u32::MAX).then_some(id);
    let kill_suidgid = attr.kind != weft_model::FileType::Directory;
    SetAttr { uid: given(uid), gid: given(gid), kill_suidgid, ..SetAttr::default() }
}

/// What utimensat(2) changes.
///
/// # Errors
/// `EINVAL` for what is no time.
pub fn times(times: Option<[libc::timespec; 2]>) -> Result<SetAttr, Errno> {
    let Some([atime, mtime]) = times else {
        let now = Some(SetTime::Now);
        return Ok(SetAttr { atime: now, mtime: now, ..SetAttr::default() });
    };
    Ok(SetAttr { atime: time(&atime)?, mtime: time(&mtime)?, ..SetAttr::default() })
}

fn time(time: &libc::timespec) -> Result<Option<SetTime>, Errno> {
    match time.tv_nsec {
        libc::UTIME_NOW => Ok(Some(SetTime::Now)),
        libc::UTIME_OMIT => Ok(None),
        nanos @ 0..1_000_000_000 => {
            let instant = Timespec { secs: time.tv_sec, nanos: nanos as u32 };
            Ok(Some(SetTime::At(instant)))
        }
        _ => Err(Errno(libc::EINVAL)),
    }
}

/// Whether the process may do something.
///
/// # Errors
/// `EACCES`, and those of the servers.
pub fn access(process: &Process, spot: &Spot, mode: i32, real_ids: bool) -> Result<(), Errno> {
    let attr = of_spot(spot)?;
    if mode & !7 != 0 {
        return Err(Errno(libc::EINVAL));
    }
    if mode == 0 {
        return Ok(());
    }
    let mut ctx = caller::ctx();
    if real_ids {
        // SAFETY: neither has preconditions or can fail.
        (ctx.cred.uid, ctx.cred.gid) = unsafe { (libc::getuid(), libc::getgid()) };
    }
    let live = process.live(spot.dir.mount)?;
    Ok(live.client.access(&ctx, attr.fid, mode as u32)?)
}

/// Space.
///
/// # Errors
/// Those of the servers.
pub fn space(process: &Process, mount: usize) -> Result<FsStat, Errno> {
    Ok(process.live(mount)?.client.statfs(&caller::ctx())?)
}

/// Cuts or grows what a path names.
///
/// # Errors
/// As truncate(2).
pub fn truncate(process: &Process, spot: &Spot, len: i64) -> Result<(), Errno> {
    let attr = of_spot(spot)?;
    let size = u64::try_from(len).map_err(|_| Errno(libc::EINVAL))?;
    match attr.kind {
        weft_model::FileType::Regular => {}
        weft_model::FileType::Directory => return Err(Errno(libc::EISDIR)),
        _ => return Err(Errno(libc::EINVAL)),
    }
    let change = SetAttr { size: Some(size), ..SetAttr::default() };
    set(process, spot.dir.mount, attr.fid, &change)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_now_left_or_given() {
        let at = |secs, nanos| libc::timespec { tv_sec: secs, tv_nsec: nanos };
        let set = times(Some([at(0, libc::UTIME_OMIT), at(5, 6)])).unwrap();
        let instant = Timespec { secs: 5, nanos: 6 };
        assert_eq!((set.atime, set.mtime), (None, Some(SetTime::At(instant))));
        assert_eq!(times(None).unwrap().atime, Some(SetTime::Now));
        assert_eq!(times(Some([at(0, -1), at(0, 0)])), Err(Errno(libc::EINVAL)));
    }
}
