//! The null file system: a namespace in memory and files that are nothing but a length.
//!
//! It answers every request at once, so what a mount of it does per second is the ceiling of any
//! mount on the machine; it also stands in for a real file system in tests of [`crate::kernel`].
//! Reads give zeros, written data is dropped. It keeps modes, times, links, extended attributes
//! and locks, but leaves checking permissions to the kernel (`default_permissions`).

mod locks;
mod tree;

use std::ffi::OsStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use parking_lot::Mutex;

use self::locks::Locks;
use self::tree::{Node, Tree};
use crate::kernel::*;

/// Behaviour of a [`NullFs`].
#[derive(Clone, Copy, Debug)]
pub struct NullOptions {
    /// How long the kernel may cache names and attributes.
    pub ttl: Duration,
    /// How long the kernel may cache that a name does not exist.
    pub negative_ttl: Duration,
    /// Files bypass the page cache.
    pub direct_io: bool,
}

impl Default for NullOptions {
    fn default() -> NullOptions {
        let (ttl, negative_ttl) = (Duration::from_secs(1), Duration::ZERO);
        NullOptions { ttl, negative_ttl, direct_io: true }
    }
}

/// See the [module](self).
pub struct NullFs {
    options: NullOptions,
    tree: Mutex<Tree>,
    locks: Arc<Mutex<Locks>>,
    /// The next handle: open files are told apart only for the locks taken through them.
    handles: AtomicU64,
}

impl NullFs {
    /// An empty file system whose root belongs to root.
    pub fn new(options: NullOptions) -> NullFs {
        NullFs {
            options,
            tree: Mutex::new(Tree::new()),
            locks: Arc::default(),
            handles: AtomicU64::new(1),
        }
    }

    fn entry(&self, attr: Attr) -> Entry {
        Entry::new(attr, self.options.ttl)
    }

    fn attributes(&self, attr: Attr) -> Attributes {
        Attributes { attr, ttl: self.options.ttl }
    }

    fn opened(&self) -> Opened {
        let fh = self.handles.fetch_add(1, Relaxed);
        if self.options.direct_io {
            Opened::new(fh, OpenFlags::DIRECT_IO | OpenFlags::PARALLEL_DIRECT_WRITES)
        } else {
            Opened::new(fh, OpenFlags::KEEP_CACHE)
        }
    }

    /// Makes a node with a name.
    fn make(
        &self,
        req: &Request<'_>,
        parent: u64,
        name: &OsStr,
        mode: u32,
        change: impl FnOnce(&mut Node),
    ) -> Result<Entry> {
        let mut tree = self.tree.lock();
        let ino = tree.make(parent, name, mode, (req.uid, req.gid))?;
        let node = tree.node_mut(ino)?;
        change(node);
        node.lookups += 1;
        Ok(self.entry(node.attr))
    }
}

impl FileSystem for NullFs {
    fn awaits_reply(&self) -> bool {
        false
    }

    fn lookup(&self, _: &Request<'_>, parent: u64, name: &OsStr) -> Result<Entry> {
        let mut tree = self.tree.lock();
        match tree.find(parent, name)? {
            Some(ino) => {
                let node = tree.node_mut(ino)?;
                node.lookups += 1;
                Ok(self.entry(node.attr))
            }
            None if self.options.negative_ttl.is_zero() => Err(Errno::ENOENT),
            None => Ok(Entry::negative(self.options.negative_ttl)),
        }
    }

    fn forget(&self, node: u64, count: u64) {
        self.tree.lock().forget(node, count);
    }

    fn getattr(&self, _: &Request<'_>, node: u64, _: Option<u64>) -> Result<Attributes> {
        Ok(self.attributes(self.tree.lock().node(node)?.attr))
    }

    fn setattr(&self, _: &Request<'_>, node: u64, set: &SetAttr) -> Result<Attributes> {
        let mut tree = self.tree.lock();
        let attr = &mut tree.node_mut(node)?.attr;
        let now = Time::now();
        let time = |set: SetTime| match set {
            SetTime::Now => now,
            SetTime::At(time) => time,
        };
        attr.mode = set.mode.map_or(attr.mode, |mode| (attr.mode & libc::S_IFMT) | (mode & 0o7777));
        attr.uid = set.uid.unwrap_or(attr.uid);
        attr.gid = set.gid.unwrap_or(attr.gid);
        attr.atime = set.atime.map_or(attr.atime, time);
        if let Some(size) = set.size {
            tree::resize(attr, size);
        }
        attr.mtime = set.mtime.map_or(attr.mtime, time);
        attr.ctime = now;
        Ok(self.attributes(*attr))
    }

    fn readlink(&self, _: &Request<'_>, node: u64) -> Result<Vec<u8>> {
        self.tree.lock().node(node)?.target.clone().ok_or(Errno::EINVAL)
    }

    fn symlink(&self, req: &Request<'_>, parent: u64, name: &OsStr, to: &OsStr) -> Result<Entry> {
        self.make(req, parent, name, libc::S_IFLNK | 0o777, |node| {
            node.attr.size = to.len() as u64;
            node.target = Some(to.as_encoded_bytes().to_vec());
        })
    }

    fn mknod(
        &self,
        req: &Request<'_>,
        parent: u64,
        name: &OsStr,
        mode: u32,
        rdev: u32,
    ) -> Result<Entry> {
        self.make(req, parent, name, mode, |node| node.attr.rdev = rdev)
    }

    fn mkdir(&self, req: &Request<'_>, parent: u64, name: &OsStr, mode: u32) -> Result<Entry> {
        self.make(req, parent, name, libc::S_IFDIR | mode, |_| {})
    }

    fn unlink(&self, _: &Request<'_>, parent: u64, name: &OsStr) -> Result<()> {
        self.tree.lock().remove(parent, name, false)
    }

    fn rmdir(&self, _: &Request<'_>, parent: u64, name: &OsStr) -> Result<()> {
        self.tree.lock().remove(parent, name, true)
    }

    fn rename(
        &self,
        _: &Request<'_>,
        parent: u64,
        name: &OsStr,
        new_parent: u64,
        new_name: &OsStr,
        flags: u32,
    ) -> Result<()> {
        self.tree.lock().rename((parent, name), (new_parent, new_name), flags)
    }

    fn link(&self, _: &Request<'_>, node: u64, parent: u64, name: &OsStr) -> Result<Entry> {
        let mut tree = self.tree.lock();
        tree.link(node, parent, name)?;
        let node = tree.node_mut(node)?;
        node.lookups += 1;
        Ok(self.entry(node.attr))
    }

    fn open(&self, _: &Request<'_>, node: u64, flags: u32, _: bool) -> Result<Opened> {
        if flags & libc::O_TRUNC as u32 != 0 {
            tree::resize(&mut self.tree.lock().node_mut(node)?.attr, 0);
        }
        Ok(self.opened())
    }

    fn create(
        &self,
        req: &Request<'_>,
        parent: u64,
        name: &OsStr,
        mode: u32,
        _: u32,
    ) -> Result<(Entry, Opened)> {
        Ok((self.make(req, parent, name, mode, |_| {})?, self.opened()))
    }

    fn tmpfile(&self, req: &Request<'_>, _: u64, mode: u32, _: u32) -> Result<(Entry, Opened)> {
        let mut tree = self.tree.lock();
        let ino = tree.make_nameless(mode, (req.uid, req.gid));
        let node = tree.node_mut(ino)?;
        node.lookups += 1;
        Ok((self.entry(node.attr), self.opened()))
    }

    fn read(&self, _: &Request<'_>, node: u64, args: &ReadArgs, out: &mut [u8]) -> Result<usize> {
        let size = self.tree.lock().node(node)?.attr.size;
        let count = size.saturating_sub(args.offset).min(out.len() as u64) as usize;
        out[..count].fill(0);
        Ok(count)
    }

    fn write(&self, _: &Request<'_>, node: u64, args: &WriteArgs, data: &[u8]) -> Result<usize> {
        let end = args.offset.saturating_add(data.len() as u64);
        let mut tree = self.tree.lock();
        let attr = &mut tree.node_mut(node)?.attr;
        tree::resize(attr, attr.size.max(end));
        Ok(data.len())
    }

    fn flush(&self, _: &Request<'_>, node: u64, _: u64, owner: u64) -> Result<()> {
        self.locks.lock().drop_owner(node, owner, false);
        Ok(())
    }

    fn release(&self, _: &Request<'_>, node: u64, args: &ReleaseArgs) -> Result<()> {
        let mut locks = self.locks.lock();
        locks.drop_handle(node, args.fh);
        if let Some(owner) = args.flock_owner {
            locks.drop_owner(node, owner, true);
        }
        Ok(())
    }

    fn fsync(&self, _: &Request<'_>, _: u64, _: u64, _: bool) -> Result<()> {
        Ok(())
    }

    fn readdir(
        &self,
        _: &Request<'_>,
        node: u64,
        _: u64,
        offset: u64,
        list: &mut Listing<'_>,
    ) -> Result<()> {
        let tree = self.tree.lock();
        tree.list(node, offset)?.all(|(offset, ino, name)| {
            let mode = tree.node(ino).map_or(0, |node| node.attr.mode);
            list.push(ino, offset, mode, name)
        });
        Ok(())
    }

    fn readdirplus(
        &self,
        _: &Request<'_>,
        node: u64,
        _: u64,
        offset: u64,
        list: &mut ListingPlus<'_>,
    ) -> Result<()> {
        let mut tree = self.tree.lock();
        let mut looked_up = Vec::new();
        for (offset, ino, name) in tree.list(node, offset)? {
            let mut entry = self.entry(tree.node(ino)?.attr);
            let dots = name == "." || name == "..";
            entry.node = if dots { 0 } else { ino };
            if !list.push(&entry, offset, name) {
                break;
            }
            looked_up.extend((!dots).then_some(ino));
        }
        for ino in looked_up {
            tree.node_mut(ino)?.lookups += 1;
        }
        Ok(())
    }

    fn statfs(&self, _: &Request<'_>, _: u64) -> Result<Statfs> {
        let files = self.tree.lock().len() as u64;
        let free = u32::MAX.into();
        let (blocks, bfree, bavail, ffree) = (free, free, free, free);
        let (bsize, frsize, namelen) = (1 << 20, 4096, 255);
        Ok(Statfs { blocks, bfree, bavail, files, ffree, bsize, namelen, frsize })
    }

    fn setxattr(
        &self,
        _: &Request<'_>,
        node: u64,
        name: &OsStr,
        value: &[u8],
        flags: u32,
        _: bool,
    ) -> Result<()> {
        let mut tree = self.tree.lock();
        let xattrs = &mut tree.node_mut(node)?.xattrs;
        match (flags as i32, xattrs.contains_key(name)) {
            (libc::XATTR_CREATE, true) => return Err(Errno::EEXIST),
            (libc::XATTR_REPLACE, false) => return Err(Errno::ENODATA),
            _ => xattrs.insert(name.into(), value.to_vec()),
        };
        Ok(())
    }

    fn getxattr(&self, _: &Request<'_>, node: u64, name: &OsStr) -> Result<Vec<u8>> {
        self.tree.lock().node(node)?.xattrs.get(name).cloned().ok_or(Errno::ENODATA)
    }

    fn listxattr(&self, _: &Request<'_>, node: u64) -> Result<Vec<u8>> {
        let tree = self.tree.lock();
        let names = tree.node(node)?.xattrs.keys();
        Ok(names.flat_map(|name| name.as_encoded_bytes().iter().copied().chain([0])).collect())
    }

    fn removexattr(&self, _: &Request<'_>, node: u64, name: &OsStr) -> Result<()> {
        let mut tree = self.tree.lock();
        tree.node_mut(node)?.xattrs.remove(name).map(drop).ok_or(Errno::ENODATA)
    }

    fn getlk(&self, _: &Request<'_>, node: u64, lock: &Lock) -> Result<Lock> {
        let found = self.locks.lock().conflict(node, lock);
        Ok(found.unwrap_or(Lock { kind: LockKind::Unlock, ..*lock }))
    }

    fn setlk(&self, _: &Request<'_>, node: u64, lock: &Lock, wait: bool, reply: Deferred) {
        if wait {
            // Before the lock is waited for, so that no interruption falls in between.
            let locks = self.locks.clone();
            reply.on_interrupt(move || locks.lock().give_up_interrupted());
        }
        self.locks.lock().set(node, *lock, wait, reply);
    }

    fn fallocate(
        &self,
        _: &Request<'_>,
        node: u64,
        _: u64,
        offset: u64,
        len: u64,
        mode: u32,
    ) -> Result<()> {
        if mode & libc::FALLOC_FL_KEEP_SIZE as u32 == 0 {
            let mut tree = self.tree.lock();
            let attr = &mut tree.node_mut(node)?.attr;
            tree::resize(attr, attr.size.max(offset.saturating_add(len)));
        }
        Ok(())
    }

    fn copy_file_range(&self, _: &Request<'_>, node: u64, args: &CopyArgs) -> Result<u64> {
        let mut tree = self.tree.lock();
        let source = tree.node(node)?.attr.size;
        let len = args.len.min(source.saturating_sub(args.offset_in));
        let attr = &mut tree.node_mut(args.node_out)?.attr;
        tree::resize(attr, attr.size.max(args.offset_out.saturating_add(len)));
        Ok(len)
    }

    fn access(&self, _: &Request<'_>, _: u64, _: u32) -> Result<()> {
        Ok(())
    }
}
