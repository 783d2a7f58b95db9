//! The current directory.

use crate::caller;
use crate::path::{Dir, Errno, Place, Wanted, below};
use crate::process::Process;
use crate::real;
use std::ffi::CString;
use weft_model::{Attr, FileType};

/// Where the kernel believes the process to be while it is inside: nothing can be made there, and nothing with
/// a name that is no number be found.
const NOWHERE: &std::ffi::CStr = c"/proc/self/task";

/// Goes to a directory.
///
/// # Errors
/// As chdir(2).
pub fn enter(process: &Process, dir: Dir, attr: &Attr) -> Result<(), Errno> {
    if attr.kind != FileType::Directory {
        return Err(Errno(libc::ENOTDIR));
    }
    const SEARCH: u32 = 1;
    process.live(dir.mount)?.client.access(&caller::ctx(), dir.fid, SEARCH)?;
    // SAFETY: the path ends with a zero.
    if unsafe { real::chdir(NOWHERE.as_ptr()) } != 0 {
        return Err(Errno(crate::guard::errno()));
    }
    process.set_cwd(Some(dir));
    Ok(())
}

/// Its path, as long as it can be reached by it.
///
/// # Errors
/// `ENOENT` if it is gone.
pub fn path(process: &Process, dir: &Dir) -> Result<Vec<u8>, Errno> {
    let prefix = &process.mounts[dir.mount].entry.prefix;
    let known = [prefix.as_slice(), &dir.path].concat();
    if leads_to(process, &known, dir) {
        return Ok(known);
    }
    // It was moved.
    let live = process.live(dir.mount)?;
    let gone = Errno(libc::ENOENT);
    let path = live.client.fid_to_path(&caller::ctx(), dir.fid).map_err(|_| gone)?;
    let subtree = &process.mounts[dir.mount].entry.device.subtree;
    let names = |path: &[u8]| -> Vec<Vec<u8>> {
        let names = path.split(|&byte| byte == b'/').filter(|name| !name.is_empty());
        names.map(<[u8]>::to_vec).collect()
    };
    let (all, top) = (names(&path), names(subtree.as_bytes()));
    let rest = all.strip_prefix(top.as_slice()).ok_or(gone)?;
    let path = rest.iter().fold(prefix.clone(), |path, name| below(&path, name));
    if leads_to(process, &path, dir) { Ok(path) } else { Err(gone) }
}

fn leads_to(process: &Process, path: &[u8], dir: &Dir) -> bool {
    let Ok(path) = CString::new(path) else { return false };
    let place = process.find(libc::AT_FDCWD, &path, Wanted::Target);
    matches!(place, Ok(Place::Weft(spot)) if spot.found.is_some_and(|a| a.fid == dir.fid))
}
