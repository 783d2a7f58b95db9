//! posix_spawn(3), system(3), popen(3).
//!
//! The C library carries out the actions of posix_spawn with system calls of its own. Where one of them, or what
//! the child takes over, is inside, the child is made by fork, the actions are done by our functions, and the
//! program is replaced by our exec.

use super::exec::{Environment, execve, execvpe};
use super::{active, cwd, fd, open};
use crate::guard::errno;
use crate::handover::VARIABLE;
use crate::process::Process;
use crate::real;
use crate::world::Route;
use libc::{
    FILE, c_char, c_int, c_short, mode_t, pid_t, posix_spawn_file_actions_t, posix_spawnattr_t,
    sigset_t,
};
use parking_lot::Mutex;
use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;

type Text = *const c_char;
type List = *const Text;
type Actions = posix_spawn_file_actions_t;
type Attributes = posix_spawnattr_t;

/// What a child does before its program starts.
#[derive(Clone)]
enum Action {
    Open { fd: c_int, path: CString, flags: c_int, mode: mode_t },
    Close(c_int),
    Dup(c_int, c_int),
    Chdir(CString),
    Fchdir(c_int),
    CloseFrom(c_int),
}

/// Actions that programs have prepared, by the address of the list.
static PREPARED: Mutex<Vec<(usize, Vec<Action>)>> = Mutex::new(Vec::new());

fn prepare(list: *mut Actions, action: Action) {
    let mut prepared = PREPARED.lock();
    match prepared.iter_mut().find(|(address, _)| *address == list as usize) {
        Some((_, actions)) => actions.push(action),
        None => prepared.push((list as usize, vec![action])),
    }
}

fn forget(list: *mut Actions) {
    PREPARED.lock().retain(|(address, _)| *address != list as usize);
}

fn prepared(list: *const Actions) -> Vec<Action> {
    let prepared = PREPARED.lock();
    let found = prepared.iter().find(|(address, _)| *address == list as usize);
    found.map(|(_, actions)| actions.clone()).unwrap_or_default()
}

/// In a child, whose parent's other threads may have had the list.
pub(super) extern "C" fn in_child() {
    if PREPARED.is_locked() {
        // SAFETY: the only thread of the child.
        unsafe { PREPARED.force_unlock() };
    }
}

macro_rules! actions {
    ($($name:ident($($arg:ident: $kind:ty),*) = $action:expr;)*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(list: *mut Actions, $($arg: $kind),*) -> c_int {
            let out = real::spawn::$name(list, $($arg),*);
            if out == 0 {
                prepare(list, $action);
            }
            out
        }
    )* };
}

actions! {
    posix_spawn_file_actions_addopen(fd: c_int, path: Text, flags: c_int, mode: mode_t) =
        Action::Open { fd, path: CStr::from_ptr(path).to_owned(), flags, mode };
    posix_spawn_file_actions_addclose(fd: c_int) = Action::Close(fd);
    posix_spawn_file_actions_adddup2(from: c_int, to: c_int) = Action::Dup(from, to);
    posix_spawn_file_actions_addchdir_np(path: Text) =
        Action::Chdir(CStr::from_ptr(path).to_owned());
    posix_spawn_file_actions_addfchdir_np(fd: c_int) = Action::Fchdir(fd);
    posix_spawn_file_actions_addclosefrom_np(from: c_int) = Action::CloseFrom(from);
}

#[unsafe(no_mangle)]
unsafe extern "C" fn posix_spawn_file_actions_init(list: *mut Actions) -> c_int {
    forget(list);
    real::spawn::posix_spawn_file_actions_init(list)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn posix_spawn_file_actions_destroy(list: *mut Actions) -> c_int {
    forget(list);
    real::spawn::posix_spawn_file_actions_destroy(list)
}

/// Whether the C library cannot do it.
fn concerns(process: &Process, path: Option<&CStr>, actions: &[Action]) -> bool {
    let is_inside = |path: &CStr| {
        let route = crate::guard::guarded(|| {
            process.route(libc::AT_FDCWD, path, crate::path::Wanted::Name)
        });
        !matches!(route, Ok(Route::Through))
    };
    process.has_state()
        || path.is_some_and(is_inside)
        || actions.iter().any(|action| match action {
            Action::Open { path, .. } | Action::Chdir(path) => is_inside(path),
            _ => false,
        })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn posix_spawn(
    pid: *mut pid_t,
    path: Text,
    list: *const Actions,
    attributes: *const Attributes,
    args: List,
    environment: List,
) -> c_int {
    let actions = prepared(list);
    match active().filter(|process| concerns(process, Some(CStr::from_ptr(path)), &actions)) {
        Some(_) => spawn(pid, &actions, attributes, || execve(path, args, environment)),
        None => real::posix_spawn(pid, path, list, attributes, args, environment),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn posix_spawnp(
    pid: *mut pid_t,
    file: Text,
    list: *const Actions,
    attributes: *const Attributes,
    args: List,
    environment: List,
) -> c_int {
    let actions = prepared(list);
    let name = CStr::from_ptr(file);
    let path = name.to_bytes().contains(&b'/').then_some(name);
    match active().filter(|process| concerns(process, path, &actions)) {
        Some(_) => spawn(pid, &actions, attributes, || execvpe(file, args, environment)),
        None => real::posix_spawnp(pid, file, list, attributes, args, environment),
    }
}

/// Makes the child. The error number, as of posix_spawn(3), comes through a pipe, which a program that has started
/// closes.
unsafe fn spawn(
    pid: *mut pid_t,
    actions: &[Action],
    attributes: *const Attributes,
    run: impl FnOnce() -> c_int,
) -> c_int {
    let mut pipe = [-1; 2];
    if libc::pipe2(pipe.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
        return errno();
    }
    // Out of the way of numbers that the actions name.
    let (from, to) = (pipe[0], crate::fds::adopt(pipe[1]));
    let child = libc::fork();
    if child == 0 {
        crate::fds::protect(to);
        if dress(attributes) && actions.iter().all(|action| perform(action)) {
            run();
        }
        let code = errno();
        real::write(to, (&raw const code).cast(), size_of::<c_int>());
        super::life::leave();
        real::_exit(127);
    }
    let failure = errno();
    crate::fds::close(to);
    let mut code: c_int = 0;
    let told = if child > 0 { read_code(from, &mut code) } else { 0 };
    real::close(from);
    if child < 0 {
        return failure;
    }
    if told == size_of::<c_int>() as isize {
        libc::waitpid(child, std::ptr::null_mut(), 0);
        return code;
    }
    if !pid.is_null() {
        *pid = child;
    }
    0
}

unsafe fn read_code(from: c_int, code: &mut c_int) -> isize {
    loop {
        let got = real::read(from, std::ptr::from_mut(code).cast(), size_of::<c_int>());
        if got >= 0 || errno() != libc::EINTR {
            return got;
        }
    }
}

unsafe fn perform(action: &Action) -> bool {
    match action {
        Action::Open { fd, path, flags, mode } => {
            let opened = open::openat64(libc::AT_FDCWD, path.as_ptr(), *flags, *mode);
            if opened < 0 || opened == *fd {
                return opened >= 0;
            }
            let moved = fd::dup2(opened, *fd);
            fd::close(opened);
            moved >= 0
        }
        Action::Close(fd) => {
            // One that is not open is none of posix_spawn's business.
            fd::close(*fd);
            true
        }
        Action::Dup(from, to) if from == to => fd::fcntl64(*from, libc::F_SETFD, 0) >= 0,
        Action::Dup(from, to) => fd::dup2(*from, *to) >= 0,
        Action::Chdir(path) => cwd::chdir(path.as_ptr()) == 0,
        Action::Fchdir(fd) => cwd::fchdir(*fd) == 0,
        Action::CloseFrom(from) => {
            fd::closefrom(*from);
            true
        }
    }
}

/// The attributes of the child, as posix_spawn(3) has them.
unsafe fn dress(attributes: *const Attributes) -> bool {
    if attributes.is_null() {
        return true;
    }
    let mut flags: c_short = 0;
    libc::posix_spawnattr_getflags(attributes, &raw mut flags);
    let has = |flag: c_int| c_int::from(flags) & flag != 0;
    if has(libc::POSIX_SPAWN_SETSIGDEF) {
        let mut set = MaybeUninit::<sigset_t>::uninit();
        libc::posix_spawnattr_getsigdefault(attributes, set.as_mut_ptr());
        for signal in 1..=libc::SIGRTMAX() {
            if libc::sigismember(set.as_ptr(), signal) == 1 {
                libc::signal(signal, libc::SIG_DFL);
            }
        }
    }
    if has(libc::POSIX_SPAWN_SETSIGMASK) {
        let mut set = MaybeUninit::<sigset_t>::uninit();
        libc::posix_spawnattr_getsigmask(attributes, set.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, set.as_ptr(), std::ptr::null_mut());
    }
    if has(c_int::from(libc::POSIX_SPAWN_SETSID)) && libc::setsid() < 0 {
        return false;
    }
    if has(libc::POSIX_SPAWN_SETPGROUP) {
        let mut group: pid_t = 0;
        libc::posix_spawnattr_getpgroup(attributes, &raw mut group);
        if libc::setpgid(0, group) != 0 {
            return false;
        }
    }
    !has(libc::POSIX_SPAWN_RESETIDS)
        || libc::setegid(libc::getgid()) == 0 && libc::seteuid(libc::getuid()) == 0
}

/// Runs something of the C library's that starts a program with this process's environment.
unsafe fn with_state<T>(act: impl FnOnce() -> T) -> T {
    let Some(process) = active().filter(|process| process.has_state()) else { return act() };
    let handed = Environment::new(process, std::ptr::null());
    let entry = handed.entry();
    if let Some(value) = entry.as_deref() {
        libc::setenv(name().as_ptr(), value.as_ptr(), 1);
    }
    let out = act();
    let code = errno();
    if entry.is_some() {
        libc::unsetenv(name().as_ptr());
    }
    handed.take_back(process);
    crate::guard::set_errno(code);
    out
}

fn name() -> CString {
    CString::new(VARIABLE).unwrap_or_default()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn system(command: Text) -> c_int {
    with_state(|| real::system(command))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn popen(command: Text, kind: Text) -> *mut FILE {
    with_state(|| real::popen(command, kind))
}
