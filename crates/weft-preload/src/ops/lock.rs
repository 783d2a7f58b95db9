//! Locks of fcntl(2) and flock(2).

use super::data;
use crate::caller;
use crate::description::{Description, PROCESS};
use crate::path::Errno;
use crate::process::Process;
use weft_client::lock::TO_END;
use weft_client::{LockKind, LockRange};

/// Added to an open file's number to make it the owner of its locks (`F_OFD_SETLK`), which no process is.
const OPEN_FILE: u64 = 1 << 32;

/// Commands of fcntl(2) that concern locks.
pub fn is_lock(command: i32) -> bool {
    let process = [libc::F_GETLK, libc::F_SETLK, libc::F_SETLKW];
    let file = [libc::F_OFD_GETLK, libc::F_OFD_SETLK, libc::F_OFD_SETLKW];
    process.contains(&command) || file.contains(&command)
}

/// Does what fcntl(2) is asked to.
///
/// # Errors
/// As fcntl(2).
pub fn control(
    process: &Process,
    description: &Description,
    command: i32,
    lock: &mut libc::flock64,
) -> Result<(), Errno> {
    let ofd = [libc::F_OFD_GETLK, libc::F_OFD_SETLK, libc::F_OFD_SETLKW].contains(&command);
    let owner = if ofd { OPEN_FILE + description.owner() } else { PROCESS };
    let range = range(process, description, lock, owner)?;
    let ctx = caller::ctx();
    if matches!(command, libc::F_GETLK | libc::F_OFD_GETLK) {
        let found = description
            .with_file(process, |live, file| live.client.test_lock(&ctx, file, &range))?;
        match found {
            None => lock.l_type = libc::F_UNLCK as i16,
            Some(found) => tell(&found, lock),
        }
        return Ok(());
    }
    let access = description.flags() & libc::O_ACCMODE;
    match range.kind {
        LockKind::Read if access == libc::O_WRONLY => return Err(Errno(libc::EBADF)),
        LockKind::Write if access == libc::O_RDONLY => return Err(Errno(libc::EBADF)),
        _ => {}
    }
    let wait = matches!(command, libc::F_SETLKW | libc::F_OFD_SETLKW);
    description.with_file(process, |live, file| live.client.lock(&ctx, file, &range, wait))
}

fn range(
    process: &Process,
    description: &Description,
    lock: &libc::flock64,
    owner: u64,
) -> Result<LockRange, Errno> {
    let invalid = Errno(libc::EINVAL);
    let kind = match i32::from(lock.l_type) {
        libc::F_RDLCK => LockKind::Read,
        libc::F_WRLCK => LockKind::Write,
        libc::F_UNLCK => LockKind::Unlock,
        _ => return Err(invalid),
    };
    let base = match i32::from(lock.l_whence) {
        libc::SEEK_SET => 0,
        libc::SEEK_CUR => description.with_offset(|at| *at),
        libc::SEEK_END => data::size(process, description)?,
        _ => return Err(invalid),
    };
    let from = (base as i64).checked_add(lock.l_start).ok_or(Errno(libc::EOVERFLOW))?;
    // A negative length reaches backwards, none to the end.
    let (first, last) = match lock.l_len {
        0 => (from, TO_END as i64),
        len if len < 0 => (from + len, from - 1),
        len => (from, from.checked_add(len - 1).ok_or(Errno(libc::EOVERFLOW))?),
    };
    let start = u64::try_from(first).map_err(|_| invalid)?;
    let pid = std::process::id();
    Ok(LockRange { owner, flock: false, kind, start, end: last as u64, pid })
}

fn tell(found: &LockRange, lock: &mut libc::flock64) {
    lock.l_type = match found.kind {
        LockKind::Read => libc::F_RDLCK,
        LockKind::Write => libc::F_WRLCK,
        LockKind::Unlock => libc::F_UNLCK,
    } as i16;
    lock.l_whence = libc::SEEK_SET as i16;
    lock.l_start = found.start as i64;
    lock.l_len = if found.end >= TO_END { 0 } else { (found.end - found.start + 1) as i64 };
    lock.l_pid = found.pid as i32;
}

/// Does what flock(2) is asked to.
///
/// # Errors
/// As flock(2).
pub fn whole(process: &Process, description: &Description, operation: i32) -> Result<(), Errno> {
    let kind = match operation & !libc::LOCK_NB {
        libc::LOCK_SH => LockKind::Read,
        libc::LOCK_EX => LockKind::Write,
        libc::LOCK_UN => LockKind::Unlock,
        _ => return Err(Errno(libc::EINVAL)),
    };
    let (owner, pid) = (description.owner(), std::process::id());
    let range = LockRange { owner, flock: true, kind, start: 0, end: TO_END, pid };
    let wait = operation & libc::LOCK_NB == 0;
    let ctx = caller::ctx();
    description.with_file(process, |live, file| live.client.lock(&ctx, file, &range, wait))
}
