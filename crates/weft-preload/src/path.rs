//! From a path to a place, on this machine or in a Weft file system.
//!
//! Paths are walked name by name as the kernel does it: `..` leads to the parent of where a symbolic link led,
//! a link may lead across a prefix in either direction. What has to be asked of the kernel or the servers on
//! the way is behind [`World`].

use std::collections::VecDeque;
use weft_model::{Attr, Fid, FileType};

/// Symbolic links followed before a path counts as a circle.
const MAX_LINKS: usize = 40;
/// Longest path, bytes.
const MAX_PATH: usize = 4095;

/// An error number of the C library.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Errno(pub i32);

impl From<weft_model::FsError> for Errno {
    fn from(error: weft_model::FsError) -> Errno {
        Errno(error.errno())
    }
}

/// What a walk has to ask.
pub trait World {
    /// Which file system is at this absolute path, if there is one.
    fn mounted(&self, path: &[u8]) -> Option<usize>;

    /// The path of a file system.
    fn prefix(&self, mount: usize) -> &[u8];

    /// The target of a symbolic link of this machine; nothing if there is none of the name.
    fn real_link(&self, path: &[u8]) -> Option<Vec<u8>>;

    /// The root directory of a file system.
    ///
    /// # Errors
    /// Those of the servers.
    fn root(&self, mount: usize) -> Result<Fid, Errno>;

    /// What a name stands for; `.` and `..` are names.
    ///
    /// # Errors
    /// Those of the servers, and if the directory is none.
    fn look(&self, mount: usize, dir: Fid, name: &[u8]) -> Result<Option<Node>, Errno>;

    /// Attributes as of now; nothing if it is gone.
    ///
    /// # Errors
    /// Those of the servers.
    fn attr(&self, mount: usize, node: &Node) -> Result<Option<Attr>, Errno>;

    /// The target of a symbolic link.
    ///
    /// # Errors
    /// Those of the servers.
    fn link(&self, mount: usize, fid: Fid) -> Result<Vec<u8>, Errno>;
}

/// What a name stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Node {
    /// The inode.
    pub fid: Fid,
    /// What it is, which never changes.
    pub kind: FileType,
    /// Its attributes, if they came along.
    pub attr: Option<Attr>,
}

/// A directory that a walk is in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Here {
    /// One of this machine: its absolute path.
    Real(Vec<u8>),
    /// One of a Weft file system.
    Weft(Dir),
}

/// A directory of a Weft file system.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dir {
    /// Which file system.
    pub mount: usize,
    /// Its inode.
    pub fid: Fid,
    /// The path that led to it, from the root of the file system, without links; empty for the root.
    pub path: Vec<u8>,
}

/// What of a path is to be found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wanted {
    /// What it names, through links.
    Target,
    /// What it names, be it a link.
    Itself,
    /// The directory and the name in it, whatever is there.
    Name,
}

/// Where a path leads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// To this machine. The path is as good as the given one, and the kernel's to judge.
    Real(Vec<u8>),
    /// Into a Weft file system.
    Weft(Spot),
}

/// A name in a directory of a Weft file system.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spot {
    /// The directory.
    pub dir: Dir,
    /// The name; empty if the directory itself is meant.
    pub name: Vec<u8>,
    /// What is there; with [`Wanted::Name`] nobody has looked.
    pub found: Option<Attr>,
    /// The path ends with a slash, so that it must be a directory.
    pub slash: bool,
}

impl Spot {
    /// The path from the root of the file system.
    pub fn path(&self) -> Vec<u8> {
        below(&self.dir.path, &self.name)
    }
}

/// A name in a directory, as a path from the root; the root is empty.
pub fn below(dir: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = dir.to_vec();
    if !name.is_empty() {
        path.push(b'/');
        path.extend_from_slice(name);
    }
    path
}

fn parent_of(path: &[u8]) -> &[u8] {
    path.iter().rposition(|&byte| byte == b'/').map_or(&[], |at| &path[..at])
}

struct Walk<'a, W> {
    world: &'a W,
    here: Here,
    /// Names that follow, the next one first.
    names: VecDeque<Vec<u8>>,
    links: usize,
    wanted: Wanted,
    slash: bool,
}

/// Walks a path from a directory.
///
/// # Errors
/// Those of [`World`], `ENOENT`, `ENOTDIR`, `ELOOP`, `ENAMETOOLONG`.
pub fn resolve(
    world: &impl World,
    start: Here,
    path: &[u8],
    wanted: Wanted,
) -> Result<Place, Errno> {
    if path.is_empty() {
        return Err(Errno(libc::ENOENT));
    }
    if path.len() > MAX_PATH {
        return Err(Errno(libc::ENAMETOOLONG));
    }
    let slash = path.ends_with(b"/");
    let mut walk = Walk { world, here: start, names: VecDeque::new(), links: 0, wanted, slash };
    walk.go_by(path);
    loop {
        let Some(name) = walk.names.pop_front() else { return walk.end() };
        if let Some(place) = walk.step(&name)? {
            return Ok(place);
        }
    }
}

impl<W: World> Walk<'_, W> {
    /// A path, or the target of a link, lies before us.
    fn go_by(&mut self, path: &[u8]) {
        if path.starts_with(b"/") {
            self.here = Here::Real(Vec::new());
        }
        for name in path.rsplit(|&byte| byte == b'/').filter(|n| !n.is_empty() && *n != b".") {
            self.names.push_front(name.to_vec());
        }
        // A dot after a name says what a slash says.
        self.slash |= self.names.is_empty() || path.ends_with(b"/.");
    }

    /// The path has led to a directory itself.
    fn end(self) -> Result<Place, Errno> {
        match self.here {
            Here::Real(path) => Ok(Place::Real(if path.is_empty() { b"/".to_vec() } else { path })),
            Here::Weft(dir) => {
                let found = match self.wanted {
                    Wanted::Name => None,
                    _ => {
                        let node = Node { fid: dir.fid, kind: FileType::Directory, attr: None };
                        self.world.attr(dir.mount, &node)?
                    }
                };
                Ok(Place::Weft(Spot { dir, name: Vec::new(), found, slash: true }))
            }
        }
    }

    fn step(&mut self, name: &[u8]) -> Result<Option<Place>, Errno> {
        let last = self.names.is_empty();
        match self.here.clone() {
            Here::Real(path) => self.step_outside(path, name, last),
            Here::Weft(dir) => self.step_inside(dir, name, last),
        }
    }

    fn step_outside(
        &mut self,
        path: Vec<u8>,
        name: &[u8],
        last: bool,
    ) -> Result<Option<Place>, Errno> {
        if name == b".." {
            self.here = Here::Real(parent_of(&path).to_vec());
            return Ok(None);
        }
        let next = below(&path, name);
        if let Some(mount) = self.world.mounted(&next) {
            let fid = self.world.root(mount)?;
            self.here = Here::Weft(Dir { mount, fid, path: Vec::new() });
            return Ok(None);
        }
        let follows = !last || self.wanted == Wanted::Target || self.slash_follows();
        if follows && let Some(target) = self.world.real_link(&next) {
            self.follow(&target)?;
            return Ok(None);
        }
        if last {
            let mut real = next;
            if self.slash {
                real.push(b'/');
            }
            return Ok(Some(Place::Real(real)));
        }
        self.here = Here::Real(next);
        Ok(None)
    }

    fn step_inside(&mut self, dir: Dir, name: &[u8], last: bool) -> Result<Option<Place>, Errno> {
        let world = self.world;
        if name == b".." {
            if dir.fid == world.root(dir.mount)? {
                self.here = Here::Real(parent_of(world.prefix(dir.mount)).to_vec());
                return Ok(None);
            }
            let parent = world.look(dir.mount, dir.fid, name)?.ok_or(Errno(libc::ENOENT))?;
            let path = parent_of(&dir.path).to_vec();
            self.here = Here::Weft(Dir { fid: parent.fid, path, ..dir });
            return Ok(None);
        }
        if last && self.wanted == Wanted::Name {
            let (name, slash) = (name.to_vec(), self.slash);
            return Ok(Some(Place::Weft(Spot { dir, name, found: None, slash })));
        }
        let found = world.look(dir.mount, dir.fid, name)?;
        let follows = !last || self.wanted == Wanted::Target || self.slash_follows();
        match found {
            Some(node) if node.kind == FileType::Symlink && follows => {
                let target = world.link(dir.mount, node.fid)?;
                self.follow(&target)?;
                Ok(None)
            }
            Some(node) if (!last || self.slash) && node.kind != FileType::Directory => {
                Err(Errno(libc::ENOTDIR))
            }
            None if !last => Err(Errno(libc::ENOENT)),
            Some(node) if !last => {
                let path = below(&dir.path, name);
                self.here = Here::Weft(Dir { fid: node.fid, path, ..dir });
                Ok(None)
            }
            found => {
                let found = self.attr_of(&dir, name, found)?;
                let (name, slash) = (name.to_vec(), self.slash);
                Ok(Some(Place::Weft(Spot { dir, name, found, slash })))
            }
        }
    }

    /// Attributes of what a name stands for. If that is gone, the name stands for another one by now, or for none.
    fn attr_of(&self, dir: &Dir, name: &[u8], node: Option<Node>) -> Result<Option<Attr>, Errno> {
        let Some(node) = node else { return Ok(None) };
        if let Some(attr) = self.world.attr(dir.mount, &node)? {
            return Ok(Some(attr));
        }
        match self.world.look(dir.mount, dir.fid, name)? {
            Some(other) => self.world.attr(dir.mount, &other),
            None => Ok(None),
        }
    }

    /// A slash at the end has the last link followed, except where only the name counts.
    fn slash_follows(&self) -> bool {
        self.slash && self.wanted != Wanted::Name
    }

    fn follow(&mut self, target: &[u8]) -> Result<(), Errno> {
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(Errno(libc::ELOOP));
        }
        if target.is_empty() {
            return Err(Errno(libc::ENOENT));
        }
        self.go_by(target);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
