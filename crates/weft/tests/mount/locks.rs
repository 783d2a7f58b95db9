//! Locks: flock(2) between open files, fcntl(2) between processes, and waiting for them.

use crate::cluster::Cluster;
use crate::sys::{self, errno};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::fd::AsRawFd;
use std::os::unix::thread::JoinHandleExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

/// Tells the child which file to lock.
const CHILD_FILE: &str = "WEFT_TEST_LOCK_FILE";

fn open(path: &Path) -> File {
    File::options().read(true).write(true).create(true).truncate(false).open(path).unwrap()
}

fn set_lock(file: &File, kind: i32, start: i64, len: i64) -> i32 {
    errno(sys::fcntl_lock(file, libc::F_SETLK, kind, start, len))
}

/// Not a test: a process that locks bytes 100 to 199 until its standard input ends.
#[test]
#[ignore = "run by other tests"]
fn child() {
    let Some(path) = std::env::var_os(CHILD_FILE) else { return };
    let file = open(Path::new(&path));
    assert_eq!(set_lock(&file, libc::F_WRLCK, 100, 100), 0);
    println!("locked");
    std::io::stdin().lines().for_each(drop);
}

/// Another process with a lock.
struct Locker {
    child: Child,
    /// Kept, since a process that cannot write fails.
    output: BufReader<ChildStdout>,
}

impl Locker {
    fn start(path: &Path) -> Locker {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--ignored", "--exact", "locks::child", "--nocapture"]);
        command.env(CHILD_FILE, path).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        assert!(output.by_ref().lines().any(|line| line.unwrap().contains("locked")));
        Locker { child, output }
    }

    fn end(mut self) {
        drop(self.child.stdin.take());
        self.output.lines().for_each(drop);
        assert!(self.child.wait().unwrap().success());
    }
}

#[test]
fn processes_keep_each_other_out() {
    let cluster = Cluster::start();
    let mount = cluster.mount();
    let file = open(&mount.path("file"));
    let locker = Locker::start(&mount.path("file"));
    assert_eq!(set_lock(&file, libc::F_RDLCK, 150, 10), libc::EAGAIN);
    assert_eq!(set_lock(&file, libc::F_WRLCK, 0, 100), 0);
    let found = sys::fcntl_lock(&file, libc::F_GETLK, libc::F_RDLCK, 0, 0).unwrap();
    assert_eq!((i32::from(found.l_type), found.l_start, found.l_len), (libc::F_WRLCK, 100, 100));
    assert_eq!(found.l_pid as u32, locker.child.id());
    let locked = AtomicBool::new(false);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            sys::fcntl_lock(&file, libc::F_SETLKW, libc::F_WRLCK, 150, 0).unwrap();
            locked.store(true, SeqCst);
        });
        thread::sleep(Duration::from_millis(50));
        assert!(!locked.load(SeqCst));
        locker.end();
        waiter.join().unwrap();
    });
    assert!(locked.load(SeqCst));
    // Closing any descriptor of the file gives the locks of the process back.
    drop(open(&mount.path("file")));
    Locker::start(&mount.path("file")).end();
}

#[test]
fn locks_of_an_open_file_go_with_it() {
    let cluster = Cluster::start();
    let mount = cluster.mount();
    let (one, two) = (open(&mount.path("file")), open(&mount.path("file")));
    let lock = |file: &File| errno(sys::fcntl_lock(file, libc::F_OFD_SETLK, libc::F_WRLCK, 0, 10));
    assert_eq!((lock(&one), lock(&two)), (0, libc::EAGAIN));
    drop(one);
    sys::fcntl_lock(&two, libc::F_OFD_SETLKW, libc::F_WRLCK, 0, 10).unwrap();
    // The same for flock.
    let three = open(&mount.path("file"));
    two.lock().unwrap();
    assert!(three.try_lock().is_err());
    drop(two);
    three.lock_shared().unwrap();
    open(&mount.path("file")).try_lock_shared().unwrap();
}

/// More of them than the mount may have threads.
#[test]
fn those_who_wait_do_not_keep_others() {
    let cluster = Cluster::start();
    let mount = cluster.mount();
    let holder = open(&mount.path("file"));
    holder.lock().unwrap();
    thread::scope(|scope| {
        for _ in 0..600 {
            let file = open(&mount.path("file"));
            scope.spawn(move || file.lock_shared().unwrap());
        }
        thread::sleep(Duration::from_millis(100));
        fs::write(mount.path("other"), "served").unwrap();
        assert_eq!(fs::read(mount.path("other")).unwrap(), b"served");
        holder.unlock().unwrap();
    });
}

extern "C" fn ignore(_: i32) {}

#[test]
fn a_signal_ends_the_wait() {
    // SAFETY: all zeros is a valid sigaction, without SA_RESTART; the handler does nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = ignore as *const () as usize;
        assert_eq!(libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()), 0);
    }
    let cluster = Cluster::start();
    let mount = cluster.mount();
    let (holder, file) = (open(&mount.path("file")), open(&mount.path("file")));
    holder.lock().unwrap();
    // Not by std, which waits again after a signal.
    // SAFETY: no memory is involved.
    let wait = move || match unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX) } {
        0 => 0,
        _ => std::io::Error::last_os_error().raw_os_error().unwrap(),
    };
    let waiter = thread::spawn(wait);
    while !waiter.is_finished() {
        thread::sleep(Duration::from_millis(50));
        // SAFETY: the thread has not been joined, and SIGUSR1 has a handler.
        unsafe { libc::pthread_kill(waiter.as_pthread_t(), libc::SIGUSR1) };
    }
    assert_eq!(waiter.join().unwrap(), libc::EINTR);
    // Whoever gave up does not get the lock later.
    holder.unlock().unwrap();
    open(&mount.path("file")).try_lock().unwrap();
}
