//! Extended attributes.

use crate::cache::Key;
use crate::caller;
use crate::path::Errno;
use crate::process::Process;
use weft_model::Fid;

/// Virtual attributes, which the mount makes and this library has not but one.
const VIRTUAL: &[u8] = b"weft.";

/// The value of an attribute.
///
/// # Errors
/// As getxattr(2).
pub fn get(process: &Process, mount: usize, fid: Fid, name: &[u8]) -> Result<Vec<u8>, Errno> {
    if name == b"weft.fid" {
        return Ok(fid.to_string().into_bytes());
    }
    if name.starts_with(VIRTUAL) {
        return Err(Errno(libc::ENODATA));
    }
    Ok(process.live(mount)?.client.getxattr(&caller::ctx(), fid, name)?)
}

/// Sets an attribute.
///
/// # Errors
/// As setxattr(2).
pub fn set(
    process: &Process,
    (mount, fid): (usize, Fid),
    name: &[u8],
    value: &[u8],
    flags: i32,
) -> Result<(), Errno> {
    if name.starts_with(VIRTUAL) {
        return Err(Errno(libc::EOPNOTSUPP));
    }
    let live = process.live(mount)?;
    let _change = live.cache.change(vec![Key::Attr(fid)]);
    Ok(live.client.setxattr(&caller::ctx(), fid, name, value, flags as u32, true)?)
}

/// The names, each with a zero at its end.
///
/// # Errors
/// As listxattr(2).
pub fn list(process: &Process, mount: usize, fid: Fid) -> Result<Vec<u8>, Errno> {
    let names = process.live(mount)?.client.listxattr(&caller::ctx(), fid)?;
    Ok(names.into_iter().flat_map(|name| name.into_iter().chain([0])).collect())
}

/// Removes an attribute.
///
/// # Errors
/// As removexattr(2).
pub fn remove(process: &Process, mount: usize, fid: Fid, name: &[u8]) -> Result<(), Errno> {
    let live = process.live(mount)?;
    let _change = live.cache.change(vec![Key::Attr(fid)]);
    Ok(live.client.removexattr(&caller::ctx(), fid, name)?)
}
