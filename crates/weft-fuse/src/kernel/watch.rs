//! Who has been killed while he waits.
//!
//! A signal ends a wait for a lock, and nothing else unless it ends its caller: programs do not expect `EINTR` from
//! the operations on a file, and get signals all the time (timers, children, the runtime of Go). The kernel tells of
//! a caller's first signal only (`INTERRUPT`), and not at all of one that comes while a request is on its way to a
//! ring; it waits until the request is answered. So callers that wait for long are looked at.

use std::sync::Arc;
use std::time::Duration;

use super::crew::Crew;
use super::fs::FileSystem;

/// Between two looks, so how long a signal may take to be noticed, twice.
const PERIOD: Duration = Duration::from_millis(500);

const fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// Signals that end nobody who does not handle them.
const HARMLESS: u64 = bit(libc::SIGCHLD)
    | bit(libc::SIGCONT)
    | bit(libc::SIGURG)
    | bit(libc::SIGWINCH)
    | bit(libc::SIGSTOP)
    | bit(libc::SIGTSTP)
    | bit(libc::SIGTTIN)
    | bit(libc::SIGTTOU);

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

/// Whether a thread that was sent some signal is going to end. True of one that cannot be looked at.
pub(super) fn is_ending(thread: u32) -> bool {
    signals_of(thread).is_none_or(|signals| signals.interrupt(false))
}

/// Signals that a thread has got and not yet acted on, as bits, without those it has blocked; and those that it
/// handles or ignores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Signals {
    pending: u64,
    handled: u64,
}

impl Signals {
    /// Whether they end a request. Who waits for a lock waits for nothing else.
    fn interrupt(self, is_deferred: bool) -> bool {
        // The kernel turns a deadly signal into SIGKILL at once, unless it is to leave a core.
        let killed = self.pending & bit(libc::SIGKILL) != 0;
        let deadly = self.pending & !self.handled & !HARMLESS != 0;
        killed || deadly || (is_deferred && self.pending != 0)
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
    Some(Signals {
        pending: (mask("SigPnd:")? | mask("ShdPnd:")?) & !mask("SigBlk:")?,
        handled: mask("SigIgn:")? | mask("SigCgt:")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_who_is_to_be_interrupted() {
        let status = |own, shared, blocked, caught| {
            let ignored = 0;
            signals_in(&format!(
                "SigPnd:\t{own:016x}\nShdPnd:\t{shared:x}\nSigBlk:\t{blocked:x}\n\
                 SigIgn:\t{ignored}\nSigCgt:\t{caught:x}\n"
            ))
            .unwrap()
        };
        let both = |signals: Signals| (signals.interrupt(false), signals.interrupt(true));
        assert_eq!(both(status(bit(libc::SIGKILL), 0, 0, 0)), (true, true));
        let alarm = bit(libc::SIGALRM);
        assert_eq!(both(status(0, alarm, 0, alarm)), (false, true));
        assert_eq!(both(status(0, alarm, alarm, alarm)), (false, false));
        assert_eq!(both(status(bit(libc::SIGQUIT), 0, 0, alarm)), (true, true));
        assert_eq!(both(status(bit(libc::SIGURG), 0, 0, 0)), (false, true));
        assert_eq!(signals_in(""), None);
        assert!(!is_ending(std::process::id()) && is_ending(0));
    }
}
