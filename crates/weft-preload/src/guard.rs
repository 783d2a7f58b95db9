//! Whether a thread is inside the library, and what surrounds each call from outside.
//!
//! What the library itself asks of the C library goes to the real functions: a thread that is inside passes
//! through. So does a signal handler that interrupts the library; it gets `EBADF` for Weft descriptors instead of
//! waiting for locks that its own thread holds.

use crate::path::Errno;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is inside the library, or one of the library's.
pub fn is_inside() -> bool {
    INSIDE.try_with(Cell::get).unwrap_or(true)
}

/// This thread is the library's from now on.
pub fn adopt_thread() {
    INSIDE.set(true);
}

/// Threads of the program that are inside.
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// The process is about to be copied, and nobody may come in.
static FORKING: AtomicBool = AtomicBool::new(false);
/// Between two looks whether a fork is over, or threads have left.
const PAUSE: Duration = Duration::from_micros(50);
/// Longest that a fork waits for threads to leave: one may be waiting for a lock of a file.
const FORK_PATIENCE: Duration = Duration::from_secs(2);

/// Comes in, but not while the process is being copied: what this thread holds nobody would give back in the copy.
fn come_in() {
    loop {
        COUNT.fetch_add(1, Ordering::SeqCst);
        if !FORKING.load(Ordering::SeqCst) {
            return;
        }
        COUNT.fetch_sub(1, Ordering::SeqCst);
        std::thread::sleep(PAUSE);
    }
}

/// Waits until no thread is inside, and keeps all out. Another fork goes first.
pub fn close_for_fork() {
    while FORKING.swap(true, Ordering::SeqCst) {
        std::thread::sleep(PAUSE);
    }
    let since = Instant::now();
    while COUNT.load(Ordering::SeqCst) > 0 && since.elapsed() < FORK_PATIENCE {
        std::thread::sleep(PAUSE);
    }
}

/// Lets threads in again, after fork.
pub fn open_after_fork(in_child: bool) {
    if in_child {
        COUNT.store(0, Ordering::SeqCst);
    }
    FORKING.store(false, Ordering::SeqCst);
}

/// Inside, until dropped.
pub struct Inside(());

impl Inside {
    /// Nothing if the thread is inside already.
    pub fn enter() -> Option<Inside> {
        let outside = INSIDE.try_with(|inside| !inside.replace(true)).unwrap_or(false);
        outside.then(|| {
            come_in();
            Inside(())
        })
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        COUNT.fetch_sub(1, Ordering::SeqCst);
        INSIDE.set(false);
    }
}

/// Does something inside. `errno` is left as it was unless it fails; a panic becomes `EIO`.
pub fn guarded<T>(act: impl FnOnce() -> Result<T, Errno>) -> Result<T, Errno> {
    let before = errno();
    let inside = Inside::enter();
    let outcome = catch_unwind(AssertUnwindSafe(act)).unwrap_or(Err(Errno(libc::EIO)));
    drop(inside);
    set_errno(match outcome {
        Ok(_) => before,
        Err(Errno(code)) => code,
    });
    outcome
}

/// The error number of this thread.
pub fn errno() -> i32 {
    // SAFETY: the C library gives each thread one.
    unsafe { *libc::__errno_location() }
}

/// Sets it.
pub fn set_errno(code: i32) {
    // SAFETY: the C library gives each thread one.
    unsafe { *libc::__errno_location() = code }
}
