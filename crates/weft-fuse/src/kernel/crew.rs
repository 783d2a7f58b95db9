//! What all workers of a session share, wherever they get their requests from.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use zerocopy::FromBytes;

use super::abi::InHeader;
use super::device::Device;
use super::dispatch::{Origin, Outcome, Server};
use super::errno::Errno;
use super::fs::FileSystem;
use super::letterbox::Letterboxes;
use super::message::Message;

/// Tells when a session has ended.
#[derive(Default)]
pub(crate) struct End {
    ended: Mutex<bool>,
    changed: Condvar,
}

impl End {
    /// Waits for the end.
    pub(crate) fn wait(&self) {
        let mut ended = self.ended.lock();
        self.changed.wait_while(&mut ended, |ended| !*ended);
    }

    /// Waits for the end for so long; whether it has come.
    pub(crate) fn wait_for(&self, patience: Duration) -> bool {
        let mut ended = self.ended.lock();
        self.changed.wait_while_for(&mut ended, |ended| !*ended, patience);
        *ended
    }

    /// Whether it has come.
    pub(crate) fn reached(&self) -> bool {
        *self.ended.lock()
    }

    /// Marks the end, after a last act unless it came before: a mount that is gone at once can
    /// lose all its workers while they are still being started.
    fn set(&self, last_act: impl FnOnce()) {
        let mut ended = self.ended.lock();
        if !*ended {
            last_act();
            *ended = true;
            self.changed.notify_all();
        }
    }
}

/// The workers of a session, each with a number of its own.
pub(crate) struct Crew<F> {
    pub server: Server<F>,
    /// The connection; notifications and interrupts go through it even if requests do not.
    pub device: Arc<Device>,
    /// Replies that rings wait for, by queue.
    pub letterboxes: Vec<Letterboxes>,
    max: usize,
    /// Numbers of the workers that do not exist at present.
    vacant: Mutex<Vec<usize>>,
    end: Arc<End>,
}

impl<F: FileSystem> Crew<F> {
    /// A crew without workers, of at most `max`, for which `server.interrupts` must be made.
    pub(crate) fn new(
        server: Server<F>,
        device: Arc<Device>,
        max: usize,
        letterboxes: Vec<Letterboxes>,
    ) -> Arc<Crew<F>> {
        Arc::new(Crew {
            server,
            device,
            letterboxes,
            max,
            vacant: Mutex::new((0..max).rev().collect()),
            end: Arc::default(),
        })
    }

    /// Tells when the last worker has left.
    pub(crate) fn end(&self) -> Arc<End> {
        self.end.clone()
    }

    /// Takes on one more worker, which gets a number unless there are as many as there may be.
    pub(crate) fn join(&self) -> Option<usize> {
        self.vacant.lock().pop()
    }

    /// A number that no worker has used is given back.
    pub(crate) fn decline(&self, number: usize) {
        self.vacant.lock().push(number);
    }

    /// A worker ends; the last one ends the session.
    pub(crate) fn leave(&self, number: usize) {
        let mut vacant = self.vacant.lock();
        vacant.push(number);
        let last = vacant.len() == self.max;
        drop(vacant);
        if last {
            self.end.set(|| self.server.fs.destroy());
        }
    }

    /// The kernel has ended the connection: there is nobody left to answer.
    pub(crate) fn disconnect(&self) {
        self.letterboxes.iter().for_each(Letterboxes::close);
    }

    /// Has worker `number` serve the request in `bytes`, with room for its reply in `out`. `None`
    /// if they are too short for a header, so that nothing can be answered. After the answer was
    /// handed to the kernel, [`Crew::replied`] must be called.
    pub(crate) fn serve(
        &self,
        number: usize,
        origin: Origin<'_>,
        bytes: &[u8],
        out: &mut [u8],
    ) -> Option<(InHeader, Outcome)> {
        let (header, _) = InHeader::read_from_prefix(bytes).ok()?;
        let slot = self.server.interrupts.begin(number, &header);
        let outcome = match Message::decode(bytes) {
            Ok(message) => self.server.serve(message, origin, slot, out),
            Err(errno) => Outcome::Error(errno),
        };
        Some((header, outcome))
    }

    /// Worker `number` has handed its answer to the kernel.
    pub(crate) fn replied(&self, number: usize) {
        self.server.fs.replied();
        self.server.interrupts.end(number);
    }

    /// Says that a reply could not be handed over, where that means something.
    pub(crate) fn not_replied(&self, header: &InHeader, outcome: Outcome, error: &std::io::Error) {
        // ENOENT: the caller was killed meanwhile and nobody waits for the reply.
        if error.raw_os_error() != Some(Errno::ENOENT.code()) {
            tracing::debug!(opcode = header.opcode, ?outcome, %error, "reply not delivered");
        }
    }
}
