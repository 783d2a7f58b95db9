//! Functions that matter only when the library itself calls them: its descriptors are put out of the program's
//! way, and its threads are marked and get no signals.

use crate::guard::{adopt_thread, is_inside};
use crate::{fds, real};
use libc::{c_int, c_void, pthread_attr_t, pthread_t};

#[unsafe(no_mangle)]
unsafe extern "C" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    let fd = real::socket(domain, kind, protocol);
    if is_inside() { fds::adopt(fd) } else { fd }
}

/// Stack of a thread of the library, bytes.
const STACK: usize = 2 << 20;
/// The lowest part of it, which nobody may touch.
const GUARD: usize = 4096;

unsafe extern "C" {
    fn pthread_attr_setstack(attr: *mut pthread_attr_t, low: *mut c_void, len: usize) -> c_int;
}

/// A stack that the C library does not use again. In a child it would, for new threads, and what the parent's
/// threads have put into lists of those who wait lies on their stacks.
unsafe fn own_stack(attr: *mut pthread_attr_t) -> bool {
    let (access, none) = (libc::PROT_READ | libc::PROT_WRITE, std::ptr::null_mut());
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK;
    let low = real::mmap64(none, STACK, access, flags, -1, 0);
    low != libc::MAP_FAILED
        && libc::mprotect(low, GUARD, libc::PROT_NONE) == 0
        && libc::pthread_attr_init(attr) == 0
        && pthread_attr_setstack(attr, low, STACK) == 0
}

type Start = extern "C" fn(*mut c_void) -> *mut c_void;

/// What a thread of the library is started with.
struct Own {
    start: Start,
    arg: *mut c_void,
}

extern "C" fn begin(own: *mut c_void) -> *mut c_void {
    adopt_thread();
    // SAFETY: made for this thread alone.
    let own = unsafe { Box::from_raw(own.cast::<Own>()) };
    (own.start)(own.arg)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_create(
    thread: *mut pthread_t,
    attr: *const pthread_attr_t,
    start: Start,
    arg: *mut c_void,
) -> c_int {
    if !is_inside() {
        return real::pthread_create(thread, attr, start, arg);
    }
    // Of what the library asks for, the size of the stack is all that matters.
    // The new thread has the mask of this one: handlers of the program run on its own threads only.
    let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
    libc::sigfillset(&raw mut all);
    libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
    let own = Box::into_raw(Box::new(Own { start, arg }));
    let mut stacked: pthread_attr_t = std::mem::zeroed();
    let out = match own_stack(&raw mut stacked) {
        true => real::pthread_create(thread, &raw const stacked, begin, own.cast()),
        false => libc::ENOMEM,
    };
    if out != 0 {
        drop(Box::from_raw(own));
    }
    libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
    out
}
