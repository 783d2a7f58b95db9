//! A mount in this process.

use super::book::{Kept, Record};
use super::options::MountOptions;
use super::table::find_mounted;
use crate::process::ProcessId;
use crate::signals::{Event, Events};
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use weft_client::{Client, ClientConfig};
use weft_fuse::door;
use weft_fuse::kernel::Mount;
use weft_model::Env;
use weft_rpc::registry::Registry;

/// A mount that is in use is waited for this long, then taken out of sight.
const BUSY_PATIENCE: Duration = Duration::from_secs(5);
/// Between two attempts to unmount.
const BUSY_POLL: Duration = Duration::from_millis(100);
/// After it is out of sight, its users have this long to finish what they are doing.
const END_PATIENCE: Duration = Duration::from_secs(5);

/// Between two looks whether to give up waiting for servers.
const STOP_POLL: Duration = Duration::from_millis(50);

/// What to mount.
pub struct Source {
    /// Addresses of the managers.
    pub managers: Vec<String>,
    /// Path within the volume.
    pub subtree: String,
    /// Targets of this process, which are called directly.
    pub registry: Option<Arc<Registry>>,
    /// The clock.
    pub env: Arc<dyn Env>,
}

/// A mount that this process serves.
pub struct LiveMount {
    client: Arc<Client>,
    mount: Mount,
    /// Says something, or closes, when the mount has ended.
    ended: Receiver<()>,
    _record: Kept,
}

impl LiveMount {
    /// Mounts on `dir`, which is made if need be. That it was unmounted by others is an event.
    ///
    /// # Errors
    /// Those of the cluster and of the kernel, and when a signal comes before the servers answer;
    /// nothing stays mounted.
    pub fn start(
        source: Source,
        dir: &Path,
        options: &MountOptions,
        events: &Events,
    ) -> anyhow::Result<LiveMount> {
        let (tell, told) = channel();
        let (dir, options, sender) = (dir.to_path_buf(), options.clone(), events.sender());
        // A hard mount may wait for ever, which must not keep the process from being stopped.
        let mounting = std::thread::Builder::new().name("weft-mounting".into());
        mounting.spawn(move || tell.send(LiveMount::mount(source, &dir, &options, sender)))?;
        let stopping = events.stopping();
        loop {
            match told.recv_timeout(STOP_POLL) {
                Ok(mounted) => return mounted,
                Err(RecvTimeoutError::Timeout) if !stopping.load(Ordering::SeqCst) => {}
                Err(_) => bail!("stopped while waiting for the servers"),
            }
        }
    }

    fn mount(
        source: Source,
        dir: &Path,
        options: &MountOptions,
        events: Sender<Event>,
    ) -> anyhow::Result<LiveMount> {
        let dir = prepare(dir)?;
        let config = ClientConfig {
            managers: source.managers.clone(),
            key: options.key.as_deref().map(crate::keys::read).transpose()?,
            host: host_name(),
            mountpoint: dir.display().to_string(),
            policy: options.policy,
            volume: options.volume.clone(),
            subtree: source.subtree.as_bytes().to_vec(),
            caches: options.caches,
            delegations: options.caches,
            writes_behind: options.caches
                && options.writes_behind.unwrap_or(source.registry.is_none()),
            max_pending: sixteenth_of_memory(),
            max_ahead: sixteenth_of_memory(),
            ahead_chunk: 0,
            polls_locks: false,
        };
        let client = Client::mount(config, source.registry, source.env)?;
        let mut door = options.door.clone();
        door.options.source = match source.managers.first() {
            Some(manager) => format!("{manager}:/{}", source.subtree.trim_start_matches('/')),
            None => "weft".into(),
        };
        let mounted = door::mount(client.clone(), &dir, door)
            .map_err(explained)
            .with_context(|| format!("cannot mount on dir={}", dir.display()));
        let mounted = match mounted {
            Ok(mounted) => mounted,
            Err(error) => {
                // The failed mount is what there is to tell; the session ends with its lease.
                let _ = client.unmount();
                return Err(error);
            }
        };
        let Some(mount) = mounted.mount().cloned() else { bail!("the mount has ended at once") };
        let record = note(&dir, &source.managers, options.key.as_deref(), &source.subtree)?;
        let (tell, ended) = channel();
        let unmounted = dir.clone();
        std::thread::Builder::new().name("weft-mounted".into()).spawn(move || {
            mounted.wait();
            drop(tell);
            // Nobody listens when the process is ending.
            let _ = events.send(Event::Unmounted(unmounted));
        })?;
        tracing::info!(dir = %dir.display(), client = %client.id(), "mounted");
        Ok(LiveMount { client, mount, ended, _record: record })
    }

    /// Where it is.
    pub fn dir(&self) -> &Path {
        self.mount.mountpoint()
    }

    /// Unmounts, and says farewell to the servers.
    pub fn stop(self) {
        let dir = self.dir().display().to_string();
        self.unmount(&dir);
        if let Err(error) = self.client.unmount() {
            tracing::warn!(dir, %error, "servers have not taken the farewell; leases will end it");
        }
        tracing::info!(dir, "unmounted");
    }

    fn unmount(&self, dir: &str) {
        let deadline = Instant::now() + BUSY_PATIENCE;
        while !self.has_ended(Duration::ZERO) {
            match self.mount.unmount(false) {
                Ok(()) => break,
                Err(error) if is_busy(&error) && Instant::now() < deadline => {
                    std::thread::sleep(BUSY_POLL);
                }
                Err(error) => {
                    tracing::warn!(dir, %error, "still in use; unmounted lazily");
                    // Fails when it is gone by now.
                    let _ = self.mount.unmount(true);
                    break;
                }
            }
        }
        if !self.has_ended(END_PATIENCE) {
            tracing::warn!(dir, "users of the mount do not end; their operations fail from now on");
            // Fails when the last of them has ended by now.
            let _ = self.mount.abort();
            self.has_ended(END_PATIENCE);
        }
    }

    fn has_ended(&self, patience: Duration) -> bool {
        !matches!(self.ended.recv_timeout(patience), Err(RecvTimeoutError::Timeout))
    }
}

fn is_busy(error: &std::io::Error) -> bool {
    // As an ordinary user the helper `fusermount3` unmounts, and says so in words.
    error.kind() == std::io::ErrorKind::ResourceBusy || error.to_string().contains("busy")
}

/// The directory to mount on, free of what a process that was killed has left mounted there.
fn prepare(dir: &Path) -> anyhow::Result<PathBuf> {
    let dir = super::resolve(dir)?;
    match find_mounted(&dir)? {
        None => crate::files::make_dir(&dir)?,
        Some(found) if !found.is_weft() => {
            bail!("dir={} has something else mounted on it", dir.display());
        }
        Some(_) if super::recorded()?.iter().any(|record| record.is_at(&dir)) => {
            bail!("dir={} is mounted already; weft umount it first", dir.display());
        }
        Some(_) => {
            tracing::warn!(dir = %dir.display(), "what a dead process had mounted is removed");
            super::unmount(&dir, true)?;
        }
    }
    Ok(dir)
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Users without root's rights mount through a helper, which may not be there.
fn explained(error: std::io::Error) -> anyhow::Error {
    let no_helper = error.kind() == std::io::ErrorKind::NotFound;
    match no_helper && !rustix::process::geteuid().is_root() {
        true => anyhow::anyhow!(
            "without root this takes the program fusermount3, which is not there; install fuse3"
        ),
        false => error.into(),
    }
}

/// Notes the mount for commands.
fn note(
    dir: &Path,
    managers: &[String],
    key: Option<&Path>,
    subtree: &str,
) -> anyhow::Result<Kept> {
    let record = Record {
        mountpoint: dir.to_path_buf(),
        process: ProcessId::own(),
        managers: managers.to_vec(),
        key: key.map(std::path::absolute).transpose()?,
        subtree: subtree.to_string(),
    };
    record.store()
}

/// Bytes that may wait to be written behind, and that may be read ahead: each a sixteenth of the memory,
/// within bounds.
fn sixteenth_of_memory() -> usize {
    /// Enough to fill a fast network's bandwidth for a while; little beside what applications use.
    const BOUNDS: (usize, usize) = (16 << 20, 512 << 20);
    let memory = rustix::system::sysinfo();
    let total = (memory.totalram as usize).saturating_mul(memory.mem_unit.max(1) as usize);
    (total / 16).clamp(BOUNDS.0, BOUNDS.1)
}
