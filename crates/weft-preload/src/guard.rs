//! Whether a thread is inside the library, and what surrounds each call from outside.
//!
//! What the library itself asks of the C library goes to the real functions: a thread that is inside passes
//! through. So does a signal handler that interrupts the library; it gets `EBADF` for Weft descriptors instead of
//! waiting for locks that its own thread holds.

use crate::path::Errno;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

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

/// Inside, until dropped.
pub struct Inside(());

impl Inside {
    /// Nothing if the thread is inside already.
    pub fn enter() -> Option<Inside> {
        let outside = INSIDE.try_with(|inside| !inside.replace(true)).unwrap_or(false);
        outside.then_some(Inside(()))
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
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
