//! execve(2) and its kin: what is open goes over to the program that replaces this one.

use super::life::leave;
use super::{active, at};
use crate::guard::{errno, set_errno};
use crate::handover::VARIABLE;
use crate::ops::program;
use crate::path::Wanted;
use crate::process::Process;
use crate::{fds, real};
use libc::{c_char, c_int};
use std::ffi::{CStr, CString};
use std::os::fd::RawFd;

type Text = *const c_char;
type List = *const Text;

/// An environment with the number of what is handed over, or without one.
pub(super) struct Environment {
    list: Vec<Text>,
    _entry: Option<CString>,
    memory: Option<RawFd>,
}

impl Environment {
    pub(super) unsafe fn new(process: &Process, environment: List) -> Environment {
        let inside = crate::guard::Inside::enter();
        let memory = process.hand_over();
        drop(inside);
        let entry = memory.and_then(|fd| CString::new(format!("{VARIABLE}={fd}")).ok());
        let mut list = Vec::new();
        let mut at = environment;
        while !at.is_null() && !(*at).is_null() {
            let text = CStr::from_ptr(*at).to_bytes();
            let name = text.split(|&byte| byte == b'=').next().unwrap_or(text);
            if name != VARIABLE.as_bytes() {
                list.push(*at);
            }
            at = at.add(1);
        }
        list.extend(entry.as_ref().map(|entry| entry.as_ptr()));
        list.push(std::ptr::null());
        Environment { list, _entry: entry, memory }
    }

    pub(super) fn list(&self) -> List {
        self.list.as_ptr()
    }

    /// The number of what is handed over, as text.
    pub(super) fn entry(&self) -> Option<CString> {
        CString::new(self.memory?.to_string()).ok()
    }

    /// The other program has not come, or runs beside this one.
    pub(super) fn take_back(&self, process: &Process) {
        if let Some(memory) = self.memory {
            process.take_back(memory);
        }
    }
}

/// Leaves, hands over, and does what replaces this program. Comes back only if that fails.
unsafe fn replace(environment: List, act: impl FnOnce(List) -> c_int) -> c_int {
    let Some(process) = active() else { return act(environment) };
    leave();
    let environment = Environment::new(process, environment);
    let out = act(environment.list());
    let code = errno();
    environment.take_back(process);
    set_errno(code);
    out
}

/// A program inside is loaded into a memory file, since the kernel cannot read it.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn execve(path: Text, args: List, environment: List) -> c_int {
    let real = |_, path| replace(environment, |environment| real::execve(path, args, environment));
    let loaded = at(libc::AT_FDCWD, path, Wanted::Target, program::load, real);
    if loaded < 0 {
        return loaded;
    }
    replace(environment, |environment| real::fexecve(loaded, args, environment));
    let code = errno();
    fds::close(loaded);
    set_errno(code);
    -1
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn execvpe(file: Text, args: List, environment: List) -> c_int {
    if CStr::from_ptr(file).to_bytes().contains(&b'/') {
        return execve(file, args, environment);
    }
    replace(environment, |environment| real::execvpe(file, args, environment))
}

unsafe extern "C" {
    static environ: List;
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn execv(path: Text, args: List) -> c_int {
    execve(path, args, environ)
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn execvp(file: Text, args: List) -> c_int {
    execvpe(file, args, environ)
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn fexecve(fd: c_int, args: List, environment: List) -> c_int {
    if fds::is_weft(fd) {
        set_errno(libc::EACCES);
        return -1;
    }
    replace(environment, |environment| real::fexecve(fd, args, environment))
}

/// Defines execl(3) and its kin. Functions with a variable number of arguments cannot be defined here; one with
/// many finds those that were given where it looks for its own, up to the zero that ends them.
macro_rules! listed {
    ($($name:ident($($arg:ident)*) = $run:expr;)*) => { $(
        #[unsafe(no_mangle)]
        #[allow(clippy::too_many_arguments)]
        unsafe extern "C" fn $name(path: Text, $($arg: Text),*) -> c_int {
            let given = [$($arg),*];
            let Some(end) = given.iter().position(|arg| arg.is_null()) else {
                set_errno(libc::E2BIG);
                return -1;
            };
            let after = given.get(end + 1).copied().unwrap_or(std::ptr::null());
            $run(path, given.as_ptr(), after.cast())
        }
    )* };
}

listed! {
    execl(a0 a1 a2 a3 a4 a5 a6 a7 a8 a9 b0 b1 b2 b3 b4 b5 b6 b7 b8 b9
          c0 c1 c2 c3 c4 c5 c6 c7 c8 c9 d0 d1 d2 d3 d4 d5 d6 d7 d8 d9)
        = |path, args, _: List| execv(path, args);
    execlp(a0 a1 a2 a3 a4 a5 a6 a7 a8 a9 b0 b1 b2 b3 b4 b5 b6 b7 b8 b9
           c0 c1 c2 c3 c4 c5 c6 c7 c8 c9 d0 d1 d2 d3 d4 d5 d6 d7 d8 d9)
        = |path, args, _: List| execvp(path, args);
    execle(a0 a1 a2 a3 a4 a5 a6 a7 a8 a9 b0 b1 b2 b3 b4 b5 b6 b7 b8 b9
           c0 c1 c2 c3 c4 c5 c6 c7 c8 c9 d0 d1 d2 d3 d4 d5 d6 d7 d8 d9)
        = |path, args, environment: List| execve(path, args, environment);
}
