//! `Lock`, `TestLock`, `AwaitLock`, `CancelLock`: advisory locks.

use crate::Mds;
use crate::locks::{Family, Lock};
use std::time::Duration;
use weft_model::{ErrorKind, Fid, FsError, Result};
use weft_rpc::CallInfo;
use weft_rpc::pb::{Empty, mds};

const READ: u32 = 0;
const UNLOCK: u32 = 2;

fn decode(info: &CallInfo, request: &mds::Lock) -> Result<(Fid, Family, Lock)> {
    if request.kind > UNLOCK || request.start > request.end {
        return Err(ErrorKind::Invalid.into());
    }
    let family = if request.flock { Family::Flock } else { Family::Posix };
    let lock = Lock {
        owner: (info.client, request.owner),
        write: request.kind != READ,
        start: request.start,
        end: request.end,
        pid: request.pid,
    };
    Ok((Fid(request.fid), family, lock))
}

/// Takes or releases a lock.
///
/// # Errors
/// `Deadlock`, `Invalid`; `NotReady` while clients reclaim theirs after a restart.
pub fn lock(mds: &Mds, info: &CallInfo, request: &mds::Lock) -> Result<mds::LockReply> {
    let (fid, family, lock) = decode(info, request)?;
    if request.kind == UNLOCK {
        mds.locks.change(|table| table.unlock(fid, family, lock));
        return Ok(mds::LockReply { granted: true });
    }
    if mds.is_recovering() {
        return Err(FsError::new(ErrorKind::NotReady, "lock")
            .on(format_args!("target={}", mds.target))
            .because("clients are reclaiming their locks"));
    }
    let now = mds.env.monotonic();
    let granted = mds.locks.change(|table| table.lock(fid, family, lock, request.wait, now))?;
    Ok(mds::LockReply { granted })
}

/// Takes a lock that the client held before a restart.
///
/// # Errors
/// `Busy` when somebody else has it, which cannot be if all reclaim only what they had.
pub fn reclaim(mds: &Mds, info: &CallInfo, request: &mds::Lock) -> Result<()> {
    let (fid, family, lock) = decode(info, request)?;
    let now = mds.env.monotonic();
    match mds.locks.change(|table| table.lock(fid, family, lock, false, now))? {
        true => Ok(()),
        false => Err(FsError::new(ErrorKind::Busy, "reclaim lock").on(format_args!("fid={fid}"))),
    }
}

/// Says what stands in the way of a lock.
///
/// # Errors
/// `Invalid`.
pub fn test(mds: &Mds, info: &CallInfo, request: &mds::TestLock) -> Result<mds::TestLockReply> {
    let wanted = request.lock.as_ref().ok_or(ErrorKind::Invalid)?;
    let (fid, family, lock) = decode(info, wanted)?;
    let conflict = mds.locks.table().test(fid, family, &lock).map(|held| mds::Lock {
        fid: fid.0,
        owner: held.owner.1,
        flock: family == Family::Flock,
        kind: held.write as u32,
        start: held.start,
        end: held.end,
        pid: held.pid,
        wait: false,
    });
    Ok(mds::TestLockReply { conflict })
}

/// Waits until a lock could be had.
///
/// # Errors
/// `Invalid`.
pub fn wait(mds: &Mds, info: &CallInfo, request: &mds::AwaitLock) -> Result<mds::AwaitLockReply> {
    let wanted = request.lock.as_ref().ok_or(ErrorKind::Invalid)?;
    let (fid, family, lock) = decode(info, wanted)?;
    let wait = Duration::from_millis(request.wait_ms.into());
    // While clients reclaim theirs, none is given.
    let free = mds.locks.wait(&*mds.env, (fid, family, &lock), wait) && !mds.is_recovering();
    Ok(mds::AwaitLockReply { free })
}

/// Gives up waiting.
///
/// # Errors
/// `Invalid`.
pub fn cancel(mds: &Mds, info: &CallInfo, request: &mds::CancelLock) -> Result<Empty> {
    let wanted = request.lock.as_ref().ok_or(ErrorKind::Invalid)?;
    let (fid, family, lock) = decode(info, wanted)?;
    mds.locks.change(|table| table.cancel(fid, family, &lock));
    Ok(Empty {})
}
