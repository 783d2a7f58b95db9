//! The operations, in the order of [`FileSystem`].

use super::Door;
use super::cache::{end_publishing, is_publishing};
use super::convert;
use super::handle::{bad_handle, open_flags};
use super::xattr::is_virtual;
use crate::kernel::*;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use weft_client::{AllocateMode, CreateArgs, Ctx, Lookup, Whence};
use weft_model::{Credentials, ErrorKind, FsError};

impl FileSystem for Door {
    fn init(&self, _: &Offer, terms: &mut Terms, device: &Arc<Device>) -> Result<()> {
        self.cache.attach(device);
        terms.features |= Features::POSIX_ACL | Features::DONT_MASK | Features::AUTO_INVAL_DATA;
        // What a link points to never changes.
        terms.features |= Features::CACHE_SYMLINKS;
        if self.config.entry_ttl.is_zero() && !self.client.caches() {
            // The kernel would ask again for everything it is told this way.
            let plus = Features::DO_READDIRPLUS | Features::READDIRPLUS_AUTO;
            terms.features = terms.features & !plus;
        }
        Ok(())
    }

    fn destroy(&self) {
        self.waiters.end();
    }

    fn replied(&self) {
        end_publishing();
        self.end();
    }

    fn awaits_reply(&self) -> bool {
        is_publishing()
    }

    fn lookup(&self, req: &Request<'_>, parent: u64, name: &OsStr) -> Result<Entry> {
        self.act(req, "lookup", parent, |ctx, dir| {
            match self.client.lookup_or_absent(ctx, dir, name.as_bytes())? {
                Lookup::Found(found) => Ok(self.entry(&found)),
                Lookup::Absent(grant) => self.absent(&grant),
            }
        })
    }

    fn getattr(&self, req: &Request<'_>, node: u64, _: Option<u64>) -> Result<Attributes> {
        self.act(req, "getattr", node, |ctx, fid| {
            Ok(self.attributes(&self.client.getattr(ctx, fid)?))
        })
    }

    fn statx(&self, req: &Request<'_>, node: u64, _: Option<u64>, _: u32, _: u32) -> Result<Statx> {
        self.act(req, "statx", node, |ctx, fid| {
            let found = self.client.getattr(ctx, fid)?;
            Ok(Statx {
                attr: convert::attr(&found),
                btime: Some(convert::btime(&found)),
                attributes: 0,
                attributes_mask: 0,
                ttl: self.ttl(&found.grant, self.config.attr_ttl),
            })
        })
    }

    fn setattr(&self, req: &Request<'_>, node: u64, set: &SetAttr) -> Result<Attributes> {
        self.act(req, "setattr", node, |ctx, fid| {
            let handle = set.fh.map(|fh| self.file(fh)).transpose()?;
            let file = handle.as_ref().map(|handle| &handle.file);
            let found = self.client.setattr(ctx, fid, &convert::set_attr(set), file)?;
            Ok(self.attributes(&found))
        })
    }

    fn readlink(&self, req: &Request<'_>, node: u64) -> Result<Vec<u8>> {
        self.act(req, "readlink", node, |ctx, fid| self.client.readlink(ctx, fid))
    }

    fn symlink(&self, req: &Request<'_>, parent: u64, name: &OsStr, to: &OsStr) -> Result<Entry> {
        self.act(req, "symlink", parent, |ctx, dir| {
            Ok(self.entry(&self.client.symlink(ctx, dir, name.as_bytes(), to.as_bytes())?))
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
        self.act(req, "mknod", parent, |ctx, dir| {
            Ok(self.entry(&self.client.mknod(ctx, dir, name.as_bytes(), mode, rdev, None)?))
        })
    }

    fn mkdir(&self, req: &Request<'_>, parent: u64, name: &OsStr, mode: u32) -> Result<Entry> {
        self.act(req, "mkdir", parent, |ctx, dir| {
            Ok(self.entry(&self.client.mkdir(ctx, dir, name.as_bytes(), mode)?))
        })
    }

    fn unlink(&self, req: &Request<'_>, parent: u64, name: &OsStr) -> Result<()> {
        self.act(req, "unlink", parent, |ctx, dir| self.client.unlink(ctx, dir, name.as_bytes()))
    }

    fn rmdir(&self, req: &Request<'_>, parent: u64, name: &OsStr) -> Result<()> {
        self.act(req, "rmdir", parent, |ctx, dir| self.client.rmdir(ctx, dir, name.as_bytes()))
    }

    fn rename(
        &self,
        req: &Request<'_>,
        parent: u64,
        name: &OsStr,
        new_parent: u64,
        new_name: &OsStr,
        flags: u32,
    ) -> Result<()> {
        self.act(req, "rename", parent, |ctx, dir| {
            let (name, new_name) = (name.as_bytes(), new_name.as_bytes());
            self.client.rename(ctx, dir, name, self.fid(new_parent), new_name, flags)
        })
    }

    fn link(&self, req: &Request<'_>, node: u64, parent: u64, name: &OsStr) -> Result<Entry> {
        self.act(req, "link", node, |ctx, fid| {
            Ok(self.entry(&self.client.link(ctx, fid, self.fid(parent), name.as_bytes())?))
        })
    }

    /// The client asks for the removal of set-id bits along with the truncation by itself.
    fn open(&self, req: &Request<'_>, node: u64, flags: u32, _: bool) -> Result<Opened> {
        self.act(req, "open", node, |ctx, fid| {
            Ok(self.keep(self.client.open_found(ctx, fid, open_flags(flags))?))
        })
    }

    fn create(
        &self,
        req: &Request<'_>,
        parent: u64,
        name: &OsStr,
        mode: u32,
        flags: u32,
    ) -> Result<(Entry, Opened)> {
        self.act(req, "create", parent, |ctx, dir| {
            let exclusive = flags & libc::O_EXCL as u32 != 0;
            let args = CreateArgs { mode, flags: open_flags(flags), exclusive, layout: None };
            let made = self.client.create(ctx, dir, name.as_bytes(), &args)?;
            Ok((self.entry(&made.attr), self.keep(made)))
        })
    }

    fn tmpfile(
        &self,
        req: &Request<'_>,
        parent: u64,
        mode: u32,
        flags: u32,
    ) -> Result<(Entry, Opened)> {
        self.act(req, "tmpfile", parent, |ctx, dir| {
            let made = self.client.tmpfile(ctx, dir, mode, open_flags(flags))?;
            Ok((self.entry(&made.attr), self.keep(made)))
        })
    }

    fn read(&self, req: &Request<'_>, node: u64, args: &ReadArgs, out: &mut [u8]) -> Result<usize> {
        self.act(req, "read", node, |ctx, _| {
            self.client.read(ctx, &self.file(args.fh)?.file, args.offset, out)
        })
    }

    fn write(&self, req: &Request<'_>, node: u64, args: &WriteArgs, data: &[u8]) -> Result<usize> {
        self.act(req, "write", node, |ctx, _| {
            let append = args.flags & libc::O_APPEND as u32 != 0 && !args.from_cache;
            let file = self.file(args.fh)?.for_write(&self.client, append)?;
            // The right to write came with the handle. All that the client makes of the caller is
            // whether set-id bits have to go, which the kernel knows better.
            let cred = if args.kill_suidgid { nobody() } else { Credentials::root() };
            let written =
                self.client.write(&Ctx { cred, ..ctx.clone() }, &file, args.offset, data)?;
            if !args.from_cache {
                self.cache.written(node, args.offset, written as u64);
            }
            Ok(written)
        })
    }

    fn flush(&self, req: &Request<'_>, node: u64, fh: u64, lock_owner: u64) -> Result<()> {
        self.act(req, "flush", node, |ctx, _| self.file(fh)?.flush(&self.client, ctx, lock_owner))
    }

    fn release(&self, req: &Request<'_>, node: u64, args: &ReleaseArgs) -> Result<()> {
        self.act(req, "close", node, |ctx, _| {
            let handle = self.files.remove(args.fh).ok_or_else(bad_handle)?;
            if handle.cached {
                self.cache.close(node);
            }
            handle.close(&self.client, ctx, args.flock_owner.map(|_| convert::flock_owner(args.fh)))
        })
    }

    fn fsync(&self, req: &Request<'_>, node: u64, fh: u64, datasync: bool) -> Result<()> {
        self.act(req, "fsync", node, |ctx, _| {
            self.client.fsync(ctx, &self.file(fh)?.file, datasync)
        })
    }

    fn opendir(&self, req: &Request<'_>, node: u64, _: u32) -> Result<Opened> {
        self.act(req, "opendir", node, |ctx, fid| {
            let dir = self.client.opendir(ctx, fid)?;
            Ok(self.keep_dir(dir))
        })
    }

    fn readdir(
        &self,
        req: &Request<'_>,
        node: u64,
        fh: u64,
        offset: u64,
        list: &mut Listing<'_>,
    ) -> Result<()> {
        self.act(req, "readdir", node, |ctx, _| {
            let dir = self.dir(fh)?;
            self.client.readdir(ctx, &dir, offset, false, &mut |entry| {
                let name = OsStr::from_bytes(&entry.name);
                list.push(entry.fid.0, entry.position, entry.kind.mode_bits(), name)
            })
        })
    }

    fn readdirplus(
        &self,
        req: &Request<'_>,
        node: u64,
        fh: u64,
        offset: u64,
        list: &mut ListingPlus<'_>,
    ) -> Result<()> {
        self.act(req, "readdir", node, |ctx, _| {
            let dir = self.dir(fh)?;
            self.client.readdir_some(ctx, &dir, offset, true, &mut |entry| {
                list.push(&self.listed(entry), entry.position, OsStr::from_bytes(&entry.name))
            })
        })
    }

    fn releasedir(&self, req: &Request<'_>, node: u64, args: &ReleaseArgs) -> Result<()> {
        self.act(req, "closedir", node, |ctx, _| {
            let dir = self.dirs.remove(args.fh).ok_or_else(bad_handle)?;
            self.client.closedir(ctx, &dir)
        })
    }

    fn fsyncdir(&self, req: &Request<'_>, node: u64, _: u64, datasync: bool) -> Result<()> {
        self.act(req, "fsyncdir", node, |_, fid| self.sync_dir(fid, datasync))
    }

    fn statfs(&self, req: &Request<'_>, node: u64) -> Result<Statfs> {
        self.act(req, "statfs", node, |ctx, _| Ok(convert::statfs(&self.client.statfs(ctx)?)))
    }

    fn setxattr(
        &self,
        req: &Request<'_>,
        node: u64,
        name: &OsStr,
        value: &[u8],
        flags: u32,
        kill_sgid: bool,
    ) -> Result<()> {
        self.act(req, "setxattr", node, |ctx, fid| match name.as_bytes() {
            name if is_virtual(name) => self.set_virtual_xattr(ctx, fid, name, value),
            name => self.client.setxattr(ctx, fid, name, value, flags, kill_sgid),
        })
    }

    fn getxattr(&self, req: &Request<'_>, node: u64, name: &OsStr) -> Result<Vec<u8>> {
        self.act(req, "getxattr", node, |ctx, fid| match name.as_bytes() {
            name if is_virtual(name) => self.virtual_xattr(ctx, fid, name),
            name => self.client.getxattr(ctx, fid, name),
        })
    }

    fn listxattr(&self, req: &Request<'_>, node: u64) -> Result<Vec<u8>> {
        self.act(req, "listxattr", node, |ctx, fid| {
            let names = self.client.listxattr(ctx, fid)?;
            Ok(names.into_iter().flat_map(|name| name.into_iter().chain([0])).collect())
        })
    }

    fn removexattr(&self, req: &Request<'_>, node: u64, name: &OsStr) -> Result<()> {
        self.act(req, "removexattr", node, |ctx, fid| {
            self.client.removexattr(ctx, fid, name.as_bytes())
        })
    }

    fn access(&self, req: &Request<'_>, node: u64, mask: u32) -> Result<()> {
        self.act(req, "access", node, |ctx, fid| self.client.access(ctx, fid, mask))
    }

    fn getlk(&self, req: &Request<'_>, node: u64, lock: &Lock) -> Result<Lock> {
        self.test_lock(req, node, lock)
    }

    fn setlk(&self, req: &Request<'_>, node: u64, lock: &Lock, wait: bool, reply: Deferred) {
        self.set_lock(req, node, lock, wait, reply);
    }

    fn fallocate(
        &self,
        req: &Request<'_>,
        node: u64,
        fh: u64,
        offset: u64,
        len: u64,
        mode: u32,
    ) -> Result<()> {
        self.act(req, "fallocate", node, |ctx, _| {
            let mode = AllocateMode::from_linux(mode)?;
            self.client.allocate(ctx, &self.file(fh)?.file, mode, offset, len)
        })
    }

    fn lseek(
        &self,
        req: &Request<'_>,
        node: u64,
        fh: u64,
        offset: u64,
        whence: u32,
    ) -> Result<u64> {
        self.act(req, "seek", node, |ctx, _| {
            let whence = match whence as i32 {
                libc::SEEK_DATA => Whence::Data,
                libc::SEEK_HOLE => Whence::Hole,
                _ => return Err(FsError::new(ErrorKind::Invalid, "seek")),
            };
            self.client.seek(ctx, &self.file(fh)?.file, offset, whence)
        })
    }

    fn copy_file_range(&self, req: &Request<'_>, node_in: u64, args: &CopyArgs) -> Result<u64> {
        self.act(req, "copy range", node_in, |ctx, _| {
            let (from, to) = (self.file(args.fh_in)?, self.file(args.fh_out)?);
            let (from, to) = ((&from.file, args.offset_in), (&to.file, args.offset_out));
            self.client.copy_range(ctx, from, to, args.len)
        })
    }

    fn syncfs(&self, req: &Request<'_>, node: u64) -> Result<()> {
        self.act(req, "syncfs", node, |ctx, _| self.client.sync_all(ctx))
    }
}

/// Somebody without privileges.
fn nobody() -> Credentials {
    Credentials { uid: 65534, gid: 65534, groups: Some(Vec::new()) }
}
