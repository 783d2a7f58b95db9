//! A local directory as a testbed, to put beside Weft.

use super::bed::bench;
use super::tool::Tool;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weft_eval::record::Place;
use weft_study::engine::Testbed;
use weft_study::point::{Point, Work};
use weft_study::results::Measured;

/// A directory that does not exist before and after.
pub struct LocalBed {
    dir: PathBuf,
    tool: Tool,
}

impl LocalBed {
    /// Works below `parent`.
    ///
    /// # Errors
    /// When nothing can be made there.
    pub fn new(parent: &Path, stopping: Arc<AtomicBool>) -> Result<LocalBed, String> {
        let dir = parent.join(format!("weft-eval.{}", std::process::id()));
        std::fs::create_dir(&dir)
            .map_err(|error| format!("cannot make dir={}: {error}", dir.display()))?;
        Ok(LocalBed { dir, tool: Tool { stopping } })
    }
}

impl Testbed for LocalBed {
    fn settings(&self) -> BTreeMap<String, String> {
        [
            ("Clients", "directories of one local file system, without any limit of speed"),
            ("File system", Place::of(&self.dir).fs.as_str()),
        ]
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .into()
    }

    fn measure(&mut self, point: &Point) -> Result<Measured, String> {
        let Work::Bench(commands) = &point.work else {
            return Err("a local directory has no servers to end".into());
        };
        // One directory: clients of a cluster share what they see, too.
        let dirs = vec![self.dir.display().to_string()];
        bench(&self.tool, commands, &dirs, None)
    }

    fn interrupted(&self) -> bool {
        self.tool.stopping.load(Ordering::Relaxed)
    }
}

impl Drop for LocalBed {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.dir) {
            eprintln!("weft: cannot remove dir={}: {error}", self.dir.display());
        }
    }
}
