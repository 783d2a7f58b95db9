//! Who asks: the process itself.

use std::sync::atomic::{AtomicI32, Ordering};
use weft_client::Ctx;
use weft_model::Credentials;

/// The process's mask of permission bits; -1 until it is known.
static UMASK: AtomicI32 = AtomicI32::new(-1);

/// The process as the caller of an operation.
pub fn ctx() -> Ctx<'static> {
    // SAFETY: neither has preconditions or can fail.
    let (uid, gid) = unsafe { (libc::geteuid(), libc::getegid()) };
    let cred = Credentials { uid, gid, groups: None };
    Ctx { cred, groups: &groups, interrupted: None, umask: 0 }
}

/// The same for making something.
pub fn ctx_with_umask() -> Ctx<'static> {
    Ctx { umask: umask(), ..ctx() }
}

/// Effective user and group: what decides whether things kept are still this caller's.
pub fn identity() -> u64 {
    // SAFETY: neither has preconditions or can fail.
    let (uid, gid) = unsafe { (libc::geteuid(), libc::getegid()) };
    u64::from(uid) << 32 | u64::from(gid)
}

fn groups() -> Vec<u32> {
    // SAFETY: with room for none it only counts.
    let count = unsafe { libc::getgroups(0, std::ptr::null_mut()) }.max(0);
    let mut groups = vec![0; count as usize];
    // SAFETY: there is room for as many as are told.
    let got = unsafe { libc::getgroups(count, groups.as_mut_ptr()) }.max(0);
    groups.truncate(got as usize);
    groups
}

/// The process has changed its mask.
pub fn set_umask(mask: u32) {
    UMASK.store((mask & 0o777) as i32, Ordering::Relaxed);
}

/// Asking the kernel would change it, so it is read where the kernel tells it, once.
fn umask() -> u32 {
    let known = UMASK.load(Ordering::Relaxed);
    if known >= 0 {
        return known as u32;
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    let mask = line.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok()).unwrap_or(0o022);
    // Whoever has changed it meanwhile knows better.
    let set = UMASK.compare_exchange(-1, mask as i32, Ordering::Relaxed, Ordering::Relaxed);
    set.map_or_else(|newer| newer as u32, |_| mask)
}
