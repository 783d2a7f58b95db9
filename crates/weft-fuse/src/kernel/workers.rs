//! The threads that serve requests from `/dev/fuse`.
//!
//! Each worker reads a request, runs it to its end and replies, with a buffer of its own and no
//! hand-over to another thread. When the last waiting worker takes up a request another one is
//! started, so that blocked operations delay nobody; workers too many end themselves.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use parking_lot::{Condvar, Mutex};
use zerocopy::FromBytes;

use super::abi::InHeader;
use super::buffer::Buffer;
use super::device::Device;
use super::dispatch::{Origin, Outcome, Server};
use super::fs::FileSystem;
use super::message::Message;

/// Requests in a row after which a worker has found enough others idle that it ends. Too many
/// idle workers are slow, since the kernel wakes them in turn: none of them stays warm.
const PATIENCE: u32 = 500;

/// How many threads serve a mount.
#[derive(Clone, Copy, Debug)]
pub struct Threads {
    /// Workers kept waiting for requests, at least 1; also the number to start with.
    pub spare: usize,
    /// Most workers at once, so the most operations that can block before new ones wait.
    pub max: usize,
    /// Each worker reads from a channel of its own instead of one shared by all.
    pub clone_channel: bool,
}

impl Default for Threads {
    fn default() -> Threads {
        Threads { spare: 2, max: 64, clone_channel: false }
    }
}

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

/// All workers of a session.
pub(crate) struct Workers<F> {
    server: Server<F>,
    device: Arc<Device>,
    threads: Threads,
    /// Numbers of the workers that do not exist at present.
    vacant: Mutex<Vec<usize>>,
    /// Workers waiting for a request, or about to.
    idle: AtomicUsize,
    end: Arc<End>,
}

impl<F: FileSystem> Workers<F> {
    /// Starts the first workers; the answer tells when the last has ended. `threads.max` must
    /// not exceed the workers that `server.interrupts` was made for.
    pub(crate) fn start(
        server: Server<F>,
        device: Arc<Device>,
        threads: Threads,
    ) -> io::Result<Arc<End>> {
        let end = Arc::new(End::default());
        let vacant = Mutex::new((0..threads.max).rev().collect());
        let idle = AtomicUsize::new(0);
        let workers = Workers { server, device, threads, vacant, idle, end: end.clone() };
        let workers = Arc::new(workers);
        for _ in 0..threads.spare {
            workers.hire()?;
        }
        Ok(end)
    }

    /// Starts one more worker unless there are as many as there may be.
    fn hire(self: &Arc<Self>) -> io::Result<()> {
        let Some(number) = self.vacant.lock().pop() else { return Ok(()) };
        let workers = self.clone();
        // Counted from now on, lest the next request starts yet another.
        self.idle.fetch_add(1, Relaxed);
        let thread = std::thread::Builder::new().name(format!("weft-fuse-{number}"));
        let hired = thread.spawn(move || workers.work(number));
        hired.map(drop).inspect_err(|_| {
            self.idle.fetch_sub(1, Relaxed);
            self.vacant.lock().push(number);
        })
    }

    /// Life of a worker, which starts out counted as idle.
    fn work(self: Arc<Self>, number: usize) {
        let device = self.channel();
        let mut buffer = Buffer::new(self.server.terms.max_write as usize);
        let mut superfluous = 0;
        loop {
            let received = device.receive(buffer.incoming());
            let last = self.idle.fetch_sub(1, Relaxed) == 1;
            match received {
                Ok(length) => {
                    if last && let Err(error) = self.hire() {
                        tracing::warn!(%error, "cannot start another FUSE worker");
                    }
                    self.serve(number, &device, &mut buffer, length);
                }
                Err(error) if is_passing(&error) => {}
                Err(error) => {
                    if error.raw_os_error() != Some(libc::ENODEV) {
                        tracing::warn!(%error, "FUSE connection ended");
                    }
                    break;
                }
            }
            let others = self.idle.fetch_add(1, Relaxed);
            superfluous = if others >= self.threads.spare { superfluous + 1 } else { 0 };
            if superfluous == PATIENCE {
                self.idle.fetch_sub(1, Relaxed);
                break;
            }
        }
        self.leave(number);
    }

    /// The channel a worker reads from.
    fn channel(&self) -> Arc<Device> {
        if !self.threads.clone_channel {
            return self.device.clone();
        }
        self.device.clone_channel().map(Arc::new).unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot clone the FUSE channel, sharing it");
            self.device.clone()
        })
    }

    fn serve(&self, number: usize, device: &Arc<Device>, buffer: &mut Buffer, length: usize) {
        let (bytes, out) = buffer.split(length);
        // All that can go wrong with a header too short is to be unable to answer.
        let Ok((header, _)) = InHeader::read_from_prefix(bytes) else { return };
        let slot = self.server.interrupts.slot(number);
        slot.set(header.unique);
        let outcome = match Message::decode(bytes) {
            Ok(message) => self.server.serve(message, Origin { device, slot }, out),
            Err(errno) => Outcome::Error(errno),
        };
        let sent = match outcome {
            Outcome::Reply(length) => device.reply(header.unique, None, &out[..length]),
            Outcome::Error(errno) => device.reply(header.unique, Some(errno), &[]),
            Outcome::Silent => Ok(()),
        };
        self.server.fs.replied();
        slot.set(0);
        // ENOENT: the caller was killed meanwhile and nobody waits for the reply.
        if let Err(error) = sent
            && error.raw_os_error() != Some(libc::ENOENT)
        {
            tracing::debug!(opcode = header.opcode, ?outcome, %error, "reply not delivered");
        }
    }

    /// A worker ends; the last one ends the session.
    fn leave(&self, number: usize) {
        let mut vacant = self.vacant.lock();
        vacant.push(number);
        let last = vacant.len() == self.threads.max;
        drop(vacant);
        if last {
            self.end.set(|| self.server.fs.destroy());
        }
    }
}

/// Errors of reading the device after which reading goes on: `ENOENT` is a request withdrawn
/// while it was being read.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::ENOENT))
}
