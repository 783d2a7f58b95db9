//! Processor time of processes.

use std::fs;

/// Ticks per second of the times in `/proc`: the same on all Linux machines.
const TICKS: f64 = 100.0;

/// Seconds of processor time that a process has used, user and system; 0 when it is gone.
pub fn cpu_seconds(pid: u32) -> f64 {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name, in brackets, may contain anything; behind it utime and stime are 12th and 13th.
    let fields = text.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / TICKS
}

/// Seconds of processor time that this thread has used, user and system.
pub fn thread_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sees_its_own_work() {
        let own = || cpu_seconds(std::process::id());
        let before = own();
        while own() <= before {
            std::hint::black_box((0..1000u64).sum::<u64>());
        }
        assert_eq!(cpu_seconds(u32::MAX), 0.0);
    }
}
