//! Where paths lead, asked of the kernel and the servers; and whether there is anything to ask at all.

use crate::path::{Errno, Here, Node, Place, Spot, Wanted, World, resolve};
use crate::process::Process;
use crate::{fds, real};
use std::ffi::{CStr, CString};
use std::os::fd::RawFd;
use weft_model::{Attr, ErrorKind, Fid};

/// Longest path that the kernel tells, bytes.
const MAX_PATH: usize = 4096;

/// What is to be done with a path.
pub enum Route {
    /// The kernel gets it as it is.
    Through,
    /// The kernel gets this one.
    Real(CString),
    /// It is ours.
    Weft(Spot),
}

impl World for Process {
    fn mounted(&self, path: &[u8]) -> Option<usize> {
        self.mounts.iter().position(|mount| mount.entry.prefix == path)
    }

    fn prefix(&self, mount: usize) -> &[u8] {
        &self.mounts[mount].entry.prefix
    }

    fn real_link(&self, path: &[u8]) -> Option<Vec<u8>> {
        // Links there lead where no path does.
        if path.starts_with(b"/proc/") {
            return None;
        }
        real_link(&CString::new(path).ok()?)
    }

    fn root(&self, mount: usize) -> Result<Fid, Errno> {
        Ok(self.live(mount)?.client.root())
    }

    fn look(&self, mount: usize, dir: Fid, name: &[u8]) -> Result<Option<Node>, Errno> {
        Ok(self.live(mount)?.cache.look(dir, name)?)
    }

    fn attr(&self, mount: usize, node: &Node) -> Result<Option<Attr>, Errno> {
        if node.attr.is_some() {
            return Ok(node.attr);
        }
        match self.live(mount)?.cache.attr(node.fid) {
            Ok(found) => Ok(Some(found.attr)),
            Err(error) if error.kind == ErrorKind::Stale => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn link(&self, mount: usize, fid: Fid) -> Result<Vec<u8>, Errno> {
        Ok(self.live(mount)?.cache.link(fid)?)
    }
}

fn real_link(path: &CStr) -> Option<Vec<u8>> {
    let mut target = [0u8; MAX_PATH];
    // SAFETY: the path ends with a zero, the buffer is as long as said.
    let len = unsafe {
        let at = target.as_mut_ptr().cast();
        real::readlinkat(libc::AT_FDCWD, path.as_ptr(), at, target.len())
    };
    usize::try_from(len).ok().map(|len| target[..len].to_vec())
}

/// The path of the real current directory.
fn real_cwd() -> Result<Vec<u8>, Errno> {
    let mut path = [0u8; MAX_PATH];
    // SAFETY: the buffer is as long as said, and what comes back ends with a zero.
    let path = unsafe {
        if real::getcwd(path.as_mut_ptr().cast(), path.len()).is_null() {
            return Err(Errno(crate::guard::errno()));
        }
        CStr::from_ptr(path.as_ptr().cast()).to_bytes().to_vec()
    };
    Ok(if path == b"/" { Vec::new() } else { path })
}

impl Process {
    /// The directory that a path starts from.
    fn start(&self, dir: RawFd, path: &[u8]) -> Result<Here, Errno> {
        if path.starts_with(b"/") {
            return Ok(Here::Real(Vec::new()));
        }
        if dir == libc::AT_FDCWD {
            return Ok(match self.cwd() {
                Some(dir) => Here::Weft(dir),
                None => Here::Real(real_cwd()?),
            });
        }
        match self.get(dir) {
            Some(description) => Ok(Here::Weft(description.dir()?)),
            None => {
                let name = CString::new(format!("/proc/self/fd/{dir}"))
                    .map_err(|_| Errno(libc::EINVAL))?;
                let path = real_link(&name).ok_or(Errno(libc::EBADF))?;
                Ok(Here::Real(if path == b"/" { Vec::new() } else { path }))
            }
        }
    }

    /// Walks a path.
    ///
    /// # Errors
    /// Those of the walk.
    pub fn find(&self, dir: RawFd, path: &CStr, wanted: Wanted) -> Result<Place, Errno> {
        let path = path.to_bytes();
        resolve(self, self.start(dir, path)?, path, wanted)
    }

    /// Whether a path starts inside.
    fn starts_inside(&self, dir: RawFd, path: &[u8]) -> bool {
        match path {
            [b'/', ..] => false,
            _ if dir == libc::AT_FDCWD => self.is_cwd_inside(),
            _ => fds::is_weft(dir),
        }
    }

    /// Whether the kernel may have a path without a look at it. Only links of this machine could lead one inside
    /// that does not name a prefix; then the kernel does not find it, and [`Self::second_thought`] does.
    fn is_outside(&self, dir: RawFd, path: &[u8]) -> bool {
        !self.starts_inside(dir, path)
            && self.mounts.iter().all(|mount| {
                let prefix = &mount.entry.prefix;
                let last = prefix.rsplit(|&byte| byte == b'/').next().unwrap_or(prefix);
                !mount.is_hiding && !mentions(path, last)
            })
    }

    /// What to do with a path.
    ///
    /// # Errors
    /// Those of the walk.
    pub fn route(&self, dir: RawFd, path: &CStr, wanted: Wanted) -> Result<Route, Errno> {
        let bytes = path.to_bytes();
        if bytes.is_empty() || self.is_outside(dir, bytes) {
            return Ok(Route::Through);
        }
        match self.find(dir, path, wanted)? {
            Place::Weft(spot) => Ok(Route::Weft(spot)),
            Place::Real(path) => {
                Ok(Route::Real(CString::new(path).map_err(|_| Errno(libc::EINVAL))?))
            }
        }
    }

    /// Whether the kernel may have a path, even one that is to be made or moved. A link of this machine may still
    /// lead inside; the kernel does not find it then.
    pub fn leaves_alone(&self, dir: RawFd, path: &CStr) -> bool {
        path.is_empty() || self.is_outside(dir, path.to_bytes())
    }

    /// After the kernel has not found a path: where links may have led it.
    pub fn second_thought(&self, dir: RawFd, path: &CStr, wanted: Wanted) -> Option<Spot> {
        match self.find(dir, path, wanted).ok()? {
            Place::Weft(spot) => Some(spot),
            Place::Real(_) => None,
        }
    }
}

/// Whether one of the names of a path is this one.
fn mentions(path: &[u8], name: &[u8]) -> bool {
    path.split(|&byte| byte == b'/').any(|other| other == name)
}
