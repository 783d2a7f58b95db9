//! `weft umount DIR`.

use crate::mounts;
use crate::outcome::Outcome;
use anyhow::bail;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// Longest wait for the mount's process to end after the mount is gone.
const END_PATIENCE: Duration = Duration::from_secs(30);

/// Unmount a file system.
#[derive(Args)]
pub struct Umount {
    /// Where it is mounted.
    dir: PathBuf,
    /// Take it out of sight even if it is in use; it ends when the last user leaves.
    #[arg(short, long)]
    lazy: bool,
}

impl Umount {
    /// Unmounts; what was written is with the servers when this returns.
    ///
    /// # Errors
    /// When it is not mounted, or in use.
    pub fn run(self) -> anyhow::Result<Outcome> {
        let dir = mounts::resolve(&self.dir)?;
        let record = mounts::recorded()?.into_iter().find(|record| record.is_at(&dir));
        if !mounts::find_mounted(&dir)?.is_some_and(|mounted| mounted.is_weft()) {
            bail!("dir={} is not a mount of Weft", dir.display());
        }
        mounts::unmount(&dir, self.lazy)?;
        let Some(record) = record else { return Ok(Outcome::Done) };
        let gone = || !mounts::recorded().is_ok_and(|all| all.iter().any(|r| r.is_at(&dir)));
        let deadline = std::time::Instant::now() + END_PATIENCE;
        // A process with other roles goes on without the mount; then its record goes.
        while !gone() && record.process.is_alive() {
            if std::time::Instant::now() >= deadline {
                if self.lazy {
                    break;
                }
                bail!("process {} of the mount does not end", record.process.pid);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(Outcome::Done)
    }
}
