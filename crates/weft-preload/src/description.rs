//! Open files: what one or several descriptors stand for.

use crate::ahead::Ahead;
use crate::cache::{Change, Key};
use crate::caller;
use crate::live::{Handle, Live};
use crate::path::{Dir, Errno};
use crate::process::Process;
use crate::slab::Slot;
use parking_lot::{Mutex, RwLock};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering};
use weft_client::{Ctx, OpenFile, OpenFlags};
use weft_model::{Fid, FileType};

/// Flags of open(2) that `F_SETFL` may change.
const CHANGEABLE: i32 = libc::O_APPEND | libc::O_NONBLOCK | libc::O_NOATIME | libc::O_DIRECT;
/// Flags that say what to do at open only.
const AT_OPEN: i32 =
    libc::O_CREAT | libc::O_EXCL | libc::O_TRUNC | libc::O_CLOEXEC | libc::O_NOCTTY;
/// Owner of all fcntl(2) locks of this process.
pub const PROCESS: u64 = 1;

/// An open file.
pub struct Description {
    /// Which file system.
    pub mount: usize,
    /// The inode.
    pub fid: Fid,
    /// What it is.
    pub kind: FileType,
    /// The path that led to it, from the root of the file system.
    pub path: Vec<u8>,
    flags: AtomicI32,
    slot: Slot,
    /// Held while the offset is used.
    position: Mutex<()>,
    bound: RwLock<Option<(Arc<Live>, Arc<Handle>)>>,
    /// Descriptors that stand for it.
    numbers: AtomicUsize,
    /// From the first write on: attributes are asked for until it is closed.
    change: Mutex<Option<Change>>,
    wrote: AtomicBool,
    /// What was read ahead.
    pub ahead: Mutex<Ahead>,
    owner: u64,
}

/// What an open file consists of.
pub struct Opened {
    /// Which file system.
    pub mount: usize,
    /// The inode.
    pub fid: Fid,
    /// What it is.
    pub kind: FileType,
    /// The path that led to it.
    pub path: Vec<u8>,
    /// Flags of open(2).
    pub flags: i32,
}

impl Description {
    /// One that no descriptor stands for yet; opened again when needed if nothing is `bound`.
    pub fn new(opened: Opened, slot: Slot, bound: Option<(Arc<Live>, Arc<Handle>)>) -> Description {
        static OWNERS: AtomicU64 = AtomicU64::new(PROCESS + 1);
        let Opened { mount, fid, kind, path, flags } = opened;
        Description {
            mount,
            fid,
            kind,
            path,
            flags: AtomicI32::new(flags & !AT_OPEN),
            slot,
            position: Mutex::default(),
            bound: RwLock::new(bound),
            numbers: AtomicUsize::new(0),
            change: Mutex::default(),
            wrote: AtomicBool::new(false),
            ahead: Mutex::default(),
            owner: OWNERS.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// The same open file in a child, which has to open it for itself.
    pub fn in_child(&self) -> Description {
        let Description { mount, fid, kind, .. } = *self;
        let opened = Opened { mount, fid, kind, path: self.path.clone(), flags: self.flags() };
        Description::new(opened, self.slot.again(), None)
    }

    /// Flags of open(2), without those for opening only.
    pub fn flags(&self) -> i32 {
        self.flags.load(Ordering::Relaxed)
    }

    /// The slot of the offset.
    pub fn slot(&self) -> &Slot {
        &self.slot
    }

    /// Owner of locks made with flock(2).
    pub fn owner(&self) -> u64 {
        self.owner
    }

    /// As a directory that paths start from.
    ///
    /// # Errors
    /// `ENOTDIR`.
    pub fn dir(&self) -> Result<Dir, Errno> {
        if self.kind != FileType::Directory {
            return Err(Errno(libc::ENOTDIR));
        }
        Ok(Dir { mount: self.mount, fid: self.fid, path: self.path.clone() })
    }

    /// The client and what is open there; opened now if it is not, as after fork and exec.
    ///
    /// # Errors
    /// Those of the servers.
    pub fn bound(&self, process: &Process) -> Result<(Arc<Live>, Arc<Handle>), Errno> {
        if let Some(bound) = &*self.bound.read() {
            return Ok(bound.clone());
        }
        let mut bound = self.bound.write();
        if bound.is_none() {
            let live = process.live(self.mount)?;
            let handle = Arc::new(self.open_again(&live)?);
            *bound = Some((live, handle));
        }
        bound.clone().ok_or(Errno(libc::EIO))
    }

    /// The right to came with the first handle.
    fn open_again(&self, live: &Live) -> Result<Handle, Errno> {
        let (ctx, flags) = (Ctx::root(), self.flags());
        Ok(match self.kind {
            _ if flags & libc::O_PATH != 0 => Handle::Place,
            FileType::Directory => Handle::Dir(live.client.opendir(&ctx, self.fid)?),
            _ => {
                let flags = OpenFlags::from_linux(flags as u32);
                Handle::File(live.client.open(&ctx, self.fid, flags)?)
            }
        })
    }

    /// Does something with the open file; `EBADF` if it is a place, `EISDIR` if a directory.
    ///
    /// # Errors
    /// Those, and what `act` fails with.
    pub fn with_file<T>(
        &self,
        process: &Process,
        act: impl FnOnce(&Live, &OpenFile) -> weft_model::Result<T>,
    ) -> Result<T, Errno> {
        let (live, handle) = self.bound(process)?;
        match &*handle {
            Handle::File(file) => Ok(act(&live, file)?),
            Handle::Dir(_) => Err(Errno(libc::EISDIR)),
            Handle::Place => Err(Errno(libc::EBADF)),
        }
    }

    /// Uses the offset, alone.
    pub fn with_offset<T>(&self, act: impl FnOnce(&mut u64) -> T) -> T {
        let _alone = self.position.lock();
        self.slot.with(act)
    }

    /// From now on attributes of the file are what the servers and the client say together.
    pub fn note_write(&self, live: &Live) {
        if !self.wrote.swap(true, Ordering::Relaxed) {
            *self.change.lock() = Some(live.cache.change(vec![Key::Attr(self.fid)]));
        }
    }

    /// `F_SETFL`. Whether to append is part of what is open at the servers.
    ///
    /// # Errors
    /// Those of opening.
    pub fn set_flags(&self, process: &Process, flags: i32) -> Result<(), Errno> {
        let before = self.flags();
        let now = before & !CHANGEABLE | flags & CHANGEABLE;
        let appends_otherwise = (before ^ now) & libc::O_APPEND != 0;
        self.flags.store(now, Ordering::Relaxed);
        if !appends_otherwise || self.kind != FileType::Regular {
            return Ok(());
        }
        let (live, old) = self.bound(process)?;
        let new = Arc::new(self.open_again(&live)?);
        *self.bound.write() = Some((live.clone(), new));
        live.close(old, None, None);
        Ok(())
    }

    /// One more descriptor stands for it.
    pub fn add_number(&self) {
        self.numbers.fetch_add(1, Ordering::Relaxed);
    }

    /// One descriptor less. The last one closes; nobody waits for that. What could not be written so far is told.
    ///
    /// # Errors
    /// Those of earlier writes.
    pub fn drop_number(&self) -> Result<(), Errno> {
        let last = self.numbers.fetch_sub(1, Ordering::AcqRel) == 1;
        let bound = match last {
            true => self.bound.write().take(),
            false => self.bound.read().clone(),
        };
        let Some((live, handle)) = bound else { return Ok(()) };
        let told = match &*handle {
            Handle::File(file) => live.client.flush(&caller::ctx(), file, PROCESS),
            _ => Ok(()),
        };
        if last {
            live.close(handle, Some(self.owner), self.change.lock().take());
        }
        Ok(told?)
    }

    /// The client leaves; what is open is opened again when needed.
    pub fn unbind(&self) {
        *self.bound.write() = None;
        *self.change.lock() = None;
        self.wrote.store(false, Ordering::Relaxed);
    }
}
