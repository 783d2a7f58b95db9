//! The CPUs of the machine, and threads that stay on one.
#![allow(unsafe_code)] // sched_setaffinity(2) has no safe wrapper in std

use std::io;

const POSSIBLE: &str = "/sys/devices/system/cpu/possible";
const ONLINE: &str = "/sys/devices/system/cpu/online";

/// CPUs that may ever be there; the kernel has one queue for each.
pub(super) fn possible() -> io::Result<Vec<usize>> {
    read(POSSIBLE)
}

/// CPUs that are there now.
pub(super) fn online() -> io::Result<Vec<usize>> {
    read(ONLINE)
}

fn read(path: &str) -> io::Result<Vec<usize>> {
    let text = std::fs::read_to_string(path)?;
    parse(text.trim()).ok_or_else(|| io::Error::other(format!("{path}: {text:?} is no list")))
}

/// Reads a list such as `0-3,8`.
fn parse(list: &str) -> Option<Vec<usize>> {
    let mut cpus = Vec::new();
    for range in list.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        cpus.extend(first.parse().ok()?..=last.parse::<usize>().ok()?);
    }
    Some(cpus)
}

/// Keeps the calling thread on one CPU.
///
/// # Errors
/// `EINVAL` if that is offline or out of bounds for this process (cpuset).
pub(super) fn pin(cpu: usize) -> io::Result<()> {
    keep_on(&[cpu])
}

/// Keeps the calling thread on some CPUs.
///
/// # Errors
/// `EINVAL` if all are offline or out of bounds for this process (cpuset).
pub(super) fn keep_on(cpus: &[usize]) -> io::Result<()> {
    const BITS: usize = u64::BITS as usize;
    let mut mask = vec![0u64; cpus.iter().max().map_or(1, |last| last / BITS + 1)];
    cpus.iter().for_each(|cpu| mask[cpu / BITS] |= 1 << (cpu % BITS));
    // SAFETY: the mask is as long as is said, and only read; 0 is the calling thread.
    let result =
        unsafe { libc::sched_setaffinity(0, size_of_val(mask.as_slice()), mask.as_ptr().cast()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read() {
        assert_eq!(parse("0"), Some(vec![0]));
        assert_eq!(parse("0-2,5,7-8"), Some(vec![0, 1, 2, 5, 7, 8]));
        assert_eq!(parse(""), None);
        assert_eq!(parse("a-b"), None);
    }

    #[test]
    fn a_thread_stays_where_it_is_put() {
        let cpu = *online().unwrap().last().unwrap();
        assert!(possible().unwrap().contains(&cpu));
        std::thread::spawn(move || {
            if let Err(error) = pin(cpu) {
                return eprintln!("SKIPPED: this process is kept from CPU {cpu}: {error}");
            }
            // SAFETY: has no preconditions.
            assert_eq!(unsafe { libc::sched_getcpu() }, cpu as i32);
        })
        .join()
        .unwrap();
        assert!(pin(1 << 20).is_err());
    }
}
