//! The threads that serve requests from io_uring: FUSE over io_uring, since Linux 6.14.
//!
//! The kernel has a queue for each CPU, and puts a request into that of the CPU its caller runs on.
//! The daemon registers places in it. A request takes the place that was free last, and keeps it
//! until it is answered; answering it and waiting for the next is one system call.
//!
//! Each queue begins with a *reception*: a thread with [`DEPTH`] places that serves nothing. A
//! request that comes there is given to a new *worker*, together with its place. The worker runs it
//! to its end, whatever it waits for, answers it through a ring of its own, and so keeps the place,
//! which is now the one that was free last. So a place that waits for requests never belongs to a
//! thread that does anything else, callers that come one at a time always meet the same
//! worker, and there are as many workers as there have ever been requests at once.
//!
//! Workers stay on the CPU of their queue, so that a request is served where its caller sleeps.
//! The kernel has no command to take a place back, so they stay until the end of the mount.
//! Design: `docs/design/0006-fuse-transport.md`.

mod cpus;
mod place;
mod placement;
mod ring;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use self::place::Place;
use self::placement::{Placement, Side};
use self::ring::Ring;
use super::crew::Crew;
use super::device::Device;
use super::dispatch::{Origin, Outcome};
use super::errno::{Errno, Result};
use super::fs::FileSystem;

/// Places in each queue, so the most requests of callers on one CPU at once; more wait in the kernel
/// for their turn. A place that was never used takes half a KiB of memory in the kernel.
const DEPTH: usize = 512;

/// Places kept from requests that wait for locks, for which others may have to come first.
const RESERVE: usize = 64;

/// The receptions of all queues, not yet known to the kernel.
pub(crate) struct Prepared {
    receptions: Vec<Reception>,
    online: Vec<usize>,
}

/// The places of a queue that no worker has.
struct Reception {
    cpu: usize,
    ring: Ring,
    places: Vec<Place>,
}

/// Makes all places. All that may fail is tried here, since the kernel does not serve at all
/// once it waits for rings.
///
/// # Errors
/// Those of `io_uring_setup(2)`, and `EINVAL` if this process is kept from a CPU.
pub(crate) fn prepare(device: &Arc<Device>, max_write: u32) -> io::Result<Prepared> {
    let (online, possible) = (cpus::online()?, cpus::possible()?);
    // Each worker has a ring, and each ring is an open file.
    ring::allow_more_files(possible.len() * DEPTH);
    let pinned = std::thread::scope(|scope| {
        scope.spawn(|| online.iter().try_for_each(|&cpu| cpus::pin(cpu))).join()
    });
    pinned.unwrap_or_else(|_| Err(Errno::EIO.into()))?;
    let reception = |(queue, cpu)| {
        let places = Place::many(DEPTH, max_write as usize)?;
        Ok(Reception { cpu, ring: Ring::new(device.clone(), queue as u16, DEPTH)?, places })
    };
    let receptions = possible.into_iter().enumerate().map(reception);
    let receptions = receptions.collect::<io::Result<_>>()?;
    Ok(Prepared { receptions, online })
}

impl Prepared {
    /// Number of queues.
    pub(crate) fn queues(&self) -> usize {
        self.receptions.len()
    }

    /// Most threads there may be.
    pub(crate) fn max_threads(&self) -> usize {
        self.queues() * (DEPTH + 1)
    }

    /// Most requests of a queue that may wait for deferred replies at once.
    pub(crate) fn max_deferred(&self) -> usize {
        DEPTH - RESERVE
    }
}

/// The threads of one queue.
struct Queue<F> {
    crew: Arc<Crew<F>>,
    cpu: usize,
    online: Arc<[usize]>,
    number: usize,
    /// Requests that workers have taken.
    taken: AtomicU64,
}

/// Starts the receptions.
///
/// # Errors
/// Those of starting threads. The kernel waits for ever then: the mount must be ended.
pub(crate) fn start<F: FileSystem>(crew: &Arc<Crew<F>>, prepared: Prepared) -> io::Result<()> {
    let online: Arc<[usize]> = prepared.online.into();
    for (number, reception) in prepared.receptions.into_iter().enumerate() {
        let queue = Arc::new(Queue {
            crew: crew.clone(),
            cpu: reception.cpu,
            online: online.clone(),
            number,
            taken: AtomicU64::new(0),
        });
        let name = format!("weft-reception{number}");
        queue.clone().employ(name, move |_| queue.receive(reception))?;
    }
    Ok(())
}

impl<F: FileSystem> Queue<F> {
    /// Starts a thread on the queue's CPU. It is given its number in the crew.
    fn employ(
        self: Arc<Self>,
        name: String,
        work: impl FnOnce(usize) -> io::Result<()> + Send + 'static,
    ) -> io::Result<()> {
        let number = self.crew.join().ok_or(Errno::EAGAIN)?;
        let queue = self.clone();
        let employed = std::thread::Builder::new().name(name).spawn(move || {
            // Those of CPUs that are offline stay where they are.
            let _ = cpus::pin(queue.cpu);
            queue.explain(work(number));
            queue.crew.leave(number);
        });
        employed.map(drop).inspect_err(|_| self.crew.decline(number))
    }

    /// Says why a thread has ended, unless the mount has.
    fn explain(&self, ended: io::Result<()>) {
        let Err(error) = ended else { return };
        let usual = [libc::ENOTCONN, libc::ECONNABORTED, libc::ENODEV];
        if !error.raw_os_error().is_some_and(|code| usual.contains(&code)) {
            tracing::warn!(queue = self.number, %error, "FUSE ring ended");
        }
    }

    /// Life of the reception: until workers have all places, or the mount has ended.
    fn receive(self: Arc<Self>, reception: Reception) -> io::Result<()> {
        let Reception { mut ring, mut places, .. } = reception;
        ring.enable()?;
        ring.register(&mut places)?;
        let mut places: Vec<Option<Place>> = places.into_iter().map(Some).collect();
        let (mut left, mut ended) = (places.len(), Ok(()));
        while left > 0 {
            let (number, result) = ring.receive()?;
            let Some(mut place) = places[number].take() else { continue };
            left -= 1;
            if result.is_err() {
                place.is_known = false;
                ended = result;
                continue;
            }
            if let Err((mut place, error)) = self.clone().hand_over(place) {
                tracing::warn!(%error, "cannot start another FUSE worker; a request fails");
                let _ = place.request();
                place.answer(Err(Errno::ENOMEM));
                ring.answer(&place, number)?;
                places[number] = Some(place);
                left += 1;
            }
        }
        ended
    }

    /// Gives a place with a request to a new worker. If there can be none, it is answered with the
    /// reason.
    fn hand_over(self: Arc<Self>, place: Place) -> std::result::Result<(), (Place, io::Error)> {
        let ring = match Ring::new(self.crew.device.clone(), self.number as u16, 1) {
            Ok(ring) => ring,
            Err(error) => return Err((place, error)),
        };
        // In a slot, lest the place is lost with the thread that cannot be started.
        let slot = Arc::new(parking_lot::Mutex::new(Some(place)));
        let (taken, queue) = (slot.clone(), self.clone());
        let work = move |number| match taken.lock().take() {
            Some(place) => queue.work(number, ring, place),
            None => Ok(()),
        };
        let name = format!("weft-ring{}", self.number);
        self.employ(name, work).map_err(|error| {
            let place = slot.lock().take().expect("only a thread that was started takes it");
            (place, error)
        })
    }

    /// Life of a worker, from the request that it was made for.
    fn work(&self, number: usize, mut ring: Ring, mut place: Place) -> io::Result<()> {
        ring.enable()?;
        let mut placement = Placement::new(self.taken.fetch_add(1, Relaxed));
        loop {
            self.serve(number, &mut ring, &mut place)?;
            let (_, result) = ring.receive()?;
            place.is_known = result.is_ok();
            result?;
            // Where a thread may not be, it is not.
            let _ = match placement.take(self.taken.fetch_add(1, Relaxed)) {
                Some(Side::Home) => cpus::pin(self.cpu),
                Some(Side::Anywhere) => cpus::keep_on(&self.online),
                None => Ok(()),
            };
        }
    }

    /// Serves the request in `place`. The reply is handed over by what comes next, unless the file
    /// system waits for that.
    fn serve(&self, number: usize, ring: &mut Ring, place: &mut Place) -> io::Result<()> {
        let crew = &*self.crew;
        let result = match place.request() {
            Ok((bytes, out)) => self.result(number, bytes, out)?,
            Err(errno) => Err(errno),
        };
        place.answer(result);
        ring.answer(place, 0)?;
        if crew.server.fs.awaits_reply() {
            ring.submit()?;
        }
        crew.replied(number);
        Ok(())
    }

    /// The length of the reply to a request, or its error.
    ///
    /// # Errors
    /// `ENOTCONN` if nobody is there to be answered any more.
    fn result(&self, number: usize, bytes: &[u8], out: &mut [u8]) -> io::Result<Result<usize>> {
        let letterboxes = &self.crew.letterboxes[self.number];
        let served = self.crew.serve(number, Origin::Ring(letterboxes), bytes, out);
        let Some((header, outcome)) = served else { return Ok(Err(Errno::EINVAL)) };
        Ok(match outcome {
            Outcome::Reply(length) => Ok(length),
            Outcome::Error(errno) => Err(errno),
            Outcome::Silent => Ok(0),
            Outcome::Deferred => match letterboxes.wait(header.unique) {
                Some(reply) => reply.map(|()| 0),
                None => return Err(Errno::ENOTCONN.into()),
            },
        })
    }
}
