//! The threads that serve requests from io_uring: FUSE over io_uring, since Linux 6.14.
//!
//! The kernel has a queue for each CPU, and puts a request into that of the CPU its caller runs on.
//! Each worker has a place in one queue ([`Entry`]) and stays on that queue's CPU, so that a
//! request is served where its caller sleeps; answering it and waiting for the next is one system
//! call. As with `/dev/fuse` a worker runs its request to the end, whatever it waits for, and when
//! the last one waiting in a queue takes up a request another one is started. So a place that waits
//! for requests never belongs to a thread that does anything else.
//!
//! **Requests in the queue.** A request that finds no place free waits in the kernel until some
//! place of the queue is answered, *not* until a new one is registered. So a new worker *prods* its
//! queue: it makes the kernel send a request that is answered at once
//! (`NOTIFY_RETRIEVE`), whose place then gets the first that waits. The worker that got it this
//! way prods again, until the queue is empty or has no place left, upon which it gets a new one.
//! Design: `docs/design/0005-fuse-transport.md`.
//!
//! A place cannot be taken back, so workers stay until the end of the mount.

mod cpus;
mod entry;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use zerocopy::IntoBytes;

use self::entry::Entry;
use super::abi::{self, RetrieveOut, notify, op};
use super::crew::Crew;
use super::device::Device;
use super::dispatch::{Origin, Outcome};
use super::errno::Errno;
use super::fs::FileSystem;
use super::letterbox::MAX_WAITING;
use super::workers::Threads;

/// The first places of all queues, not yet known to the kernel.
pub(crate) struct Prepared {
    entries: Vec<Entry>,
    cpus: Vec<usize>,
}

/// Makes places in all queues: `spare` for each CPU, one for those that are offline. All that may
/// fail is tried here, since the kernel does not serve at all once it waits for rings.
///
/// # Errors
/// Those of `io_uring_setup(2)`, and `EINVAL` if this process is kept from a CPU.
pub(crate) fn prepare(device: &Arc<Device>, spare: usize, max_write: u32) -> io::Result<Prepared> {
    let (cpus, online) = (cpus::possible()?, cpus::online()?);
    let pinned = std::thread::scope(|scope| {
        scope.spawn(|| online.iter().try_for_each(|&cpu| cpus::pin(cpu))).join()
    });
    pinned.unwrap_or_else(|_| Err(Errno::EIO.into()))?;
    let mut entries = Vec::new();
    for (queue, cpu) in cpus.iter().enumerate() {
        for _ in 0..if online.contains(cpu) { spare } else { 1 } {
            entries.push(Entry::new(device.clone(), queue as u16, max_write as usize)?);
        }
    }
    Ok(Prepared { entries, cpus })
}

impl Prepared {
    /// Most workers there may be: those to start with, or `threads.max` if that is more, and those
    /// that wait for deferred replies.
    pub(crate) fn max_workers(&self, threads: Threads) -> usize {
        self.entries.len().max(threads.max) + MAX_WAITING
    }
}

/// A queue of the kernel.
struct Queue {
    cpu: usize,
    /// Workers waiting for a request, or about to.
    idle: AtomicUsize,
}

/// The workers of a session that have places in queues.
pub(crate) struct Rings<F> {
    crew: Arc<Crew<F>>,
    queues: Vec<Queue>,
}

impl<F: FileSystem> Rings<F> {
    /// Starts the first workers.
    ///
    /// # Errors
    /// Those of starting threads. The kernel waits for ever then: the mount must be ended.
    pub(crate) fn start(crew: Arc<Crew<F>>, prepared: Prepared) -> io::Result<()> {
        let queue = |&cpu: &usize| Queue { cpu, idle: AtomicUsize::new(0) };
        let queues = prepared.cpus.iter().map(queue).collect();
        let rings = Arc::new(Rings { crew, queues });
        prepared.entries.into_iter().try_for_each(|entry| rings.employ(entry.queue(), Some(entry)))
    }

    /// Starts one more worker unless there are as many as there may be. Without an `entry` it makes
    /// its own, and prods the queue.
    fn employ(self: &Arc<Self>, queue: usize, entry: Option<Entry>) -> io::Result<()> {
        let Some(number) = self.crew.join() else { return Ok(()) };
        let rings = self.clone();
        // Counted from now on, lest the next request starts yet another.
        self.queues[queue].idle.fetch_add(1, Relaxed);
        let thread = std::thread::Builder::new().name(format!("weft-ring{queue}-{number}"));
        let employed = thread.spawn(move || {
            let ended = rings.work(number, queue, entry);
            rings.queues[queue].idle.fetch_sub(1, Relaxed);
            rings.explain(queue, &ended);
            rings.crew.leave(number);
        });
        employed.map(drop).inspect_err(|_| {
            self.queues[queue].idle.fetch_sub(1, Relaxed);
            self.crew.decline(number);
        })
    }

    /// Life of a worker, counted as idle when it begins and when it ends.
    fn work(self: &Arc<Self>, number: usize, at: usize, entry: Option<Entry>) -> io::Result<()> {
        let queue = &self.queues[at];
        // Those of CPUs that are offline stay where they are.
        let _ = cpus::pin(queue.cpu);
        let is_late = entry.is_none();
        let max_write = self.crew.server.terms.max_write as usize;
        let made =
            entry.map_or_else(|| Entry::new(self.crew.device.clone(), at as u16, max_write), Ok);
        let mut entry = made?;
        entry.register()?;
        if is_late {
            self.prod();
        }
        let mut is_pulled = false;
        loop {
            entry.receive()?;
            let is_last = queue.idle.fetch_sub(1, Relaxed) == 1;
            if is_last && let Err(error) = self.employ(at, None) {
                tracing::warn!(%error, "cannot start another FUSE worker");
            }
            let was_prodded = self.serve(number, &mut entry, is_pulled && !is_last);
            queue.idle.fetch_add(1, Relaxed);
            is_pulled = was_prodded? && {
                entry.submit()?;
                entry.has_arrived()
            };
        }
    }

    /// Serves the request in `entry`, prodding the queue first if `prod` says so and the request is
    /// not a prod itself. Whether it was one. The reply is handed over with the next call, unless the
    /// file system waits for that.
    fn serve(&self, number: usize, entry: &mut Entry, prod: bool) -> io::Result<bool> {
        let (bytes, out) = match entry.request() {
            Ok(request) => request,
            Err(errno) => return entry.answer(Err(errno)).map(|()| false),
        };
        let crew = &*self.crew;
        let origin = Origin::Ring(&crew.letterboxes);
        let is_prod = super::message::opcode(bytes) == Some(op::NOTIFY_REPLY);
        if prod && !is_prod {
            self.prod();
        }
        let Some((header, outcome)) = crew.serve(number, origin, bytes, out) else {
            return entry.answer(Err(Errno::EINVAL)).map(|()| false);
        };
        let result = match outcome {
            Outcome::Reply(length) => Ok(length),
            Outcome::Error(errno) => Err(errno),
            Outcome::Silent => Ok(0),
            Outcome::Deferred => match crew.letterboxes.wait(header.unique) {
                Some(reply) => reply.map(|()| 0),
                None => return Err(Errno::ENOTCONN.into()),
            },
        };
        entry.answer(result)?;
        if crew.server.fs.awaits_reply() {
            entry.submit()?;
        }
        crew.replied(number);
        Ok(is_prod)
    }

    /// Has the kernel send a request to the queue of this CPU.
    fn prod(&self) {
        let nothing = RetrieveOut { nodeid: abi::ROOT_ID, ..RetrieveOut::default() };
        if let Err(error) = self.crew.device.notify(notify::RETRIEVE, &[nothing.as_bytes()]) {
            tracing::debug!(%error, "queue not prodded");
        }
    }

    /// Says why a worker has ended, unless the mount has.
    fn explain(&self, queue: usize, ended: &io::Result<()>) {
        let Err(error) = ended else { return };
        let usual = [libc::ENOTCONN, libc::ECONNABORTED, libc::ENODEV];
        if !error.raw_os_error().is_some_and(|code| usual.contains(&code)) {
            tracing::warn!(queue, %error, "FUSE ring worker ended");
        }
    }
}
