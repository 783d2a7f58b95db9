//! The namespace of the null file system.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::ops::Bound;

use crate::kernel::abi::ROOT_ID;
use crate::kernel::{Attr, Errno, Result, Time};

/// Offsets of `.` and `..` in a listing; names follow.
const DOT: u64 = 1;
const DOT_DOT: u64 = 2;

/// The names in a directory. Each has a number that never changes nor comes again, so that a
/// listing goes on at the right place whatever happens in between.
struct Directory {
    parent: u64,
    numbers: HashMap<OsString, u64>,
    names: BTreeMap<u64, (OsString, u64)>,
    next: u64,
}

impl Directory {
    fn new(parent: u64) -> Directory {
        let (numbers, names) = Default::default();
        Directory { parent, numbers, names, next: DOT_DOT + 1 }
    }

    fn find(&self, name: &OsStr) -> Option<u64> {
        self.numbers.get(name).map(|number| self.names[number].1)
    }

    fn insert(&mut self, name: &OsStr, ino: u64) {
        self.numbers.insert(name.into(), self.next);
        self.names.insert(self.next, (name.into(), ino));
        self.next += 1;
    }

    fn remove(&mut self, name: &OsStr) {
        if let Some(number) = self.numbers.remove(name) {
            self.names.remove(&number);
        }
    }
}

/// A file, directory or whatever else.
pub(super) struct Node {
    pub attr: Attr,
    /// Target of a symbolic link.
    pub target: Option<Vec<u8>>,
    pub xattrs: BTreeMap<OsString, Vec<u8>>,
    /// References the kernel holds.
    pub lookups: u64,
    directory: Option<Directory>,
}

/// Sets the length of a file.
pub(super) fn resize(attr: &mut Attr, size: u64) {
    let now = Time::now();
    (attr.size, attr.blocks, attr.mtime, attr.ctime) = (size, size.div_ceil(512), now, now);
}

fn is_dir(mode: u32) -> bool {
    mode & libc::S_IFMT == libc::S_IFDIR
}

/// All nodes. A node goes when it has neither names nor references of the kernel.
pub(super) struct Tree {
    nodes: HashMap<u64, Node>,
    next: u64,
}

impl Tree {
    pub(super) fn new() -> Tree {
        let mut tree = Tree { nodes: HashMap::new(), next: ROOT_ID };
        let root = tree.make_nameless(libc::S_IFDIR | 0o755, (0, 0));
        let node = tree.nodes.get_mut(&root).expect("just made");
        node.attr.nlink = 2;
        node.directory = Some(Directory::new(root));
        tree
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn node(&self, ino: u64) -> Result<&Node> {
        self.nodes.get(&ino).ok_or(Errno::ESTALE)
    }

    pub(super) fn node_mut(&mut self, ino: u64) -> Result<&mut Node> {
        self.nodes.get_mut(&ino).ok_or(Errno::ESTALE)
    }

    fn directory(&self, ino: u64) -> Result<&Directory> {
        self.node(ino)?.directory.as_ref().ok_or(Errno::ENOTDIR)
    }

    fn directory_mut(&mut self, ino: u64) -> Result<&mut Directory> {
        self.node_mut(ino)?.directory.as_mut().ok_or(Errno::ENOTDIR)
    }

    pub(super) fn find(&self, parent: u64, name: &OsStr) -> Result<Option<u64>> {
        let directory = self.directory(parent)?;
        Ok(match name.as_encoded_bytes() {
            b"." => Some(parent),
            b".." => Some(directory.parent),
            _ => directory.find(name),
        })
    }

    fn expect(&self, parent: u64, name: &OsStr) -> Result<u64> {
        self.find(parent, name)?.ok_or(Errno::ENOENT)
    }

    /// Makes a node without a name.
    pub(super) fn make_nameless(&mut self, mode: u32, (uid, gid): (u32, u32)) -> u64 {
        let ino = self.next;
        self.next += 1;
        let now = Time::now();
        let (atime, mtime, ctime) = (now, now, now);
        let attr = Attr { ino, mode, uid, gid, atime, mtime, ctime, ..Attr::default() };
        let (target, xattrs, lookups) = Default::default();
        self.nodes.insert(ino, Node { attr, target, xattrs, lookups, directory: None });
        ino
    }

    /// Makes a node with a name.
    pub(super) fn make(
        &mut self,
        parent: u64,
        name: &OsStr,
        mode: u32,
        owner: (u32, u32),
    ) -> Result<u64> {
        if self.find(parent, name)?.is_some() {
            return Err(Errno::EEXIST);
        }
        let ino = self.make_nameless(mode, owner);
        let node = self.node_mut(ino)?;
        if is_dir(mode) {
            node.attr.nlink = 1; // and one more for the name
            node.directory = Some(Directory::new(parent));
        }
        self.attach(parent, name, ino)?;
        Ok(ino)
    }

    pub(super) fn link(&mut self, ino: u64, parent: u64, name: &OsStr) -> Result<()> {
        if self.node(ino)?.directory.is_some() {
            return Err(Errno::EPERM);
        }
        if self.find(parent, name)?.is_some() {
            return Err(Errno::EEXIST);
        }
        self.attach(parent, name, ino)
    }

    /// Gives a node a name that is free.
    fn attach(&mut self, parent: u64, name: &OsStr, ino: u64) -> Result<()> {
        self.directory_mut(parent)?.insert(name, ino);
        let node = self.node_mut(ino)?;
        node.attr.nlink += 1;
        node.attr.ctime = Time::now();
        if let Some(directory) = &mut node.directory {
            directory.parent = parent;
        }
        let moved_directory = node.directory.is_some();
        self.touch(parent, i32::from(moved_directory))
    }

    /// Takes a name away; the node stays.
    fn detach(&mut self, parent: u64, name: &OsStr, ino: u64) -> Result<()> {
        self.directory_mut(parent)?.remove(name);
        let node = self.node_mut(ino)?;
        node.attr.nlink -= 1;
        node.attr.ctime = Time::now();
        let was_directory = node.directory.is_some();
        self.touch(parent, -i32::from(was_directory))
    }

    /// Marks a directory as changed, with so many more subdirectories.
    fn touch(&mut self, ino: u64, subdirectories: i32) -> Result<()> {
        let attr = &mut self.node_mut(ino)?.attr;
        attr.nlink = attr.nlink.saturating_add_signed(subdirectories);
        attr.mtime = Time::now();
        attr.ctime = attr.mtime;
        Ok(())
    }

    pub(super) fn remove(&mut self, parent: u64, name: &OsStr, directory: bool) -> Result<()> {
        let ino = self.expect(parent, name)?;
        match (&self.node(ino)?.directory, directory) {
            (None, true) => return Err(Errno::ENOTDIR),
            (Some(_), false) => return Err(Errno::EISDIR),
            (Some(found), true) if !found.names.is_empty() => return Err(Errno::ENOTEMPTY),
            _ => {}
        }
        self.detach(parent, name, ino)?;
        if directory {
            self.node_mut(ino)?.attr.nlink = 0;
        }
        self.reap(ino);
        Ok(())
    }

    pub(super) fn rename(
        &mut self,
        from: (u64, &OsStr),
        to: (u64, &OsStr),
        flags: u32,
    ) -> Result<()> {
        let ino = self.expect(from.0, from.1)?;
        let target = self.find(to.0, to.1)?;
        match (flags, target) {
            (0, Some(target)) if target == ino => return Ok(()),
            (0, Some(target)) => self.remove(to.0, to.1, self.node(target)?.directory.is_some())?,
            (0 | libc::RENAME_NOREPLACE, None) => {}
            (libc::RENAME_NOREPLACE, Some(_)) => return Err(Errno::EEXIST),
            (libc::RENAME_EXCHANGE, Some(target)) => {
                self.detach(to.0, to.1, target)?;
                self.detach(from.0, from.1, ino)?;
                self.attach(from.0, from.1, target)?;
                return self.attach(to.0, to.1, ino);
            }
            (libc::RENAME_EXCHANGE, None) => return Err(Errno::ENOENT),
            _ => return Err(Errno::EINVAL),
        }
        self.detach(from.0, from.1, ino)?;
        self.attach(to.0, to.1, ino)
    }

    pub(super) fn forget(&mut self, ino: u64, count: u64) {
        if let Some(node) = self.nodes.get_mut(&ino) {
            node.lookups = node.lookups.saturating_sub(count);
            self.reap(ino);
        }
    }

    fn reap(&mut self, ino: u64) {
        let unused = |node: &Node| node.attr.nlink == 0 && node.lookups == 0;
        if self.nodes.get(&ino).is_some_and(unused) {
            self.nodes.remove(&ino);
        }
    }

    /// Lists a directory after the given offset: offset, inode number and name.
    pub(super) fn list(
        &self,
        ino: u64,
        after: u64,
    ) -> Result<impl Iterator<Item = (u64, u64, &OsStr)>> {
        let directory = self.directory(ino)?;
        let dots = [(DOT, ino, OsStr::new(".")), (DOT_DOT, directory.parent, OsStr::new(".."))];
        let names = directory.names.range((Bound::Excluded(after), Bound::Unbounded));
        let names = names.map(|(&number, (name, ino))| (number, *ino, name.as_os_str()));
        Ok(dots.into_iter().filter(move |dot| dot.0 > after).chain(names))
    }
}
