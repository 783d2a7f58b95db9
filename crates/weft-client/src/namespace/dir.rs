//! Reading directories: a bounded buffer over the pages of the MDT, in the order of positions.
//!
//! A position is a place in an order that never changes, so it stays valid whatever comes and goes.
//! Entries of one position (names with the same hash) are continued from the buffer; a reader that
//! goes on in sequence misses none.

use super::entry::{Found, Known};
use crate::client::Client;
use crate::ctx::Ctx;
use crate::flags::OpenFlags;
use crate::grants::Asked;
use crate::metrics::Op;
use parking_lot::Mutex;
use std::collections::VecDeque;
use weft_model::{ErrorKind, Fid, FileType, FsError, Result};
use weft_rpc::pb::mds;

use crate::inode::OpenFile;

/// Bytes asked for at a time.
const PAGE: u32 = 64 << 10;
/// Position of `.`.
const DOT: u64 = 1;
/// Position of `..`.
const DOT_DOT: u64 = 2;

/// An entry of a directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DirEntry {
    /// Its name.
    pub name: Vec<u8>,
    /// The inode.
    pub fid: Fid,
    /// What it is.
    pub kind: FileType,
    /// Its place: what to pass to go on after it. 1 for `.`, 2 for `..`, then ascending, below 2^62.
    pub position: u64,
    /// Attributes, where they were wanted and are certain without asking the OSTs.
    pub attr: Option<Found>,
}

/// An open directory. Close it with [`Client::closedir`].
#[derive(Debug)]
pub struct DirHandle {
    file: OpenFile,
    buffer: Mutex<Buffer>,
}

/// What has been fetched and not yet handed out.
#[derive(Debug, Default)]
struct Buffer {
    entries: VecDeque<DirEntry>,
    /// Position after which `entries` go on.
    next_after: u64,
    /// Last position fetched from the MDT.
    fetched: u64,
    /// Nothing follows `entries`.
    end: bool,
    with_attr: bool,
    parent: Fid,
}

impl From<OpenFile> for DirHandle {
    fn from(file: OpenFile) -> DirHandle {
        DirHandle { file, buffer: Mutex::default() }
    }
}

impl DirHandle {
    /// Number of the handle, unique in this mount.
    pub const fn handle(&self) -> u64 {
        self.file.handle()
    }

    /// The directory.
    pub fn fid(&self) -> Fid {
        self.file.fid()
    }
}

impl Client {
    /// Opens a directory for reading.
    ///
    /// # Errors
    /// `NotDir`, `Access`, `Stale`, and those of the MDT.
    pub fn opendir(&self, ctx: &Ctx<'_>, fid: Fid) -> Result<DirHandle> {
        let file = self.open(ctx, fid, OpenFlags::READ | OpenFlags::DIRECTORY)?;
        Ok(file.into())
    }

    /// Closes a directory.
    ///
    /// # Errors
    /// As [`Client::close`].
    pub fn closedir(&self, ctx: &Ctx<'_>, dir: &DirHandle) -> Result<()> {
        self.close(ctx, &dir.file, None)
    }

    /// Hands the entries after `position` (0 to start) to `take`, in order, until there are no more or
    /// `take` returns false; an entry that was refused is the next one when reading goes on after the
    /// one before it. Starting over sees the directory anew. Entries that exist all the time are seen
    /// exactly once.
    ///
    /// # Errors
    /// `Stale`, and those of the MDT.
    pub fn readdir(
        &self,
        ctx: &Ctx<'_>,
        dir: &DirHandle,
        position: u64,
        with_attr: bool,
        take: &mut dyn FnMut(&DirEntry) -> bool,
    ) -> Result<()> {
        let (mut after, mut full) = (position, false);
        loop {
            let before = after;
            self.readdir_some(ctx, dir, before, with_attr, &mut |entry| {
                full = !take(entry);
                if !full {
                    after = entry.position;
                }
                !full
            })?;
            if full || after == before {
                return Ok(());
            }
        }
    }

    /// As [`Client::readdir`], but hands out what one request brings: none only at the end. `take` is
    /// called after the last wait.
    ///
    /// # Errors
    /// As [`Client::readdir`].
    pub fn readdir_some(
        &self,
        ctx: &Ctx<'_>,
        dir: &DirHandle,
        position: u64,
        with_attr: bool,
        take: &mut dyn FnMut(&DirEntry) -> bool,
    ) -> Result<()> {
        self.timed(Op::Readdir, || {
            let mut buffer = dir.buffer.lock();
            if position == 0 || buffer.next_after != position || buffer.with_attr != with_attr {
                *buffer = Buffer::after(position, with_attr);
            }
            while buffer.entries.is_empty() && !buffer.end {
                self.fetch(ctx, dir.fid(), &mut buffer)?;
            }
            while let Some(entry) = buffer.entries.front() {
                if !take(entry) {
                    break;
                }
                buffer.next_after = entry.position;
                buffer.entries.pop_front();
            }
            Ok(())
        })
    }

    /// Fetches one more page.
    fn fetch(&self, ctx: &Ctx<'_>, dir: Fid, buffer: &mut Buffer) -> Result<()> {
        let request = mds::Readdir {
            // Permission was checked when the directory was opened.
            cred: None,
            dir: dir.0,
            position: if buffer.fetched <= DOT_DOT { 0 } else { buffer.fetched },
            max_bytes: PAGE,
            with_attr: buffer.with_attr,
        };
        let asked = self.asking();
        let reply = self.ask(dir, request, &self.patience(ctx))?;
        buffer.parent = Fid(reply.parent);
        for (position, name, fid) in [(DOT, &b"."[..], dir), (DOT_DOT, b"..", buffer.parent)] {
            if buffer.fetched < position {
                let kind = FileType::Directory;
                let name = name.to_vec();
                buffer.entries.push_back(DirEntry { name, fid, kind, position, attr: None });
            }
        }
        buffer.fetched = buffer.fetched.max(DOT_DOT);
        buffer.end = reply.end;
        for entry in reply.entries {
            buffer.fetched = entry.position;
            let entry = self.decode(entry, dir, &asked)?;
            buffer.entries.push_back(entry);
        }
        Ok(())
    }

    fn decode(&self, entry: mds::Dirent, dir: Fid, asked: &Asked) -> Result<DirEntry> {
        let kind = FileType::from_mode(entry.kind << 12).ok_or_else(|| {
            FsError::new(ErrorKind::Protocol, "readdir").on(format_args!("kind={}", entry.kind))
        })?;
        let fid = Fid(entry.fid);
        let known = entry.entry.map(Known::try_from).transpose()?;
        let own = self.own_writes(fid);
        let outdated = kind == FileType::Regular && self.grants.has_reported_since(asked);
        let sure = |known: &Known| !outdated && !known.is_uncertain(own.as_ref());
        let attr = known.filter(sure).map(|known| {
            let mut attr = known.attr;
            if let Some(own) = &own {
                own.overlay(&mut attr, known.size_epoch);
            }
            self.found(&known, attr, asked, Some(dir))
        });
        Ok(DirEntry { name: entry.name, fid, kind, position: entry.position, attr })
    }
}

impl Buffer {
    fn after(position: u64, with_attr: bool) -> Buffer {
        Buffer { next_after: position, fetched: position, with_attr, ..Buffer::default() }
    }
}
