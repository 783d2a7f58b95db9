//! Replies that come later, from any thread.

use std::sync::Arc;

use super::device::Device;
use super::errno::{Errno, Result};
use super::interrupt::Interrupts;
use super::letterbox::Letterbox;
use super::request::Request;

/// How a deferred reply gets to the kernel.
pub(crate) enum Way {
    /// Written to the device that the request came from.
    Device(Arc<Device>),
    /// Through the worker of the ring that the request came from.
    Letterbox(Arc<Letterbox>),
}

/// The right and duty to answer one request, once. Dropped unanswered, it answers `EIO`.
pub struct Deferred {
    unique: u64,
    way: Way,
    interrupts: Arc<Interrupts>,
    answered: bool,
}

impl Deferred {
    pub(crate) fn new(request: &Request<'_>, way: Way, interrupts: Arc<Interrupts>) -> Deferred {
        interrupts.defer(request);
        Deferred { unique: request.unique, way, interrupts, answered: false }
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
        match &self.way {
            Way::Letterbox(letterbox) => letterbox.put(result),
            Way::Device(device) => {
                if let Err(failure) = device.reply(self.unique, result.err(), &[]) {
                    tracing::debug!(unique = self.unique, %failure, "deferred reply not delivered");
                }
            }
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
