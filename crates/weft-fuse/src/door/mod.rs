//! The door: a kernel mount of the cluster. It translates requests of the kernel into calls of
//! [`Client`] and does nothing else.
//!
//! **Nodes.** A node number is the number of a [`Fid`], which is also `st_ino`; only the root has
//! the kernel's number 1 instead. A FID is never used twice, so nothing is kept per inode and
//! nothing has to be forgotten.
//!
//! **Caching.** Names, attributes and the data of files that are only read, for as long as the client's
//! grants last, if it takes any; another client's change is seen at once. Beyond that, names and
//! attributes may be cached by time ([`DoorConfig::entry_ttl`], [`DoorConfig::attr_ttl`]). Data of
//! files open for writing goes past the page cache, except in memory maps.
//!
//! **Permissions.** The kernel checks them (`default_permissions`, with POSIX access lists), and
//! the MDS checks them again. The umask is applied by the MDS, which knows of default lists.
//!
//! **Locks** are the MDT's business. One that has to be waited for is answered later, by a thread
//! of its own.
//!
//! **Virtual extended attributes** tell and change what POSIX has no words for. They exist on every
//! inode of a mount and are never listed:
//!
//! | name | value |
//! |---|---|
//! | `weft.fid` | the FID, as `0xSEQUENCE:0xOBJECT` |
//! | `weft.path` | a path from the root of the volume |
//! | `weft.layout` | the layout of a file, as JSON of [`weft_model::Layout`] |
//! | `weft.spec` | what a directory hands down, as JSON of [`weft_model::layout::LayoutSpec`] |
//! | `weft.stat` | JSON object of `fid`, `mdt`, `attr`, `inline`, and `layout` or `spec` |
//! | `weft.layout.set`, `weft.spec.set` | written only: a `LayoutSpec` as JSON, for an empty file or a directory |
//!
//! **Start here.** `fs.rs` has the operations, in the order of the kernel's trait.

mod cache;
mod caller;
mod complaints;
mod convert;
mod fs;
mod handle;
mod lock;
mod table;
mod xattr;

use self::cache::KernelCache;
use self::complaints::Complaints;
use self::handle::Handle;
use self::lock::Waiters;
use self::table::Table;
use crate::kernel::{Config, Mount, MountOptions, Session, Terms, Threads, Transport};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use weft_client::{Client, DirHandle, Keeping};

/// Most requests that may wait for servers at once, each occupying a thread. Generous, because
/// requests to servers that answer, and interruptions, come the same way.
const MAX_THREADS: usize = 512;

/// Bytes that the kernel reads ahead: four requests at a time. For mapped files it reads as much around
/// each fault, so that more would cost those who touch few pages.
const READ_AHEAD: u64 = 4 << 20;

/// How a mount behaves.
#[derive(Clone, Debug)]
pub struct DoorConfig {
    /// How long the kernel may use a name without asking again. What other clients do to it
    /// meanwhile is not seen.
    pub entry_ttl: Duration,
    /// How long the kernel may use attributes without asking again.
    pub attr_ttl: Duration,
    /// Data bypasses the page cache, and other clients' writes are seen at once. Otherwise they are
    /// seen when a file is opened, or its attributes are found changed.
    pub direct_io: bool,
    /// Largest read or write request in bytes.
    pub max_request: u32,
    /// Threads to serve with.
    pub threads: Threads,
    /// How requests get here.
    pub transport: Transport,
    /// How the mount looks; its `max_read` follows `max_request`.
    pub options: MountOptions,
}

impl Default for DoorConfig {
    /// Others are let in when it is root who mounts; anybody else needs the administrator's leave
    /// for that (`user_allow_other` in `/etc/fuse.conf`).
    fn default() -> DoorConfig {
        let is_root = std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
        DoorConfig {
            entry_ttl: Duration::ZERO,
            attr_ttl: Duration::ZERO,
            direct_io: true,
            max_request: 1 << 20,
            threads: Threads { max: MAX_THREADS, ..Threads::default() },
            transport: Transport::default(),
            options: MountOptions { allow_other: is_root, ..MountOptions::default() },
        }
    }
}

/// The file system that the kernel talks to.
pub struct Door {
    client: Arc<Client>,
    config: DoorConfig,
    files: Table<Handle>,
    dirs: Table<DirHandle>,
    waiters: Arc<Waiters>,
    complaints: Arc<Complaints>,
    cache: Arc<KernelCache>,
}

impl Door {
    /// A door to what `client` has mounted; for [`Session::mount`], which [`mount`] calls.
    pub fn new(client: Arc<Client>, config: DoorConfig) -> Door {
        Door {
            cache: Arc::new(KernelCache::new(client.root())),
            client,
            config,
            files: Table::default(),
            dirs: Table::default(),
            waiters: Arc::default(),
            complaints: Arc::default(),
        }
    }
}

/// A mount. Dropping it unmounts lazily.
pub struct Mounted {
    session: Session,
}

impl Mounted {
    /// Unmounts and waits for the end.
    ///
    /// # Errors
    /// `EBUSY` when it is in use; it stays mounted then.
    pub fn unmount(&mut self) -> io::Result<()> {
        self.session.unmount()
    }

    /// Waits until it is unmounted, by whomever.
    pub fn wait(&self) {
        self.session.wait();
    }

    /// The mount, for those who have to break it by force.
    pub fn mount(&self) -> Option<&Mount> {
        self.session.mounted()
    }
}

/// Mounts what `client` has mounted on a directory. The client stays the caller's to unmount, after
/// the mount has ended.
///
/// # Errors
/// Those of [`Session::mount`].
pub fn mount(client: Arc<Client>, mountpoint: &Path, config: DoorConfig) -> io::Result<Mounted> {
    let terms = Terms { max_write: config.max_request, ..Terms::default() };
    let options = MountOptions { max_read: config.max_request, ..config.options.clone() };
    let config_of_session = Config { terms, threads: config.threads, transport: config.transport };
    let door = Door::new(client.clone(), config);
    let cache: Arc<dyn Keeping> = door.cache.clone();
    let session = Session::mount(door, mountpoint, &options, config_of_session)?;
    let widened = session.mounted().map_or(Ok(()), |mount| mount.set_read_ahead(READ_AHEAD));
    if let Err(error) = widened {
        tracing::debug!(%error, "the kernel reads ahead as little as it does by default");
    }
    if client.caches() {
        client.start_caching(&cache).map_err(io::Error::other)?;
    }
    Ok(Mounted { session })
}
