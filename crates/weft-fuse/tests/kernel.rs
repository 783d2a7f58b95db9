//! What only a misbehaving or special file system shows: interruption, panics, blocked
//! operations, notifications, passthrough.
#![allow(unsafe_code)] // the tests send signals

mod common;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::thread::JoinHandleExt;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use common::Mounted;
use weft_fuse::kernel::*;

const DAY: Duration = Duration::from_secs(86400);
const ROOT: u64 = abi::ROOT_ID;
const FILE: u64 = 2;

/// What a test sees and steers.
#[derive(Default)]
struct State {
    size: AtomicU64,
    lookups: AtomicU32,
    blocked: AtomicU32,
    device: OnceLock<Arc<Device>>,
    backing: OnceLock<File>,
    backing_id: AtomicI32,
    groups: OnceLock<Vec<u32>>,
    destroyed: AtomicU32,
}

/// A root with one file, whose attributes and name may be cached for a day.
#[derive(Clone, Default)]
struct Probe(Arc<State>);

impl Probe {
    fn attr(&self, node: u64) -> Attr {
        let mode = if node == ROOT { libc::S_IFDIR | 0o777 } else { libc::S_IFREG | 0o666 };
        let size = self.0.size.load(SeqCst);
        Attr { ino: node, mode, size, nlink: 1, ..Attr::default() }
    }
}

impl FileSystem for Probe {
    fn init(&self, offer: &Offer, terms: &mut Terms, device: &Arc<Device>) -> Result<()> {
        assert!(offer.minor >= abi::OLDEST_MINOR_VERSION);
        terms.features |= Features::PASSTHROUGH | Features::ABORT_ERROR;
        terms.max_stack_depth = 1;
        let _ = self.0.device.set(device.clone());
        Ok(())
    }

    fn destroy(&self) {
        self.0.destroyed.fetch_add(1, SeqCst);
    }

    fn lookup(&self, _: &Request<'_>, _: u64, name: &OsStr) -> Result<Entry> {
        self.0.lookups.fetch_add(1, SeqCst);
        match name.as_encoded_bytes() {
            // Many names with a node each, since the kernel has one fsync at a time on a node.
            name if name.starts_with(b"slow") => {
                let number: u64 = std::str::from_utf8(&name[4..]).unwrap().parse().unwrap();
                Ok(Entry::new(self.attr(100 + number), DAY))
            }
            b"file" => Ok(Entry::new(self.attr(FILE), DAY)),
            b"panic" => panic!("this panic is part of the test"),
            _ => Err(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request<'_>, node: u64, _: Option<u64>) -> Result<Attributes> {
        Ok(Attributes { attr: self.attr(node), ttl: DAY })
    }

    fn statx(
        &self,
        _: &Request<'_>,
        node: u64,
        _: Option<u64>,
        _: u32,
        mask: u32,
    ) -> Result<Statx> {
        assert!(mask & libc::STATX_BTIME != 0);
        let btime = Some(Time { secs: 1_000_000_000, nanos: 5 });
        let (attributes, attributes_mask) = (0, 0);
        Ok(Statx { attr: self.attr(node), btime, attributes, attributes_mask, ttl: DAY })
    }

    fn mkdir(&self, req: &Request<'_>, _: u64, _: &OsStr, _: u32) -> Result<Entry> {
        let _ = self.0.groups.set(req.groups().collect());
        Err(Errno::EDQUOT)
    }

    fn open(&self, _: &Request<'_>, _: u64, _: u32, _: bool) -> Result<Opened> {
        let Some(backing) = self.0.backing.get() else {
            return Ok(Opened::new(1, OpenFlags::KEEP_CACHE));
        };
        let id = self.0.device.get().unwrap().backing_open(backing.as_fd())?;
        self.0.backing_id.store(id, SeqCst);
        Ok(Opened::passthrough(1, OpenFlags::default(), id))
    }

    fn fsync(&self, req: &Request<'_>, _: u64, _: u64, _: bool) -> Result<()> {
        self.0.blocked.fetch_add(1, SeqCst);
        while !req.interrupted() && self.0.size.load(SeqCst) != 99 {
            thread::sleep(Duration::from_millis(2));
        }
        self.0.blocked.fetch_sub(1, SeqCst);
        Ok(())
    }
}

fn mount() -> Option<(Probe, Mounted)> {
    let probe = Probe::default();
    Some((probe.clone(), Mounted::new(probe, Config::default())?))
}

fn until(condition: impl Fn() -> bool) {
    for _ in 0..500 {
        if condition() {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("waited for 5 s in vain");
}

extern "C" fn ignore(_: i32) {}

#[test]
fn a_signal_that_is_handled_interrupts_no_operation() {
    let Some((probe, mounted)) = mount() else { return };
    // SAFETY: the action is a function that does nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = ignore as extern "C" fn(i32) as usize;
        libc::sigaction(libc::SIGUSR2, &action, std::ptr::null_mut());
    }
    let file = File::open(mounted.path().join("file")).unwrap();
    let caller = thread::spawn(move || file.sync_all());
    until(|| probe.0.blocked.load(SeqCst) == 1);
    // SAFETY: the thread has not been joined, so its handle is valid.
    unsafe { libc::pthread_kill(caller.as_pthread_t(), libc::SIGUSR2) };
    // Long enough for whoever looks at callers that wait.
    thread::sleep(Duration::from_millis(1500));
    assert_eq!(probe.0.blocked.load(SeqCst), 1);
    probe.0.size.store(99, SeqCst);
    caller.join().unwrap().unwrap();
}

#[test]
fn blocked_operations_do_not_delay_others() {
    let Some((probe, mounted)) = mount() else { return };
    let callers: Vec<_> = (0..20)
        .map(|number| File::open(mounted.path().join(format!("slow{number}"))).unwrap())
        .map(|file| thread::spawn(move || file.sync_all().unwrap()))
        .collect();
    until(|| probe.0.blocked.load(SeqCst) == 20);
    assert!(!mounted.path().join("other").exists());
    probe.0.size.store(99, SeqCst);
    callers.into_iter().for_each(|caller| caller.join().unwrap());
}

#[test]
fn a_panic_is_an_io_error() {
    let Some((_, mounted)) = mount() else { return };
    let error = fs::metadata(mounted.path().join("panic")).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EIO));
    assert!(mounted.path().join("file").exists());
}

#[test]
fn notifications_drop_what_is_cached() {
    let Some((probe, mounted)) = mount() else { return };
    let (path, notifier) = (mounted.path().join("file"), mounted.session.notifier());
    let size = || fs::metadata(&path).unwrap().len();
    let lookups = || probe.0.lookups.load(SeqCst);
    assert_eq!(size(), 0);
    probe.0.size.store(5, SeqCst);
    assert_eq!(size(), 0, "attributes are cached for a day");
    notifier.inval_inode(FILE, 0, 0).unwrap();
    assert_eq!(size(), 5);
    let before = lookups();
    notifier.inval_entry(ROOT, OsStr::new("file")).unwrap();
    size();
    notifier.expire_entry(ROOT, OsStr::new("file")).unwrap();
    size();
    notifier.delete(ROOT, FILE, OsStr::new("file")).unwrap();
    size();
    assert_eq!(lookups(), before + 3);
    notifier.store(FILE, 0, b"hello").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"hello");
    let unknown = notifier.inval_entry(ROOT, OsStr::new("unknown")).unwrap_err();
    assert_eq!(unknown.raw_os_error(), Some(libc::ENOENT));
}

#[test]
fn passthrough_reads_and_writes_the_backing_file() {
    let Some((probe, mounted)) = mount() else { return };
    if !mounted.session.terms().features.contains(Features::PASSTHROUGH) {
        return eprintln!("SKIPPED: this kernel has no FUSE passthrough");
    }
    // Not on a file system in memory: the backing one must not be stacked, tmpfs included.
    let backing = tempfile::tempfile_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    (&backing).write_all(b"from behind").unwrap();
    let _ = probe.0.backing.set(backing.try_clone().unwrap());
    let path = mounted.path().join("file");
    assert_eq!(fs::read(&path).unwrap(), b"from behind");
    let mut file = File::options().write(true).open(&path).unwrap();
    file.write_all(b"FROM").unwrap();
    let mut text = [0; 11];
    std::os::unix::fs::FileExt::read_exact_at(&backing, &mut text, 0).unwrap();
    assert_eq!(&text, b"FROM behind");
    let id = probe.0.backing_id.load(SeqCst);
    probe.0.device.get().unwrap().backing_close(id).unwrap();
    assert!(probe.0.device.get().unwrap().backing_close(id).is_err());
}

#[test]
fn statx_tells_the_time_of_birth() {
    let Some((_, mounted)) = mount() else { return };
    let meta = fs::metadata(mounted.path().join("file")).unwrap();
    let born = meta.created().unwrap().duration_since(std::time::UNIX_EPOCH).unwrap();
    assert_eq!(
        (born.as_secs(), born.subsec_nanos(), meta.mode() & 0o777),
        (1_000_000_000, 5, 0o666)
    );
}

#[test]
fn errors_and_groups_pass_through() {
    let Some((probe, mounted)) = mount() else { return };
    let error = fs::create_dir(mounted.path().join("new")).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EDQUOT));
    assert!(probe.0.groups.get().is_some());
    let state = probe.0.clone();
    drop((probe, mounted));
    assert_eq!(state.destroyed.load(SeqCst), 1);
}
