//! The program's start and end.

use super::spawn::in_child as spawn_in_child;
use crate::guard::Inside;
use crate::process::{process, start};
use crate::{real, streams};
use libc::{c_int, pid_t};

#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;
#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end;

extern "C" fn begin() {
    // Without it every call passes through, and paths are not found.
    let _ = std::panic::catch_unwind(start);
    // SAFETY: the handler takes no arguments and lives as long as the program.
    unsafe { libc::pthread_atfork(None, None, Some(spawn_in_child)) };
}

extern "C" fn end() {
    if process().is_some() {
        streams::flush();
        leave();
    }
}

/// Has everything stored.
pub(super) fn leave() {
    let Some(process) = process() else { return };
    let _inside = Inside::enter();
    let left = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| process.leave()));
    if left.is_err() {
        eprintln!("weft: leaving has failed; what was written last may be lost");
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn _exit(status: c_int) -> ! {
    leave();
    real::_exit(status)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn _Exit(status: c_int) -> ! {
    _exit(status)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn quick_exit(status: c_int) -> ! {
    leave();
    real::quick_exit(status)
}

/// A child that shared the memory would end the parent's clients, so it gets its own.
#[unsafe(no_mangle)]
unsafe extern "C" fn vfork() -> pid_t {
    libc::fork()
}
