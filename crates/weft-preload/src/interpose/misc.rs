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
    // The new thread has the mask of this one: handlers of the program run on its own threads only.
    let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
    libc::sigfillset(&raw mut all);
    libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
    let own = Box::into_raw(Box::new(Own { start, arg }));
    let out = real::pthread_create(thread, attr, begin, own.cast());
    if out != 0 {
        drop(Box::from_raw(own));
    }
    libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
    out
}
