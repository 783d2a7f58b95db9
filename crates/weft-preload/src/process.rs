//! The state of this process: file systems, open files, current directory; and what becomes of it at fork, exec
//! and exit.

use crate::config::{self, Entry};
use crate::description::{Description, Opened};
use crate::guard::{self, Inside, set_errno};
use crate::handover::{self, State};
use crate::live::Live;
use crate::path::{Dir, Errno};
use crate::slab::{Slab, Slot};
use crate::{fds, real, streams};
use parking_lot::{Mutex, RwLock};
use std::collections::HashMap;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

static PROCESS: AtomicPtr<Process> = AtomicPtr::new(std::ptr::null_mut());

/// Exit status when the configuration makes no sense.
const BAD_CONFIGURATION: i32 = 127;

/// All there is.
pub struct Process {
    /// The file systems.
    pub mounts: Vec<Mount>,
    table: RwLock<Vec<Option<Arc<Description>>>>,
    cwd: RwLock<Option<Dir>>,
    slab: Mutex<Option<Arc<Slab>>>,
}

/// A file system and its client, if it was needed yet.
pub struct Mount {
    /// What is configured.
    pub entry: Entry,
    /// There is something at the prefix on this machine, so that failing to find a path there proves nothing.
    pub is_hiding: bool,
    live: Mutex<Option<Arc<Live>>>,
}

/// The process, once the library has started and if anything is configured.
pub fn process() -> Option<&'static Process> {
    // SAFETY: what was stored is never freed.
    unsafe { PROCESS.load(Ordering::Acquire).as_ref() }
}

/// Reads the environment and takes over what was handed over. Called once, before the program starts.
pub fn start() {
    let _inside = Inside::enter();
    let Ok(text) = std::env::var(config::VARIABLE) else { return };
    let entries = match config::parse(&text) {
        Ok(entries) if entries.is_empty() => return,
        Ok(entries) => entries,
        Err(why) => {
            eprintln!("weft: {}: {why}", config::VARIABLE);
            // SAFETY: the program has not started.
            unsafe { real::_exit(BAD_CONFIGURATION) }
        }
    };
    let mount = |entry: Entry| {
        let path = std::ffi::OsStr::new(std::str::from_utf8(&entry.prefix).unwrap_or("/"));
        let is_hiding = std::fs::symlink_metadata(path).is_ok();
        Mount { entry, is_hiding, live: Mutex::default() }
    };
    let process = Process {
        mounts: entries.into_iter().map(mount).collect(),
        table: RwLock::default(),
        cwd: RwLock::default(),
        slab: Mutex::default(),
    };
    process.take_over();
    PROCESS.store(Box::into_raw(Box::new(process)), Ordering::Release);
    // SAFETY: the handlers take no arguments and live as long as the program.
    unsafe { libc::pthread_atfork(Some(before_fork), Some(in_parent), Some(in_child)) };
    (0..3).filter(|&fd| fds::is_weft(fd)).for_each(streams::follow);
}

impl Process {
    /// The client of a file system, mounted now if it is not.
    ///
    /// # Errors
    /// Those of the servers.
    pub fn live(&self, mount: usize) -> Result<Arc<Live>, Errno> {
        let mount = self.mounts.get(mount).ok_or(Errno(libc::EIO))?;
        let mut live = mount.live.lock();
        if let Some(live) = &*live {
            return Ok(live.clone());
        }
        let started = Live::start(&mount.entry).map_err(|error| {
            let prefix = String::from_utf8_lossy(&mount.entry.prefix);
            eprintln!("weft: cannot reach the file system of {prefix}: {error}");
            error
        })?;
        Ok(live.insert(Arc::new(started)).clone())
    }

    /// What a descriptor stands for.
    pub fn get(&self, fd: RawFd) -> Option<Arc<Description>> {
        if !fds::is_weft(fd) {
            return None;
        }
        self.table.read().get(fd as usize)?.clone()
    }

    /// A slot for the offset of a new open file.
    pub fn slot(&self) -> Result<Slot, Errno> {
        let mut slab = self.slab.lock();
        if let Some(slot) = slab.as_ref().and_then(Slab::take) {
            return Ok(slot);
        }
        let new = Slab::new().ok_or(Errno(libc::ENOMEM))?;
        let slot = slab.insert(new).take();
        slot.ok_or(Errno(libc::ENOMEM))
    }

    /// Gives an open file the lowest free number from `from` on.
    ///
    /// # Errors
    /// `EMFILE`.
    pub fn install(
        &self,
        description: Arc<Description>,
        from: usize,
        cloexec: bool,
    ) -> Result<RawFd, Errno> {
        let fd = fds::reserve(from, cloexec);
        if fd < 0 {
            return Err(Errno(guard::errno()));
        }
        self.put(fd, description);
        if fd < 3 {
            streams::follow(fd);
        }
        Ok(fd)
    }

    /// A number that is reserved, or was just made to be a copy of such, stands for an open file.
    pub fn put(&self, fd: RawFd, description: Arc<Description>) {
        description.add_number();
        let mut table = self.table.write();
        let at = fd as usize;
        if table.len() <= at {
            table.resize(at + 1, None);
        }
        let before = table[at].replace(description);
        fds::set_weft(fd, true);
        drop(table);
        // Nobody is told: the kernel does not either.
        let _ = before.map(|old| old.drop_number());
    }

    /// The number does not stand for a Weft file any more.
    pub fn take(&self, fd: RawFd) -> Option<Arc<Description>> {
        let mut table = self.table.write();
        fds::set_weft(fd, false);
        table.get_mut(fd as usize)?.take()
    }

    /// Numbers of Weft files between two, both included.
    pub fn numbers(&self, first: u32, last: u32) -> Vec<RawFd> {
        let table = self.table.read();
        let open = table.iter().enumerate().filter(|(_, one)| one.is_some());
        let within = open.filter(|(at, _)| (first as usize..=last as usize).contains(at));
        within.map(|(at, _)| at as RawFd).collect()
    }

    /// The current directory, if it is inside.
    pub fn cwd(&self) -> Option<Dir> {
        self.cwd.read().clone()
    }

    /// Whether it is.
    pub fn is_cwd_inside(&self) -> bool {
        self.cwd.read().is_some()
    }

    /// Sets it.
    pub fn set_cwd(&self, dir: Option<Dir>) {
        *self.cwd.write() = dir;
    }

    /// Whether a program that replaces this one, or is started by it, has something to take over.
    pub fn has_state(&self) -> bool {
        self.is_cwd_inside() || self.table.read().iter().any(Option::is_some)
    }

    /// Everything is stored and closed, and the clients leave; they come back when needed.
    pub fn leave(&self) {
        for mount in &self.mounts {
            let Some(live) = mount.live.lock().take() else { continue };
            live.leave();
        }
        for description in self.table.read().iter().flatten() {
            description.unbind();
        }
    }

    /// Has everything that was done through clients that there are on stable storage.
    ///
    /// # Errors
    /// Those of the servers; all are asked.
    pub fn sync(&self) -> Result<(), Errno> {
        let mut outcome = Ok(());
        for mount in 0..self.mounts.len() {
            if self.mounts[mount].live.lock().is_some() {
                outcome = outcome.and(crate::ops::data::sync_all(self, mount));
            }
        }
        outcome
    }

    /// Writes down what another program takes over. The number of the memory file, which outlives exec.
    pub fn hand_over(&self) -> Option<RawFd> {
        let cwd = self.cwd().map(|dir| (dir.mount, dir.fid, dir.path));
        let mut state = State { cwd, files: Vec::new() };
        let table = self.table.read();
        for (number, description) in table.iter().enumerate() {
            let Some(description) = description else { continue };
            // SAFETY: asking changes nothing.
            let flags = unsafe { real::fcntl64(number as i32, libc::F_GETFD, 0) };
            if flags < 0 || flags & libc::FD_CLOEXEC != 0 {
                continue;
            }
            let slot = description.slot().place();
            keep_over_exec(slot.0, true);
            state.files.push(handover::File {
                number: number as i32,
                mount: description.mount,
                fid: description.fid,
                kind: description.kind,
                flags: description.flags(),
                slot,
                path: description.path.clone(),
            });
        }
        if state == State::default() {
            return None;
        }
        // The slots will be used by others, too.
        if let Some(slab) = self.slab.lock().take() {
            slab.share();
        }
        let memory = fds::memory("weft-state")?;
        let text = state.to_text();
        // SAFETY: the buffer is as long as said.
        let written = unsafe { real::write(memory, text.as_ptr().cast(), text.len()) };
        if written != text.len() as isize {
            fds::close(memory);
            return None;
        }
        keep_over_exec(memory, true);
        Some(memory)
    }

    /// After exec has failed, or the other program runs beside this one.
    pub fn take_back(&self, memory: RawFd) {
        fds::close(memory);
        for description in self.table.read().iter().flatten() {
            keep_over_exec(description.slot().place().0, false);
        }
    }

    fn take_over(&self) {
        let Some(text) = std::env::var_os(handover::VARIABLE) else { return };
        // SAFETY: the program has no threads yet.
        unsafe { std::env::remove_var(handover::VARIABLE) };
        let Some(memory) = text.to_str().and_then(|text| text.parse::<RawFd>().ok()) else {
            return;
        };
        let Some(state) = read_all(memory).and_then(|text| State::from_text(&text)) else { return };
        fds::close(memory);
        if let Some((mount, fid, path)) = state.cwd
            && mount < self.mounts.len()
        {
            self.set_cwd(Some(Dir { mount, fid, path }));
        }
        let (mut slabs, mut known) = (HashMap::new(), HashMap::new());
        for file in state.files {
            if !fds::is_blank(file.number) || file.mount >= self.mounts.len() {
                continue;
            }
            let slab = slabs.entry(file.slot.0).or_insert_with(|| Slab::inherited(file.slot.0));
            keep_over_exec(file.slot.0, false);
            let Some(slot) = slab.as_ref().and_then(|slab| slab.slot(file.slot.1)) else {
                continue;
            };
            let handover::File { number, mount, fid, kind, flags, slot: place, path } = file;
            let opened = Opened { mount, fid, kind, path, flags };
            let description = known
                .entry(place)
                .or_insert_with(|| Arc::new(Description::new(opened, slot, None)))
                .clone();
            self.put(number, description);
        }
    }

    /// This process after fork. The caller holds the locks of the parent's.
    fn in_child(&self) -> Process {
        let mount = |mount: &Mount| Mount {
            entry: mount.entry.clone(),
            is_hiding: mount.is_hiding,
            live: Mutex::default(),
        };
        let mut copies: HashMap<*const Description, Arc<Description>> = HashMap::new();
        // SAFETY: the only thread of the child holds the lock.
        let (table, cwd) = unsafe { (&*self.table.data_ptr(), &*self.cwd.data_ptr()) };
        let copy = |old: &Option<Arc<Description>>| {
            let old = old.as_ref()?;
            let new = copies.entry(Arc::as_ptr(old)).or_insert_with(|| Arc::new(old.in_child()));
            new.add_number();
            Some(new.clone())
        };
        Process {
            mounts: self.mounts.iter().map(mount).collect(),
            table: RwLock::new(table.iter().map(copy).collect()),
            cwd: RwLock::new(cwd.clone()),
            slab: Mutex::default(),
        }
    }
}

fn keep_over_exec(fd: RawFd, keep: bool) {
    let flags = if keep { 0 } else { libc::FD_CLOEXEC as usize };
    // SAFETY: one of the library's own.
    unsafe { real::fcntl64(fd, libc::F_SETFD, flags) };
}

fn read_all(memory: RawFd) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        let mut part = [0u8; 4096];
        // SAFETY: the buffer is as long as said.
        let got = unsafe {
            real::pread64(memory, part.as_mut_ptr().cast(), part.len(), bytes.len() as i64)
        };
        match usize::try_from(got).ok()? {
            0 => return String::from_utf8(bytes).ok(),
            got => bytes.extend_from_slice(&part[..got]),
        }
    }
}

/// Locks what the child will read, and shares the offsets.
extern "C" fn before_fork() {
    let Some(process) = process() else { return };
    guard::close_for_fork();
    std::mem::forget(process.table.write());
    std::mem::forget(process.cwd.write());
    let mut slab = process.slab.lock();
    if let Some(slab) = slab.take() {
        slab.share();
    }
    std::mem::forget(slab);
}

extern "C" fn in_parent() {
    let Some(process) = process() else { return };
    // SAFETY: locked by this thread before fork.
    unsafe {
        process.slab.force_unlock();
        process.cwd.force_unlock_write();
        process.table.force_unlock_write();
    }
    guard::open_after_fork(false);
}

/// The parent's clients are left alone, as if they had never been: their connections, threads and locks are the
/// parent's.
extern "C" fn in_child() {
    let Some(old) = process() else { return };
    let before = guard::errno();
    guard::open_after_fork(true);
    {
        let _inside = Inside::enter();
        streams::in_child();
        let new = old.in_child();
        let offsets: Vec<RawFd> =
            new.table.read().iter().flatten().map(|one| one.slot().place().0).collect();
        let others = fds::own_within(0, RawFd::MAX).into_iter().filter(|fd| !offsets.contains(fd));
        others.filter(|&fd| !fds::is_for_all(fd)).for_each(|fd| {
            fds::close(fd);
        });
        PROCESS.store(Box::into_raw(Box::new(new)), Ordering::Release);
    }
    set_errno(before);
}
