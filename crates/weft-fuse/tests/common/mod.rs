//! What the mount tests share.

use std::path::Path;

use tempfile::TempDir;
use weft_fuse::kernel::{Config, FileSystem, MountOptions, Session, Transport};

const PARAMETER: &str = "/sys/module/fuse/parameters/enable_uring";

/// The transport named by `WEFT_TEST_TRANSPORT`, by default /dev/fuse; `None` if it cannot be had.
fn over_wanted_transport(config: Config) -> Option<Config> {
    let transport = match std::env::var("WEFT_TEST_TRANSPORT") {
        Ok(name) => name.parse().unwrap(),
        Err(_) => Transport::Device,
    };
    let is_on = std::fs::read_to_string(PARAMETER).is_ok_and(|value| value.trim() == "Y");
    (transport != Transport::Rings || is_on).then_some(Config { transport, ..config })
}

/// A mount in a temporary directory, gone when dropped, whatever the test did.
pub struct Mounted {
    pub session: Session,
    directory: TempDir,
}

impl Mounted {
    /// Mounts, or prints why it cannot and answers `None`.
    pub fn new(fs: impl FileSystem, config: Config) -> Option<Mounted> {
        if !Path::new("/dev/fuse").exists() {
            eprintln!("SKIPPED: this machine has no /dev/fuse");
            return None;
        }
        let Some(config) = over_wanted_transport(config) else {
            eprintln!("SKIPPED: FUSE over io_uring is switched off here ({PARAMETER})");
            return None;
        };
        let directory = tempfile::tempdir().unwrap();
        let options = MountOptions { source: "test".into(), ..MountOptions::default() };
        let session = Session::mount(fs, directory.path(), &options, config).unwrap();
        Some(Mounted { session, directory })
    }

    /// The root of the mount.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // The temporary directory cannot be removed while it is a mount point.
        let Some(mount) = self.session.mounted().cloned() else { return };
        if let Err(error) = self.session.unmount() {
            // Client and daemon are one process here: callers that hang would even survive its
            // being killed, so the connection is broken.
            eprintln!("plain unmount: {error}; aborting: {:?}", mount.abort());
            let _ = mount.unmount(true);
        }
    }
}
