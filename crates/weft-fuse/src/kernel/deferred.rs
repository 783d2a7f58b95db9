//! Replies that come later, from any thread.

use std::sync::Arc;

use super::device::Device;
use super::errno::{Errno, Result};
use super::interrupt::Interrupts;

/// The right and duty to answer one request, once. Dropped unanswered, it answers `EIO`.
pub struct Deferred {
    unique: u64,
    device: Arc<Device>,
    interrupts: Arc<Interrupts>,
    answered: bool,
}

impl Deferred {
    pub(crate) fn new(unique: u64, device: Arc<Device>, interrupts: Arc<Interrupts>) -> Deferred {
        interrupts.defer(unique);
        Deferred { unique, device, interrupts, answered: false }
    }

    /// Answers the request.
    pub fn send(mut self, result: Result<()>) {
        self.answer(result);
    }

    /// Whether the caller got a signal; the right answer then is `EINTR`, soon.
    pub fn interrupted(&self) -> bool {
        self.interrupts.deferred_interrupted(self.unique)
    }

    /// Has `callback` called when the caller gets a signal, on a thread of the session; at once,
    /// on this thread, if it has already. Only the last callback counts, and it is dropped
    /// uncalled when the request is answered.
    pub fn on_interrupt(&self, callback: impl FnOnce() + Send + 'static) {
        self.interrupts.on_interrupt(self.unique, Box::new(callback));
    }

    fn answer(&mut self, result: Result<()>) {
        self.answered = true;
        self.interrupts.answered(self.unique);
        let error = result.err();
        if let Err(failure) = self.device.reply(self.unique, error, &[]) {
            tracing::debug!(unique = self.unique, %failure, "deferred reply not delivered");
        }
    }
}

impl Drop for Deferred {
    fn drop(&mut self) {
        if !self.answered {
            self.answer(Err(Errno::EIO));
        }
    }
}
