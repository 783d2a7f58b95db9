//! Space of the target, asked for at most once a second.

use parking_lot::Mutex;
use std::time::Duration;
use weft_model::Result;
use weft_model::map::Space;
use weft_store::ObjectStore;

/// Longest age of what is told.
const MAX_AGE: Duration = Duration::from_secs(1);

/// The last answer and when it came.
#[derive(Default)]
pub struct CachedSpace(Mutex<Option<(Duration, Space)>>);

impl CachedSpace {
    /// Space at the time `now`.
    ///
    /// # Errors
    /// What the file system says.
    pub fn get(&self, objects: &dyn ObjectStore, now: Duration) -> Result<Space> {
        let mut cached = self.0.lock();
        if let Some((at, space)) = *cached
            && now.saturating_sub(at) < MAX_AGE
        {
            return Ok(space);
        }
        let found = objects.statfs()?;
        let space = Space {
            total: found.total,
            free: found.available,
            inodes: found.inodes,
            inodes_free: found.inodes_free,
            device: found.device,
        };
        *cached = Some((now, space));
        Ok(space)
    }
}
