//! The machine a run was done on.

use serde::{Deserialize, Serialize};
use std::fs;

/// A machine.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Machine {
    /// Its name.
    pub host: String,
    /// Model of its processor, as the kernel names it.
    pub cpu: String,
    /// Processors that this process may use.
    pub cores: u32,
    /// Memory, bytes.
    pub memory: u64,
    /// Kernel: name and release.
    pub kernel: String,
}

impl Machine {
    /// This one. What the kernel does not tell is left empty.
    pub fn here() -> Machine {
        let system = rustix::system::uname();
        let text = |name: &std::ffi::CStr| name.to_string_lossy().into_owned();
        let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        Machine {
            host: text(system.nodename()),
            cpu: field(&cpus, "model name").unwrap_or_default().to_string(),
            cores: std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
            memory: memory("MemTotal"),
            kernel: format!("{} {}", text(system.sysname()), text(system.release())),
        }
    }
}

/// What the kernel tells of its memory under a name (`MemTotal`, `MemAvailable`), bytes; 0 where it does
/// not tell.
pub fn memory(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = field(&text, name).and_then(|value| value.split(' ').next()?.parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

/// Load average over 1, 5 and 15 minutes; zeros where the kernel does not tell.
pub fn load_average() -> [f64; 3] {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let mut numbers = text.split(' ').map_while(|number| number.parse().ok());
    std::array::from_fn(|_| numbers.next().unwrap_or(0.0))
}

/// The value of the first line `name : value`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(found, _)| found.trim() == name).map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_this_machine() {
        let machine = Machine::here();
        assert!(machine.cores > 0 && machine.memory > 1 << 20);
        assert!((1 << 20..machine.memory).contains(&memory("MemAvailable")));
        assert!(machine.kernel.starts_with("Linux "));
    }

    #[test]
    fn reads_fields() {
        assert_eq!(field("MemTotal:   12 kB\nMemFree: 3 kB\n", "MemFree"), Some("3 kB"));
        assert_eq!(field("a: b", "c"), None);
    }
}
