//! Making, removing and moving names.

use crate::cache::Key;
use crate::caller;
use crate::live::Live;
use crate::path::{Errno, Spot};
use crate::process::Process;
use std::sync::Arc;
use weft_client::Found;
use weft_model::FileType;

/// Makes a name: what it takes is the same for all kinds.
fn make(
    process: &Process,
    spot: &Spot,
    mut keys: Vec<Key>,
    act: impl FnOnce(&Live) -> weft_model::Result<Found>,
) -> Result<(), Errno> {
    if spot.name.is_empty() {
        return Err(Errno(libc::EEXIST));
    }
    let live = process.live(spot.dir.mount)?;
    let dir = spot.dir.fid;
    keys.extend([Key::Attr(dir), Key::Name(dir, spot.name.as_slice().into())]);
    let mut change = live.cache.change(keys);
    let found = act(&live)?;
    change.made(dir, &spot.name, &found);
    Ok(())
}

/// Makes a directory.
///
/// # Errors
/// As mkdir(2).
pub fn mkdir(process: &Process, spot: &Spot, mode: u32) -> Result<(), Errno> {
    make(process, spot, Vec::new(), |live| {
        let ctx = caller::ctx_with_umask();
        live.client.mkdir(&ctx, spot.dir.fid, &spot.name, mode & 0o7777)
    })
}

/// Makes a pipe, socket, device or regular file.
///
/// # Errors
/// As mknod(2).
pub fn mknod(process: &Process, spot: &Spot, mode: u32, device: u64) -> Result<(), Errno> {
    let mode = if mode & libc::S_IFMT == 0 { mode | libc::S_IFREG } else { mode };
    if spot.slash {
        return Err(Errno(libc::ENOENT));
    }
    make(process, spot, Vec::new(), |live| {
        let ctx = caller::ctx_with_umask();
        live.client.mknod(&ctx, spot.dir.fid, &spot.name, mode, device as u32, None)
    })
}

/// Makes a symbolic link.
///
/// # Errors
/// As symlink(2).
pub fn symlink(process: &Process, spot: &Spot, target: &[u8]) -> Result<(), Errno> {
    if spot.slash || target.is_empty() {
        return Err(Errno(libc::ENOENT));
    }
    make(process, spot, Vec::new(), |live| {
        live.client.symlink(&caller::ctx(), spot.dir.fid, &spot.name, target)
    })
}

/// Gives what `from` names one more name.
///
/// # Errors
/// As link(2).
pub fn link(process: &Process, from: &Spot, to: &Spot) -> Result<(), Errno> {
    let attr = from.found.ok_or(Errno(libc::ENOENT))?;
    if from.dir.mount != to.dir.mount {
        return Err(Errno(libc::EXDEV));
    }
    if attr.kind == FileType::Directory {
        return Err(Errno(libc::EPERM));
    }
    make(process, to, vec![Key::Attr(attr.fid)], |live| {
        live.client.link(&caller::ctx(), attr.fid, to.dir.fid, &to.name)
    })
}

/// Removes a name; with `dir` that of an empty directory.
///
/// # Errors
/// As unlink(2) and rmdir(2).
pub fn remove(process: &Process, spot: &Spot, dir: bool) -> Result<(), Errno> {
    if spot.name.is_empty() {
        return Err(Errno(if dir { libc::EBUSY } else { libc::EISDIR }));
    }
    if spot.slash && !dir {
        return Err(Errno(libc::ENOTDIR));
    }
    let live: Arc<Live> = process.live(spot.dir.mount)?;
    let (parent, name) = (spot.dir.fid, spot.name.as_slice());
    let itself = live.cache.key_of(parent, name);
    let keys = vec![itself, Key::Attr(parent), Key::Name(parent, name.into())];
    let _change = live.cache.change(keys);
    let ctx = caller::ctx();
    match dir {
        true => live.client.rmdir(&ctx, parent, name)?,
        false => live.client.unlink(&ctx, parent, name)?,
    }
    Ok(())
}

/// Moves a name.
///
/// # Errors
/// As renameat2(2).
pub fn rename(process: &Process, from: &Spot, to: &Spot, flags: u32) -> Result<(), Errno> {
    if from.dir.mount != to.dir.mount {
        return Err(Errno(libc::EXDEV));
    }
    if from.name.is_empty() || to.name.is_empty() {
        return Err(Errno(libc::EBUSY));
    }
    let (ctx, live) = (caller::ctx(), process.live(from.dir.mount)?);
    if from.slash || to.slash {
        let found = live.cache.look(from.dir.fid, &from.name)?;
        if found.is_some_and(|node| node.kind != FileType::Directory) {
            return Err(Errno(libc::ENOTDIR));
        }
    }
    let _change = live.cache.change(vec![Key::All]);
    let (source, target) = (from.dir.fid, to.dir.fid);
    Ok(live.client.rename(&ctx, source, &from.name, target, &to.name, flags)?)
}

/// The target of a symbolic link.
///
/// # Errors
/// As readlink(2).
pub fn read_link(process: &Process, spot: &Spot) -> Result<Vec<u8>, Errno> {
    let attr = spot.found.ok_or(Errno(libc::ENOENT))?;
    if attr.kind != FileType::Symlink {
        return Err(Errno(libc::EINVAL));
    }
    Ok(process.live(spot.dir.mount)?.cache.link(attr.fid)?)
}
