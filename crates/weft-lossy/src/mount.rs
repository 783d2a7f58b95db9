//! A disk with a mount.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use weft_fuse::kernel::{Config, Features, MountOptions, Session, Terms};

use crate::disk::Disk;
use crate::fs::LossyFs;

/// A disk that is mounted until this is dropped. What still uses the mount then hangs in the air, as
/// after a lazy unmount.
pub struct Lossy {
    disk: Arc<Mutex<Disk>>,
    session: Session,
}

impl Lossy {
    /// Mounts a disk on a directory.
    ///
    /// # Errors
    /// Those of mounting.
    pub fn mount(disk: Disk, dir: &Path) -> io::Result<Lossy> {
        let disk = Arc::new(Mutex::new(disk));
        let fs = LossyFs(disk.clone());
        // Locks are the kernel's, lists and truncation come in simple requests.
        let unwanted = Features::POSIX_LOCKS
            | Features::FLOCK_LOCKS
            | Features::ATOMIC_O_TRUNC
            | Features::HANDLE_KILLPRIV_V2
            | Features::DO_READDIRPLUS
            | Features::READDIRPLUS_AUTO;
        let terms = Terms { features: Features::standard() & !unwanted, ..Terms::default() };
        let options = MountOptions {
            source: "lossy".into(),
            subtype: "lossy".into(),
            default_permissions: false,
            ..MountOptions::default()
        };
        let session = Session::mount(fs, dir, &options, Config { terms, ..Config::default() })?;
        Ok(Lossy { disk, session })
    }

    /// From now on everything fails with `EIO`, and nothing becomes stable any more.
    pub fn cut_power(&self) {
        self.disk.lock().ended = Some(Instant::now());
    }

    /// The disk as it is now.
    pub fn disk(&self) -> Disk {
        self.disk.lock().clone()
    }

    /// Unmounts, even if somebody uses it still.
    pub fn unmount(self) -> Disk {
        if let Some(mount) = self.session.mounted() {
            // Without this, whoever waits for an answer would wait for ever. While it is mounted: afterwards
            // the number of the connection may be that of another mount.
            let _ = mount.abort();
            let _ = mount.unmount(true);
        }
        self.session.wait();
        self.disk()
    }
}
