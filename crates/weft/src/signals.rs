//! What ends a process that serves: a signal, or the end of what it serves.

use anyhow::Context;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Exit code after a second signal, which ends the process at once.
const AT_ONCE: i32 = 130;

/// Why to stop.
#[derive(Debug)]
pub enum Event {
    /// Somebody wants the process to end.
    Signal(i32),
    /// A mount has been unmounted.
    Unmounted(std::path::PathBuf),
}

/// A flag that `SIGTERM` and `SIGINT` set, for work that ends by itself soon after and must clean up,
/// however often it is asked to end.
///
/// # Errors
/// Those of the system.
pub fn stop_flag() -> anyhow::Result<Arc<AtomicBool>> {
    let stopping = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT] {
        flag::register(signal, stopping.clone()).context("cannot watch for signals")?;
    }
    Ok(stopping)
}

/// Watches for events.
pub struct Events {
    sender: Sender<Event>,
    receiver: Receiver<Event>,
    stopping: Arc<AtomicBool>,
}

impl Events {
    /// `SIGTERM` and `SIGINT` become events from here on; a second one ends the process at once.
    ///
    /// # Errors
    /// Those of the system.
    pub fn watch() -> anyhow::Result<Events> {
        let stopping = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGINT] {
            // In this order: the first signal finds the flag unset and sets it.
            flag::register_conditional_shutdown(signal, AT_ONCE, stopping.clone())
                .and_then(|_| flag::register(signal, stopping.clone()))
                .context("cannot watch for signals")?;
        }
        Events::watch_with(stopping)
    }

    /// The same, and every further signal is an event, too.
    ///
    /// # Errors
    /// Those of the system.
    pub fn watch_all() -> anyhow::Result<Events> {
        Events::watch_with(stop_flag()?)
    }

    fn watch_with(stopping: Arc<AtomicBool>) -> anyhow::Result<Events> {
        let (sender, receiver) = channel();
        let mut signals = Signals::new([SIGTERM, SIGINT]).context("cannot watch for signals")?;
        let told = sender.clone();
        std::thread::Builder::new().name("weft-signals".into()).spawn(move || {
            for signal in signals.forever() {
                // Nobody waits any more when the process is ending.
                let _ = told.send(Event::Signal(signal));
            }
        })?;
        Ok(Events { sender, receiver, stopping })
    }

    /// Where others report events.
    pub fn sender(&self) -> Sender<Event> {
        self.sender.clone()
    }

    /// Whether a signal has come, for whatever waits before [`Self::next`] does.
    pub fn stopping(&self) -> Arc<AtomicBool> {
        self.stopping.clone()
    }

    /// Waits for the next event.
    pub fn next(&self) -> Event {
        // `self` has a sender, so the channel never closes.
        self.receiver.recv().unwrap_or(Event::Signal(SIGTERM))
    }
}
