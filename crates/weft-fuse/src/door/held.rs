//! Mounts that outlive their process: what is noted for a successor, and how it carries on.

use super::cache::KernelCache;
use super::handle::Handle;
use super::{Door, DoorConfig, Mounted, mount_door};
use crate::journal::{Journal, Shown};
use crate::kernel::{Device, Mount, Session, Threads, Transport};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;
use weft_client::{Client, Keeping, Legacy};
use weft_model::Fid;

/// Requests of an earlier process that have not come again after this long have been given up by their
/// callers. They come before all others, in milliseconds.
const COME_AGAIN: Duration = Duration::from_secs(60);

impl Door {
    /// This thread takes up a request.
    pub(super) fn begin(&self, unique: u64) {
        if let Some(journal) = &self.journal {
            journal.begin(unique);
        }
    }

    /// The request that this thread took up was answered.
    pub(super) fn end(&self) {
        if let Some(ended) = self.journal.as_ref().and_then(|journal| journal.end()) {
            self.client.end_operation(ended.numbers.into_iter());
        }
    }

    /// The kernel is going to be told a handle.
    pub(super) fn show(&self, fh: u64, shown: Shown) {
        if let Some(journal) = &self.journal {
            journal.show(fh, shown);
        }
    }

    /// Takes over what the kernel had open.
    fn take_over(&self, journal: &Journal) {
        for (open, shown) in journal.known() {
            let Some(file) = self.client.reopened(open) else { continue };
            if file.flags().has(weft_client::OpenFlags::DIRECTORY) {
                self.dirs.add(open.handle, file.into());
                continue;
            }
            let cached = *shown == Shown::Cached;
            if cached {
                self.cache.opened_before(self.node(open.fid));
            }
            let owners = owners(journal.legacy(), open.fid);
            self.files.add(open.handle, Handle::new(file, cached, owners));
        }
    }
}

/// Who has fcntl(2) locks on a file. Through which handle they were taken is not known, and no matter.
fn owners(legacy: &Legacy, fid: Fid) -> std::collections::BTreeSet<u64> {
    let locks = legacy.locks.iter().filter(|(of, lock)| *of == fid && !lock.flock);
    locks.map(|(_, lock)| lock.owner).collect()
}

/// How a mount is served that may be taken over: rings of io_uring would die with their process.
fn held(config: DoorConfig) -> DoorConfig {
    let threads = Threads { clone_channel: false, resident: true, ..config.threads };
    DoorConfig { transport: Transport::Device, threads, ..config }
}

/// Mounts as [`mount`](super::mount) does, and notes in `journal` what a successor needs. Whoever keeps the
/// journal has to keep the device as well, which is returned as another descriptor.
///
/// # Errors
/// As [`mount`](super::mount).
pub fn mount_noted(
    client: Arc<Client>,
    mountpoint: &Path,
    config: DoorConfig,
    journal: Arc<Journal>,
) -> io::Result<(Mounted, OwnedFd)> {
    let mounted = mount_door(client.clone(), mountpoint, held(config), Some(journal.clone()))?;
    journal.note_mount(client.id(), client.root(), mounted.session.terms());
    let device = mounted.session.device().as_fd().try_clone_to_owned()?;
    Ok((mounted, device))
}

/// Carries on a mount that another process has left, with a client that was made by [`Client::resume`].
///
/// # Errors
/// Those of [`Session::resume`].
pub fn resume(
    client: Arc<Client>,
    mountpoint: &Path,
    config: DoorConfig,
    journal: Arc<Journal>,
    device: OwnedFd,
) -> io::Result<Mounted> {
    let config = held(config);
    let threads = config.threads;
    let device = Arc::new(Device::from_fd(device));
    let door = Door { journal: Some(journal.clone()), ..Door::new(client.clone(), config) };
    door.cache.attach(&device);
    door.take_over(&journal);
    let cache: Arc<KernelCache> = door.cache.clone();
    let keeping: Arc<dyn Keeping> = cache;
    if client.caches() {
        client.start_caching(&keeping).map_err(io::Error::other)?;
    }
    let mount = Mount::existing(mountpoint);
    let session = Session::resume(door, mount, device, journal.terms(), threads)?;
    let (of_client, of_journal) = (Arc::downgrade(&client), Arc::downgrade(&journal));
    let thread = std::thread::Builder::new().name("weft-left".into());
    thread.spawn(move || give_up_the_rest(&of_client, &of_journal))?;
    Ok(Mounted { session })
}

fn give_up_the_rest(client: &Weak<Client>, journal: &Weak<Journal>) {
    std::thread::sleep(COME_AGAIN);
    if let (Some(client), Some(journal)) = (client.upgrade(), journal.upgrade()) {
        let ended = journal.abandon();
        client.abandon(ended.numbers.into_iter(), &ended.handles);
    }
}
