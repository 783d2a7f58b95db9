//! Opening and creating.

use crate::cache::Key;
use crate::caller;
use crate::description::{Description, Opened};
use crate::live::{Handle, Live};
use crate::path::{Errno, Spot, Wanted};
use crate::process::Process;
use std::os::fd::RawFd;
use std::sync::Arc;
use weft_client::{CreateArgs, Created, OpenFile, OpenFlags};
use weft_model::{Attr, ErrorKind, Fid, FileType, SetAttr};

/// What of the path has to be known before it is opened. A file that may have to be made is not looked for first.
pub fn wanted(flags: i32) -> Wanted {
    match flags {
        _ if flags & libc::O_CREAT != 0 => Wanted::Name,
        _ if flags & libc::O_NOFOLLOW != 0 => Wanted::Itself,
        _ => Wanted::Target,
    }
}

/// What came of it.
pub enum Outcome {
    /// A descriptor.
    Open(RawFd),
    /// There is a symbolic link, which has to be followed first.
    IsLink,
}

/// Opens a place.
///
/// # Errors
/// As open(2).
pub fn open(process: &Process, spot: &Spot, flags: i32, mode: u32) -> Result<Outcome, Errno> {
    let live = process.live(spot.dir.mount)?;
    if flags & libc::O_TMPFILE == libc::O_TMPFILE {
        return tmpfile(process, &live, spot, flags, mode).map(Outcome::Open);
    }
    if flags & libc::O_CREAT != 0 && spot.found.is_none() {
        if spot.name.is_empty() || spot.slash {
            return Err(Errno(libc::EISDIR));
        }
        return create(process, &live, spot, flags, mode);
    }
    let attr = spot.found.ok_or(Errno(libc::ENOENT))?;
    if flags & libc::O_CREAT != 0 && attr.kind == FileType::Directory {
        return Err(Errno(libc::EISDIR));
    }
    let handle = open_found(&live, &attr, flags)?;
    keep(process, live, spot, (attr.fid, attr.kind), flags, handle).map(Outcome::Open)
}

fn open_found(live: &Live, attr: &Attr, flags: i32) -> Result<Handle, Errno> {
    let (ctx, place) = (caller::ctx(), flags & libc::O_PATH != 0);
    match attr.kind {
        kind if flags & libc::O_DIRECTORY != 0 && kind != FileType::Directory => {
            Err(Errno(libc::ENOTDIR))
        }
        _ if place => Ok(Handle::Place),
        FileType::Directory if flags & (libc::O_ACCMODE | libc::O_TRUNC) != 0 => {
            Err(Errno(libc::EISDIR))
        }
        FileType::Directory => Ok(Handle::Dir(live.client.opendir(&ctx, attr.fid)?)),
        FileType::Symlink => Err(Errno(libc::ELOOP)),
        FileType::Regular => {
            let _change = cuts(flags).then(|| live.cache.change(vec![Key::Attr(attr.fid)]));
            let flags = OpenFlags::from_linux(flags as u32);
            Ok(Handle::File(live.client.open(&ctx, attr.fid, flags)?))
        }
        // Pipes, sockets and devices are the kernel's, which does not know of these.
        _ => Err(Errno(libc::ENXIO)),
    }
}

fn cuts(flags: i32) -> bool {
    flags & libc::O_TRUNC != 0
}

fn create(
    process: &Process,
    live: &Arc<Live>,
    spot: &Spot,
    flags: i32,
    mode: u32,
) -> Result<Outcome, Errno> {
    let (dir, name) = (spot.dir.fid, spot.name.as_slice());
    let exclusive = flags & libc::O_EXCL != 0;
    let mut keys = vec![Key::Attr(dir), Key::Name(dir, name.into())];
    // What is there already is cut afterwards, when it is known what it is. The right to comes with a handle
    // for writing only.
    let cuts_later = cuts(flags) && flags & libc::O_ACCMODE != libc::O_RDONLY;
    let now = if cuts_later { flags & !libc::O_TRUNC } else { flags };
    if cuts(now) {
        keys.push(Key::Attrs);
    }
    let args = CreateArgs {
        mode: mode & 0o7777,
        flags: OpenFlags::from_linux(now as u32),
        exclusive,
        layout: None,
    };
    let mut change = live.cache.change(keys);
    let made = live.client.create(&caller::ctx_with_umask(), dir, name, &args);
    let Created { attr, file, created } = match made {
        Err(error) if error.kind == ErrorKind::Loop && flags & libc::O_NOFOLLOW == 0 => {
            return Ok(Outcome::IsLink);
        }
        made => made?,
    };
    change.made(dir, name, &attr);
    drop(change);
    let handle = Handle::File(file);
    if let Handle::File(file) = &handle
        && cuts_later
        && !created
        && let Err(error) = cut(live, file)
    {
        live.close(Arc::new(handle), None, None);
        return Err(error);
    }
    let what = (attr.fid, attr.kind);
    keep(process, live.clone(), spot, what, flags, handle).map(Outcome::Open)
}

fn cut(live: &Live, file: &OpenFile) -> Result<(), Errno> {
    let _change = live.cache.change(vec![Key::Attr(file.fid())]);
    let size = SetAttr { size: Some(0), ..SetAttr::default() };
    live.client.setattr(&caller::ctx(), file.fid(), &size, Some(file))?;
    Ok(())
}

fn tmpfile(
    process: &Process,
    live: &Arc<Live>,
    spot: &Spot,
    flags: i32,
    mode: u32,
) -> Result<RawFd, Errno> {
    let dir = spot.found.ok_or(Errno(libc::ENOENT))?;
    let flags = flags & !libc::O_TMPFILE;
    let linux = OpenFlags::from_linux(flags as u32);
    let made = live.client.tmpfile(&caller::ctx_with_umask(), dir.fid, mode & 0o7777, linux)?;
    let what = (made.attr.fid, made.attr.kind);
    keep(process, live.clone(), spot, what, flags, Handle::File(made.file))
}

/// Gives what was opened a descriptor.
fn keep(
    process: &Process,
    live: Arc<Live>,
    spot: &Spot,
    (fid, kind): (Fid, FileType),
    flags: i32,
    handle: Handle,
) -> Result<RawFd, Errno> {
    let opened = Opened { mount: spot.dir.mount, fid, kind, path: spot.path(), flags };
    let handle = Arc::new(handle);
    let slot = process.slot();
    let kept = slot.and_then(|slot| {
        let bound = Some((live.clone(), handle.clone()));
        let description = Arc::new(Description::new(opened, slot, bound));
        process.install(description, 0, flags & libc::O_CLOEXEC != 0)
    });
    if kept.is_err() {
        live.close(handle, None, None);
    }
    kept
}
