//! A disk: what programs see, what is stable, and the journal in between.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::time::{Instant, SystemTime};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use weft_fuse::kernel::{Errno, Result};

use crate::content::{Content, PAGE};

/// Number of the root directory.
pub const ROOT: u64 = 1;
/// One write of so many has a page of its file written back.
const WRITE_BACK_ONE_IN: u32 = 16;

/// How much the disk may take in a power cut; see the table at the top of the crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// As ext4 with `data=ordered`.
    Ordered,
    /// All that POSIX allows.
    Posix,
}

/// The names in a directory.
pub type Names = BTreeMap<OsString, u64>;

/// A file or a directory, in one of its two states.
#[derive(Clone)]
pub enum Body {
    File(Content),
    Dir(Names),
}

#[derive(Clone)]
pub struct Inode {
    pub mode: u32,
    pub now: Body,
    pub stable: Body,
    pub changed: SystemTime,
    /// When the contents last became different from what is stable.
    pub dirty_since: Option<Instant>,
    /// The size or the extents differ from what is stable, so that `fdatasync` commits the journal.
    pub reshaped: bool,
}

/// A change that goes through a journal.
#[derive(Clone)]
pub enum Change {
    /// Names get other inodes, or none, at once.
    Names(Vec<(u64, OsString, Option<u64>)>),
    /// A file is cut.
    Cut(u64, u64),
    /// A range becomes a hole.
    Punch(u64, u64, u64),
}

impl Change {
    /// Whether it belongs to this file or directory.
    pub fn is_of(&self, ino: u64) -> bool {
        match self {
            Change::Names(names) => names.iter().any(|(dir, ..)| *dir == ino),
            Change::Cut(file, _) | Change::Punch(file, ..) => *file == ino,
        }
    }
}

/// A disk. Copying it copies no data.
#[derive(Clone)]
pub struct Disk {
    pub(crate) mode: Mode,
    pub(crate) inodes: BTreeMap<u64, Inode>,
    pub(crate) journal: Vec<Change>,
    pub(crate) next: u64,
    pub(crate) rng: SmallRng,
    /// When the power was cut.
    pub(crate) ended: Option<Instant>,
}

impl Disk {
    /// An empty disk. `seed` chooses what is written back while the power is on.
    pub fn new(mode: Mode, seed: u64) -> Disk {
        let (inodes, journal) = Default::default();
        let rng = SmallRng::seed_from_u64(seed);
        let mut disk = Disk { mode, inodes, journal, next: ROOT, rng, ended: None };
        disk.make_inode(libc::S_IFDIR | 0o755);
        disk
    }

    pub(crate) fn make_inode(&mut self, mode: u32) -> u64 {
        let body = match mode & libc::S_IFMT {
            libc::S_IFDIR => Body::Dir(Names::new()),
            _ => Body::File(Content::default()),
        };
        let (now, stable, changed) = (body.clone(), body, SystemTime::now());
        let inode = Inode { mode, now, stable, changed, dirty_since: None, reshaped: true };
        self.inodes.insert(self.next, inode);
        self.next += 1;
        self.next - 1
    }

    pub(crate) fn inode(&self, ino: u64) -> Result<&Inode> {
        self.inodes.get(&ino).ok_or(Errno::ESTALE)
    }

    pub(crate) fn names(&self, dir: u64) -> Result<&Names> {
        match &self.inode(dir)?.now {
            Body::Dir(names) => Ok(names),
            Body::File(_) => Err(Errno::ENOTDIR),
        }
    }

    pub(crate) fn find(&self, dir: u64, name: &OsStr) -> Result<u64> {
        self.names(dir)?.get(name).copied().ok_or(Errno::ENOENT)
    }

    pub(crate) fn content(&self, ino: u64) -> Result<&Content> {
        match &self.inode(ino)?.now {
            Body::File(content) => Ok(content),
            Body::Dir(_) => Err(Errno::EISDIR),
        }
    }

    /// Carries out a change that goes through the journal.
    pub(crate) fn change(&mut self, change: Change) {
        apply(&mut self.inodes, &change, |inode| &mut inode.now);
        for (&ino, inode) in self.inodes.iter_mut().filter(|(ino, _)| change.is_of(**ino)) {
            inode.touch(
                matches!(&change, Change::Cut(file, _) | Change::Punch(file, ..) if *file == ino),
            );
        }
        self.journal.push(change);
    }

    /// Changes the contents of a file; `reshape` tells whether size or extents may change.
    pub(crate) fn change_content(
        &mut self,
        ino: u64,
        change: impl FnOnce(&mut Content),
    ) -> Result<()> {
        let write_back = self.rng.random_ratio(1, WRITE_BACK_ONE_IN);
        let inode = self.inodes.get_mut(&ino).ok_or(Errno::ESTALE)?;
        let Body::File(content) = &mut inode.now else { return Err(Errno::EISDIR) };
        let before = (content.size, content.pages.len());
        change(content);
        let reshaped = before != (content.size, content.pages.len());
        inode.touch(reshaped);
        if write_back {
            self.write_back(ino);
        }
        Ok(())
    }

    /// Makes a page stable that nobody has asked for, as a kernel does that needs memory.
    fn write_back(&mut self, ino: u64) {
        let Some(inode) = self.inodes.get_mut(&ino) else { return };
        let too_young = !inode.is_old(Instant::now());
        let (Body::File(now), Body::File(stable)) = (&inode.now, &mut inode.stable) else { return };
        let pages = now.size.min(stable.size) / PAGE;
        if pages == 0 || too_young {
            return;
        }
        let page = self.rng.random_range(0..pages);
        if let Some(bytes) = now.pages.get(&page) {
            stable.pages.insert(page, bytes.clone());
        }
    }

    /// Makes a file, or the names of a directory, stable.
    pub(crate) fn sync(&mut self, ino: u64, data_only: bool) -> Result<()> {
        let reshaped = self.inode(ino)?.reshaped;
        match self.mode {
            Mode::Ordered if data_only && !reshaped => {}
            Mode::Ordered => self.commit(|_| true),
            Mode::Posix => self.commit(|change| change.is_of(ino)),
        }
        if let Some(inode) = self.inodes.get_mut(&ino)
            && matches!(inode.now, Body::File(_))
        {
            inode.settle();
        }
        Ok(())
    }

    /// Makes everything stable.
    pub(crate) fn sync_all(&mut self) {
        self.journal.clear();
        self.inodes.values_mut().for_each(Inode::settle);
    }

    /// Makes some of the journal stable, in its order.
    fn commit(&mut self, belongs: impl Fn(&Change) -> bool) {
        for change in self.journal.extract_if(.., |change| belongs(change)) {
            apply(&mut self.inodes, &change, |inode| &mut inode.stable);
        }
    }
}

impl Inode {
    fn touch(&mut self, reshaped: bool) {
        self.changed = SystemTime::now();
        self.dirty_since.get_or_insert_with(Instant::now);
        self.reshaped |= reshaped;
    }

    fn settle(&mut self) {
        self.stable = self.now.clone();
        (self.dirty_since, self.reshaped) = (None, false);
    }

    /// Whether the kernel may have written back some of it by itself until `now`.
    pub fn is_old(&self, now: Instant) -> bool {
        self.dirty_since.is_some_and(|since| now - since >= crate::WRITE_BACK_AFTER)
    }
}

/// Carries out a change in one of the two states.
pub fn apply(
    inodes: &mut BTreeMap<u64, Inode>,
    change: &Change,
    state: impl Fn(&mut Inode) -> &mut Body,
) {
    match change {
        Change::Names(changes) => {
            for (dir, name, ino) in changes {
                let Some(Body::Dir(names)) = inodes.get_mut(dir).map(&state) else { continue };
                match ino {
                    Some(ino) => names.insert(name.clone(), *ino),
                    None => names.remove(name),
                };
            }
        }
        Change::Cut(file, size) => {
            if let Some(Body::File(content)) = inodes.get_mut(file).map(&state) {
                content.resize(content.size.min(*size));
            }
        }
        Change::Punch(file, from, to) => {
            if let Some(Body::File(content)) = inodes.get_mut(file).map(&state) {
                content.punch(*from, *to);
            }
        }
    }
}
