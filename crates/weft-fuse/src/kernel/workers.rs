//! The threads that serve requests from `/dev/fuse`.
//!
//! Each worker reads a request, runs it to its end and replies, with a buffer of its own and no
//! hand-over to another thread. When the last waiting worker takes up a request another one is
//! started, so that blocked operations delay nobody; workers too many end themselves.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::buffer::Buffer;
use super::crew::Crew;
use super::device::Device;
use super::dispatch::{Origin, Outcome};
use super::fs::FileSystem;

/// Requests in a row after which a worker has found enough others idle that it ends. Too many
/// idle workers are slow, since the kernel wakes them in turn: none of them stays warm.
const PATIENCE: u32 = 500;

/// How many threads serve a mount that reads `/dev/fuse`.
#[derive(Clone, Copy, Debug)]
pub struct Threads {
    /// Workers kept waiting for requests, at least 1; also the number to start with.
    pub spare: usize,
    /// Most workers at once, so the most operations that can block before new ones wait.
    pub max: usize,
    /// Each worker reads from a channel of its own instead of one shared by all.
    pub clone_channel: bool,
    /// Memory for requests is there before they are read. Otherwise a process that is killed while it reads
    /// one may have it answered with `EIO`, instead of leaving it to a successor.
    pub resident: bool,
}

impl Threads {
    /// With what serving takes at the least.
    pub(crate) fn at_least_one(self) -> Threads {
        let spare = self.spare.max(1);
        Threads { spare, max: self.max.max(spare), ..self }
    }
}

impl Default for Threads {
    fn default() -> Threads {
        Threads { spare: 2, max: 64, clone_channel: false, resident: false }
    }
}

/// The workers of a session that read `/dev/fuse`.
pub(crate) struct Workers<F> {
    crew: Arc<Crew<F>>,
    threads: Threads,
    /// Workers waiting for a request, or about to.
    idle: AtomicUsize,
}

impl<F: FileSystem> Workers<F> {
    /// Starts the first workers.
    pub(crate) fn start(crew: Arc<Crew<F>>, threads: Threads) -> io::Result<()> {
        let workers = Arc::new(Workers { crew, threads, idle: AtomicUsize::new(0) });
        (0..threads.spare).try_for_each(|_| workers.hire())
    }

    /// Starts one more worker unless there are as many as there may be.
    fn hire(self: &Arc<Self>) -> io::Result<()> {
        let Some(number) = self.crew.join() else { return Ok(()) };
        let workers = self.clone();
        // Counted from now on, lest the next request starts yet another.
        self.idle.fetch_add(1, Relaxed);
        let thread = std::thread::Builder::new().name(format!("weft-fuse-{number}"));
        let hired = thread.spawn(move || workers.work(number));
        hired.map(drop).inspect_err(|_| {
            self.idle.fetch_sub(1, Relaxed);
            self.crew.decline(number);
        })
    }

    /// Life of a worker, which starts out counted as idle.
    fn work(self: Arc<Self>, number: usize) {
        let device = self.channel();
        let mut buffer = Buffer::new(self.crew.server.terms.max_write as usize);
        if self.threads.resident {
            buffer.touch();
        }
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
                    self.crew.disconnect();
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
        self.crew.leave(number);
    }

    /// The channel a worker reads from.
    fn channel(&self) -> Arc<Device> {
        if !self.threads.clone_channel {
            return self.crew.device.clone();
        }
        self.crew.device.clone_channel().map(Arc::new).unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot clone the FUSE channel, sharing it");
            self.crew.device.clone()
        })
    }

    fn serve(&self, number: usize, device: &Arc<Device>, buffer: &mut Buffer, length: usize) {
        let (bytes, out) = buffer.split(length);
        let origin = Origin::Device(device);
        let Some((header, outcome)) = self.crew.serve(number, origin, bytes, out) else { return };
        let sent = match outcome {
            Outcome::Reply(length) => device.reply(header.unique, None, &out[..length]),
            Outcome::Error(errno) => device.reply(header.unique, Some(errno), &[]),
            Outcome::Silent | Outcome::Deferred => Ok(()),
        };
        self.crew.replied(number);
        if let Err(error) = sent {
            self.crew.not_replied(&header, outcome, &error);
        }
    }
}

/// Errors of reading the device after which reading goes on: `ENOENT` is a request withdrawn
/// while it was being read.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::ENOENT))
}
