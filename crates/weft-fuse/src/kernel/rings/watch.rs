//! Signals that the kernel has not told us of.
//!
//! A caller that gets a signal has its request interrupted (`INTERRUPT`), unless the signal comes
//! while the request is on its way to a ring: the kernel neither tells then nor makes up for it.
//! A process that was killed would stay for as long as its request takes, which for a lock may be for
//! ever. So callers that wait for long are looked at.

use std::sync::Arc;
use std::time::Duration;

use crate::kernel::crew::Crew;
use crate::kernel::fs::FileSystem;

/// Between two looks, so how long a signal may take to be noticed, twice.
const PERIOD: Duration = Duration::from_secs(1);

/// Watches the callers of a session until its end.
pub(super) fn watch<F: FileSystem>(crew: &Arc<Crew<F>>) -> std::io::Result<()> {
    let (end, interrupts) = (crew.end(), crew.server.interrupts.clone());
    let thread = std::thread::Builder::new().name("weft-watch".into());
    let watch = move || {
        let mut before = Vec::new();
        while !end.wait_for(PERIOD) {
            for lasting in interrupts.lasting(&mut before) {
                let signals = signals_of(lasting.caller).unwrap_or_default();
                if signals.interrupt(lasting.is_deferred) {
                    interrupts.interrupt(lasting.unique);
                }
            }
        }
    };
    thread.spawn(watch).map(drop)
}

/// Signals that a thread has got and not yet acted on, as bits, without those it has blocked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Signals(u64);

impl Signals {
    /// Whether they end a request. Locks are waited for by callers alone; another request may be one
    /// that its caller does not wait for, so that it is given up only with its caller.
    fn interrupt(self, is_deferred: bool) -> bool {
        let killed = self.0 & 1 << (libc::SIGKILL - 1) != 0;
        killed || (is_deferred && self.0 != 0)
    }
}

fn signals_of(thread: u32) -> Option<Signals> {
    signals_in(&std::fs::read_to_string(format!("/proc/{thread}/status")).ok()?)
}

fn signals_in(status: &str) -> Option<Signals> {
    let mask = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        u64::from_str_radix(line.trim(), 16).ok()
    };
    Some(Signals((mask("SigPnd:")? | mask("ShdPnd:")?) & !mask("SigBlk:")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_who_is_to_be_interrupted() {
        let status = |own, shared, blocked| {
            signals_in(&format!("SigPnd:\t{own}\nShdPnd:\t{shared}\nSigBlk:\t{blocked}\n"))
        };
        let killed = status("0000000000000100", "0", "0").unwrap();
        assert!(killed.interrupt(false) && killed.interrupt(true));
        let alarmed = status("0", "0000000000002000", "0").unwrap();
        assert!(!alarmed.interrupt(false) && alarmed.interrupt(true));
        assert_eq!(status("0", "2000", "2000"), Some(Signals(0)));
        assert_eq!(signals_in(""), None);
        assert_eq!(signals_of(std::process::id()), Some(Signals(0)));
    }
}
