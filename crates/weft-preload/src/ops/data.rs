//! Reading, writing and what else concerns the data of open files.

use crate::caller;
use crate::description::Description;
use crate::live::Live;
use crate::path::Errno;
use crate::process::Process;
use weft_client::{AllocateMode, OpenFile, OpenFlags, Whence};
use weft_model::{DataVersion, FileType, SetAttr};

/// Largest offset.
const MAX_OFFSET: u64 = i64::MAX as u64;
/// Flags of preadv2(2) and pwritev2(2) that are hints here, or hold anyway.
const HINTS: i32 = libc::RWF_HIPRI | libc::RWF_NOWAIT;

/// Where to read or write.
#[derive(Clone, Copy)]
pub enum At {
    /// At the offset of the open file, which moves.
    Here,
    /// At this place.
    Place(i64),
}

impl At {
    fn place(offset: i64) -> Result<u64, Errno> {
        u64::try_from(offset).map_err(|_| Errno(libc::EINVAL))
    }
}

/// Reads.
///
/// # Errors
/// As read(2).
pub fn read(
    process: &Process,
    description: &Description,
    at: At,
    buf: &mut [u8],
) -> Result<usize, Errno> {
    if description.flags() & libc::O_ACCMODE == libc::O_WRONLY {
        return Err(Errno(libc::EBADF));
    }
    description.with_file(process, |live, file| Ok(read_file(live, description, file, at, buf)))?
}

fn read_file(
    live: &Live,
    description: &Description,
    file: &OpenFile,
    at: At,
    buf: &mut [u8],
) -> Result<usize, Errno> {
    match at {
        At::Place(offset) => read_at(live, description, file, At::place(offset)?, buf),
        At::Here => description.with_offset(|offset| {
            let got = read_at(live, description, file, *offset, buf)?;
            *offset += got as u64;
            Ok(got)
        }),
    }
}

fn read_at(
    live: &Live,
    description: &Description,
    file: &OpenFile,
    offset: u64,
    buf: &mut [u8],
) -> Result<usize, Errno> {
    let ctx = caller::ctx();
    let straight = description.flags() & libc::O_DIRECT != 0
        || file.flags().has(OpenFlags::WRITE)
        || !live.client.caches();
    if straight || buf.is_empty() {
        return Ok(live.client.read(&ctx, file, offset, buf)?);
    }
    let mut ahead = description.ahead.lock();
    // Data asked for after the attributes is theirs, or newer, which the next attributes show.
    let Some(found) = live.cache.granted(description.fid) else {
        drop(ahead);
        return Ok(live.client.read(&ctx, file, offset, buf)?);
    };
    let version = DataVersion::from(&found.attr);
    if let Some(got) = ahead.copy(version, offset, buf) {
        return Ok(got);
    }
    let Some(window) = ahead.plan(found.size, offset, buf.len()) else {
        drop(ahead);
        return Ok(live.client.read(&ctx, file, offset, buf)?);
    };
    let start = ahead.from(found.size, offset);
    let window = window.max((offset - start) as usize + buf.len());
    let window = window.max(if start == 0 { found.size as usize } else { 0 }.min(1 << 20));
    ahead.fill(version, start, window, |data| live.client.read(&ctx, file, start, data))?;
    match ahead.copy(version, offset, buf) {
        Some(got) => Ok(got),
        // The file has become shorter meanwhile.
        None => Ok(live.client.read(&ctx, file, offset, buf)?),
    }
}

/// Writes.
///
/// # Errors
/// As write(2).
pub fn write(
    process: &Process,
    description: &Description,
    at: At,
    data: &[u8],
) -> Result<usize, Errno> {
    if description.flags() & libc::O_ACCMODE == libc::O_RDONLY {
        return Err(Errno(libc::EBADF));
    }
    let ctx = caller::ctx();
    description.with_file(process, |live, file| {
        description.note_write(live);
        let outcome = match at {
            At::Place(offset) => {
                At::place(offset).and_then(|at| Ok(live.client.write(&ctx, file, at, data)?))
            }
            At::Here => description.with_offset(|offset| {
                let written = live.client.write(&ctx, file, *offset, data)?;
                *offset += written as u64;
                Ok(written)
            }),
        };
        Ok(outcome)
    })?
}

/// Whether flags of preadv2(2) and pwritev2(2) can be heeded.
///
/// # Errors
/// `EOPNOTSUPP`.
pub fn check_flags(flags: i32) -> Result<(), Errno> {
    if flags & !HINTS == 0 { Ok(()) } else { Err(Errno(libc::EOPNOTSUPP)) }
}

/// Moves the offset.
///
/// # Errors
/// As lseek(2).
pub fn seek(
    process: &Process,
    description: &Description,
    offset: i64,
    whence: i32,
) -> Result<i64, Errno> {
    let invalid = Errno(libc::EINVAL);
    let base = match whence {
        libc::SEEK_SET => 0,
        libc::SEEK_CUR => description.with_offset(|at| *at),
        libc::SEEK_END if description.kind == FileType::Regular => size(process, description)?,
        libc::SEEK_DATA | libc::SEEK_HOLE => {
            let what = if whence == libc::SEEK_DATA { Whence::Data } else { Whence::Hole };
            let from = u64::try_from(offset).map_err(|_| Errno(libc::ENXIO))?;
            let ctx = caller::ctx();
            let found = description
                .with_file(process, |live, file| live.client.seek(&ctx, file, from, what))?;
            description.with_offset(|at| *at = found);
            return Ok(found as i64);
        }
        _ => return Err(invalid),
    };
    let to = (base as i64).checked_add(offset).ok_or(Errno(libc::EOVERFLOW))?;
    let to = u64::try_from(to).map_err(|_| invalid)?;
    description.with_offset(|at| *at = to);
    Ok(to as i64)
}

/// The size of a file.
///
/// # Errors
/// Those of the servers.
pub fn size(process: &Process, description: &Description) -> Result<u64, Errno> {
    Ok(process.live(description.mount)?.cache.attr(description.fid)?.size)
}

/// Cuts or grows an open file.
///
/// # Errors
/// As ftruncate(2).
pub fn truncate(process: &Process, description: &Description, len: i64) -> Result<(), Errno> {
    let size = u64::try_from(len).map_err(|_| Errno(libc::EINVAL))?;
    if description.flags() & libc::O_ACCMODE == libc::O_RDONLY {
        return Err(Errno(libc::EINVAL));
    }
    let ctx = caller::ctx();
    let set = SetAttr { size: Some(size), ..SetAttr::default() };
    description.with_file(process, |live, file| {
        description.note_write(live);
        live.client.setattr(&ctx, file.fid(), &set, Some(file)).map(|_| ())
    })
}

/// Has everything of a file on stable storage.
///
/// # Errors
/// As fsync(2).
pub fn sync(process: &Process, description: &Description, datasync: bool) -> Result<(), Errno> {
    let ctx = caller::ctx();
    if description.kind == FileType::Directory {
        // The client has a directory synced through a handle that can be read.
        let live = process.live(description.mount)?;
        let flags = OpenFlags::READ | OpenFlags::DIRECTORY;
        let file = live.client.open(&ctx, description.fid, flags)?;
        let synced = live.client.fsync(&ctx, &file, datasync);
        return Ok(synced.and(live.client.close(&ctx, &file, None))?);
    }
    description.with_file(process, |live, file| live.client.fsync(&ctx, file, datasync))
}

/// Has everything that this process has done on stable storage.
///
/// # Errors
/// As syncfs(2).
pub fn sync_all(process: &Process, mount: usize) -> Result<(), Errno> {
    Ok(process.live(mount)?.client.sync_all(&caller::ctx())?)
}

/// Reserves, zeroes or gives back space.
///
/// # Errors
/// As fallocate(2).
pub fn allocate(
    process: &Process,
    description: &Description,
    mode: i32,
    offset: i64,
    len: i64,
) -> Result<(), Errno> {
    let invalid = |_| Errno(libc::EINVAL);
    let (at, len) = (u64::try_from(offset).map_err(invalid)?, u64::try_from(len).map_err(invalid)?);
    if len == 0 {
        return Err(Errno(libc::EINVAL));
    }
    if at > MAX_OFFSET - len {
        return Err(Errno(libc::EFBIG));
    }
    let ctx = caller::ctx();
    description.with_file(process, |live, file| {
        description.note_write(live);
        live.client.allocate(&ctx, file, AllocateMode::from_linux(mode as u32)?, at, len)
    })
}

/// Copies between two open files of one file system.
///
/// # Errors
/// As copy_file_range(2).
pub fn copy(
    process: &Process,
    (from, from_at): (&Description, At),
    (to, to_at): (&Description, At),
    len: usize,
) -> Result<usize, Errno> {
    let place = |description: &Description, at: At| match at {
        At::Place(offset) => At::place(offset),
        At::Here => Ok(description.with_offset(|at| *at)),
    };
    let (source, target) = (place(from, from_at)?, place(to, to_at)?);
    let ctx = caller::ctx();
    let copied = from.with_file(process, |live, reading| {
        Ok(to.with_file(process, |_, writing| {
            to.note_write(live);
            live.client.copy_range(&ctx, (reading, source), (writing, target), len as u64)
        }))
    })??;
    for (description, at) in [(from, from_at), (to, to_at)] {
        if matches!(at, At::Here) {
            description.with_offset(|at| *at += copied);
        }
    }
    Ok(copied as usize)
}
