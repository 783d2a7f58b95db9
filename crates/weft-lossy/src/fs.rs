//! A disk as the kernel asks for it.

use std::ffi::OsStr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use weft_fuse::kernel::{
    Attr, Attributes, Entry, Errno, FileSystem, IoctlArgs, IoctlReply, Listing, Opened, ReadArgs,
    Request, Result, SetAttr, Statfs, WriteArgs,
};

use crate::content::PAGE;
use crate::disk::{Body, Change, Disk, Inode};
use crate::shim::SYNC_ALL;

/// How long the kernel may keep names and attributes: nobody else changes them.
const TTL: Duration = Duration::from_secs(60);
/// Free space that is shown, in pages.
const FREE_PAGES: u64 = 1 << 22;

/// The disk, until the power is cut.
pub struct LossyFs(pub Arc<Mutex<Disk>>);

impl LossyFs {
    fn disk(&self) -> Result<MutexGuard<'_, Disk>> {
        let disk = self.0.lock();
        if disk.ended.is_some() { Err(Errno::EIO) } else { Ok(disk) }
    }

    fn make(&self, parent: u64, name: &OsStr, mode: u32) -> Result<Entry> {
        let mut disk = self.disk()?;
        if disk.names(parent)?.contains_key(name) {
            return Err(Errno::EEXIST);
        }
        let ino = disk.make_inode(mode);
        disk.change(Change::Names(vec![(parent, name.into(), Some(ino))]));
        entry(&disk, ino)
    }

    fn remove(&self, parent: u64, name: &OsStr, want_dir: bool) -> Result<()> {
        let mut disk = self.disk()?;
        let ino = disk.find(parent, name)?;
        match (&disk.inode(ino)?.now, want_dir) {
            (Body::Dir(names), true) if !names.is_empty() => return Err(Errno::ENOTEMPTY),
            (Body::Dir(_), false) => return Err(Errno::EISDIR),
            (Body::File(_), true) => return Err(Errno::ENOTDIR),
            _ => disk.change(Change::Names(vec![(parent, name.into(), None)])),
        }
        Ok(())
    }
}

fn attr(ino: u64, inode: &Inode) -> Attr {
    let (size, blocks) = match &inode.now {
        Body::File(content) => (content.size, content.pages.len() as u64 * (PAGE / 512)),
        Body::Dir(_) => (PAGE, 8),
    };
    let time = inode.changed.into();
    let nlink = if matches!(inode.now, Body::Dir(_)) { 2 } else { 1 };
    let (atime, mtime, ctime) = (time, time, time);
    Attr { ino, size, blocks, atime, mtime, ctime, mode: inode.mode, nlink, ..Attr::default() }
}

fn entry(disk: &Disk, ino: u64) -> Result<Entry> {
    Ok(Entry::new(attr(ino, disk.inode(ino)?), TTL))
}

impl FileSystem for LossyFs {
    fn lookup(&self, _: &Request<'_>, parent: u64, name: &OsStr) -> Result<Entry> {
        let disk = self.disk()?;
        entry(&disk, disk.find(parent, name)?)
    }

    fn getattr(&self, _: &Request<'_>, node: u64, _: Option<u64>) -> Result<Attributes> {
        Ok(Attributes { attr: attr(node, self.disk()?.inode(node)?), ttl: TTL })
    }

    fn setattr(&self, _: &Request<'_>, node: u64, set: &SetAttr) -> Result<Attributes> {
        let mut disk = self.disk()?;
        if let Some(size) = set.size {
            if size < disk.content(node)?.size {
                disk.change(Change::Cut(node, size));
            } else {
                disk.change_content(node, |content| content.resize(size))?;
            }
        }
        Ok(Attributes { attr: attr(node, disk.inode(node)?), ttl: TTL })
    }

    fn mkdir(&self, _: &Request<'_>, parent: u64, name: &OsStr, mode: u32) -> Result<Entry> {
        self.make(parent, name, libc::S_IFDIR | mode)
    }

    fn create(
        &self,
        _: &Request<'_>,
        parent: u64,
        name: &OsStr,
        mode: u32,
        _: u32,
    ) -> Result<(Entry, Opened)> {
        Ok((self.make(parent, name, libc::S_IFREG | mode)?, Opened::default()))
    }

    fn unlink(&self, _: &Request<'_>, parent: u64, name: &OsStr) -> Result<()> {
        self.remove(parent, name, false)
    }

    fn rmdir(&self, _: &Request<'_>, parent: u64, name: &OsStr) -> Result<()> {
        self.remove(parent, name, true)
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
        let mut disk = self.disk()?;
        let ino = disk.find(parent, name)?;
        if flags != 0 {
            return Err(Errno::EINVAL);
        }
        let (from, to) = ((parent, name.into(), None), (new_parent, new_name.into(), Some(ino)));
        disk.change(Change::Names(vec![from, to]));
        Ok(())
    }

    fn link(&self, _: &Request<'_>, node: u64, parent: u64, name: &OsStr) -> Result<Entry> {
        let mut disk = self.disk()?;
        if disk.names(parent)?.contains_key(name) {
            return Err(Errno::EEXIST);
        }
        disk.change(Change::Names(vec![(parent, name.into(), Some(node))]));
        entry(&disk, node)
    }

    fn read(&self, _: &Request<'_>, node: u64, args: &ReadArgs, out: &mut [u8]) -> Result<usize> {
        Ok(self.disk()?.content(node)?.read(args.offset, out))
    }

    fn write(&self, _: &Request<'_>, node: u64, args: &WriteArgs, data: &[u8]) -> Result<usize> {
        self.disk()?.change_content(node, |content| content.write(args.offset, data))?;
        Ok(data.len())
    }

    fn fsync(&self, _: &Request<'_>, node: u64, _: u64, datasync: bool) -> Result<()> {
        self.disk()?.sync(node, datasync)
    }

    fn fsyncdir(&self, _: &Request<'_>, node: u64, _: u64, _: bool) -> Result<()> {
        self.disk()?.sync(node, false)
    }

    fn ioctl(
        &self,
        _: &Request<'_>,
        _: u64,
        args: &IoctlArgs,
        _: &[u8],
        _: &mut [u8],
    ) -> Result<IoctlReply> {
        if args.cmd != SYNC_ALL {
            return Err(Errno::ENOTTY);
        }
        self.disk()?.sync_all();
        Ok(IoctlReply::default())
    }

    fn readdir(
        &self,
        _: &Request<'_>,
        node: u64,
        _: u64,
        offset: u64,
        list: &mut Listing<'_>,
    ) -> Result<()> {
        let disk = self.disk()?;
        let dots = [(OsStr::new("."), node), (OsStr::new(".."), node)];
        let names = disk.names(node)?.iter().map(|(name, &ino)| (name.as_os_str(), ino));
        let rest = dots.into_iter().chain(names).zip(1..).skip(offset as usize);
        for ((name, ino), number) in rest {
            if !list.push(ino, number, disk.inode(ino)?.mode, name) {
                break;
            }
        }
        Ok(())
    }

    fn statfs(&self, _: &Request<'_>, _: u64) -> Result<Statfs> {
        let (blocks, bfree, bavail) = (FREE_PAGES, FREE_PAGES, FREE_PAGES);
        let (files, ffree, page) = (1 << 20, 1 << 20, PAGE as u32);
        Ok(Statfs { blocks, bfree, bavail, files, ffree, bsize: page, namelen: 255, frsize: page })
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
        const KEEP: i32 = libc::FALLOC_FL_KEEP_SIZE;
        const PUNCH: i32 = libc::FALLOC_FL_PUNCH_HOLE | KEEP;
        let (mut disk, end) = (self.disk()?, offset + len);
        match mode as i32 {
            PUNCH => disk.change(Change::Punch(node, offset, end)),
            0 => disk.change_content(node, |content| {
                content.allocate(offset, end);
                content.size = content.size.max(end);
            })?,
            // Space is given, too, by what is not seen.
            KEEP => {}
            _ => return Err(Errno::EOPNOTSUPP),
        }
        Ok(())
    }

    fn lseek(&self, _: &Request<'_>, node: u64, _: u64, offset: u64, whence: u32) -> Result<u64> {
        let found = self.disk()?.content(node)?.seek(offset, whence as i32 == libc::SEEK_DATA);
        found.ok_or(Errno::ENXIO)
    }
}
