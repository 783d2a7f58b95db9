//! A mounted file system, from INIT to the last reply.

use std::io;
use std::path::Path;
use std::sync::Arc;

use zerocopy::IntoBytes;

use super::abi::{InHeader, op};
use super::buffer::Buffer;
use super::crew::{Crew, End};
use super::device::Device;
use super::dispatch::Server;
use super::errno::Errno;
use super::fs::FileSystem;
use super::interrupt::Interrupts;
use super::letterbox::Letterboxes;
use super::message::Message;
use super::mount::{Mount, MountOptions};
use super::negotiate::{Features, Offer, Terms};
use super::notify::Notifier;
use super::rings::{self, Prepared};
use super::transport::Transport;
use super::watch;
use super::workers::{Threads, Workers};

/// How to serve a mount.
#[derive(Clone, Copy, Debug, Default)]
pub struct Config {
    /// Terms to ask the kernel for.
    pub terms: Terms,
    /// Threads to serve with.
    pub threads: Threads,
    /// How requests get here.
    pub transport: Transport,
}

/// A file system being served. It goes on until it is unmounted, by whomever.
///
/// Dropping a session that was mounted by [`Session::mount`] unmounts it lazily.
pub struct Session {
    device: Arc<Device>,
    terms: Terms,
    end: Arc<End>,
    mount: Option<Mount>,
}

impl Session {
    /// Mounts `fs` on a directory and serves it. When this returns, INIT is done.
    ///
    /// # Errors
    /// Those of [`Mount::new`] and [`Session::serve`]; nothing stays mounted.
    pub fn mount(
        fs: impl FileSystem,
        mountpoint: &Path,
        options: &MountOptions,
        config: Config,
    ) -> io::Result<Session> {
        let (mount, device) = Mount::new(mountpoint, options)?;
        match Session::serve(fs, device, config) {
            Ok(mut session) => {
                session.mount = Some(mount);
                Ok(session)
            }
            Err(error) => {
                // The kernel may wait for rings that could not be started. Either fails if it is
                // gone already.
                let _ = mount.abort();
                let _ = mount.unmount(true);
                Err(error)
            }
        }
    }

    /// Serves `fs` on a device that has been mounted and not yet initialised.
    ///
    /// # Errors
    /// `EPROTO` if the kernel is too old, `ENODEV` if it was unmounted already, what
    /// [`FileSystem::init`] answers, or failure to start threads.
    pub fn serve(fs: impl FileSystem, device: Device, config: Config) -> io::Result<Session> {
        let device = Arc::new(device);
        let threads = config.threads.at_least_one();
        let (terms, rings) = initialise(&fs, &device, Config { threads, ..config })?;
        Session::start(fs, device, terms, threads, rings)
    }

    /// Serves `fs` on a device that another process has mounted as `mount`, has initialised to the `terms`
    /// it found by [`Session::terms`], and has left. `init` is not called. Requests that the other process
    /// left unanswered come again, the highest bit of their numbers set.
    ///
    /// # Errors
    /// `EOPNOTSUPP` if requests came through io_uring, whose rings have died with their process;
    /// failure to start threads, `EINVAL` from a kernel that cannot send requests again.
    pub fn resume(
        fs: impl FileSystem,
        mount: Mount,
        device: Arc<Device>,
        terms: Terms,
        threads: Threads,
    ) -> io::Result<Session> {
        if terms.features.contains(Features::OVER_IO_URING) {
            return Err(Errno::EOPNOTSUPP.into());
        }
        // Before anybody reads: what is being served already would be sent again, too.
        match Notifier::new(device.clone()).resend() {
            // It was unmounted meanwhile, which the workers will find, too.
            Err(error) if error.raw_os_error() == Some(libc::ENOTCONN) => {}
            other => other?,
        }
        let mut session = Session::start(fs, device, terms, threads.at_least_one(), None)?;
        session.mount = Some(mount);
        Ok(session)
    }

    fn start(
        fs: impl FileSystem,
        device: Arc<Device>,
        terms: Terms,
        threads: Threads,
        rings: Option<Prepared>,
    ) -> io::Result<Session> {
        // With rings the device has interrupts and what needs no answer only, unless they fail.
        let readers = Threads { spare: if rings.is_some() { 1 } else { threads.spare }, ..threads };
        let max = threads.max + rings.as_ref().map_or(0, Prepared::max_threads);
        let letterboxes = |rings: &Prepared| {
            (0..rings.queues()).map(|_| Letterboxes::new(rings.max_deferred())).collect()
        };
        let letterboxes = rings.as_ref().map(letterboxes).unwrap_or_default();
        let interrupts = Interrupts::new(max, rings.is_some(), watch::is_ending);
        let server = Server { fs, terms, interrupts };
        let crew = Crew::new(server, device.clone(), max, letterboxes);
        Workers::start(crew.clone(), readers)?;
        if let Some(rings) = rings {
            rings::start(&crew, rings)?;
        }
        watch::watch(&crew)?;
        Ok(Session { device, terms, end: crew.end(), mount: None })
    }

    /// The terms in force.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// The device, for passthrough and for keeping the connection alive elsewhere.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Sends notifications to the kernel.
    pub fn notifier(&self) -> Notifier {
        Notifier::new(self.device.clone())
    }

    /// The mount, if it was made by [`Session::mount`].
    pub fn mounted(&self) -> Option<&Mount> {
        self.mount.as_ref()
    }

    /// Waits until it is unmounted and the last worker has ended.
    pub fn wait(&self) {
        self.end.wait();
    }

    /// Unmounts and waits for the end.
    ///
    /// # Errors
    /// Those of [`Mount::unmount`]; the session goes on then. `EINVAL` if it was not mounted by
    /// [`Session::mount`].
    pub fn unmount(&mut self) -> io::Result<()> {
        let mount = self.mount.as_ref().ok_or(Errno::EINVAL)?;
        mount.unmount(false)?;
        self.mount = None;
        self.wait();
        Ok(())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let Some(mount) = self.mount.take() else { return };
        if self.end.reached() {
            return; // unmounted by someone else; what is mounted there now is not ours
        }
        // Not waited for: with `lazy` the end comes when the last user leaves.
        if let Err(error) = mount.unmount(true) {
            tracing::debug!(mountpoint = %mount.mountpoint().display(), %error, "not unmounted");
        }
    }
}

/// Reads and answers INIT.
fn initialise(
    fs: &impl FileSystem,
    device: &Arc<Device>,
    config: Config,
) -> io::Result<(Terms, Option<Prepared>)> {
    let mut buffer = Buffer::new(config.terms.max_write as usize);
    loop {
        let length = match device.receive(buffer.incoming()) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            received => received?,
        };
        let message = Message::decode(buffer.split(length).0)?;
        let InHeader { opcode, unique, .. } = message.header;
        if opcode != op::INIT {
            // Nothing comes before INIT unless this device is in use already.
            device.reply(unique, Some(Errno::EIO), &[])?;
            continue;
        }
        let settled = settle(fs, device, message, config);
        let (error, body) = match &settled {
            Ok((terms, offer, _)) => (None, Some(terms.encode(offer))),
            Err(error) => (Some(Errno::new(error.raw_os_error().unwrap_or(libc::EIO))), None),
        };
        device.reply(unique, error, body.as_ref().map_or(&[], |body| body.as_bytes()))?;
        let (terms, offer, rings) = settled?;
        tracing::debug!(?offer, ?terms, "FUSE connection initialised");
        return Ok((terms, rings));
    }
}

fn settle(
    fs: &impl FileSystem,
    device: &Arc<Device>,
    message: Message<'_>,
    config: Config,
) -> io::Result<(Terms, Offer, Option<Prepared>)> {
    let offer = Offer::decode(message.args.rest())?;
    let mut terms = config.terms;
    fs.init(&offer, &mut terms, device)?;
    terms.features |= Features::OVER_IO_URING;
    terms.settle(&offer);
    let rings = match config.transport.wants_rings(terms.features)? {
        false => None,
        true => match rings::prepare(device, terms.max_write) {
            Err(error) if config.transport == Transport::Auto => {
                tracing::info!(%error, "io_uring cannot be used; reading /dev/fuse instead");
                None
            }
            prepared => Some(prepared?),
        },
    };
    if rings.is_none() {
        terms.features = terms.features & !Features::OVER_IO_URING;
    }
    Ok((terms, offer, rings))
}
