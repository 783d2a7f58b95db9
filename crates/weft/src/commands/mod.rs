//! One file per command.

pub mod bench;
pub mod check;
pub mod client;
pub mod cluster;
pub mod completion;
mod components;
pub mod config;
pub mod dev;
pub mod df;
pub mod eval;
pub mod fid;
pub mod getstripe;
pub mod man;
pub mod mount;
pub mod node;
pub mod path;
pub mod pool;
pub mod preload;
pub mod remount;
pub mod scrub;
pub mod server;
pub mod setstripe;
pub mod stat;
pub mod status;
pub mod target;
pub mod umount;

use crate::outcome::Outcome;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Servers learn of what an operator has changed with their next heartbeat, which by default is due
/// within a second. Commands wait for that, so that the next command of a script finds it done.
const NOTICE: Duration = Duration::from_millis(1200);

/// Does something to every path, whatever happens to the others.
///
/// # Errors
/// That of the path if there is only one. Of several, each failure is named, and the outcome is
/// partial.
fn for_each_path(
    paths: &[PathBuf],
    mut act: impl FnMut(&Path) -> anyhow::Result<()>,
) -> anyhow::Result<Outcome> {
    if let [only] = paths {
        return act(only).map(|()| Outcome::Done);
    }
    let mut outcome = Outcome::Done;
    for path in paths {
        if let Err(error) = act(path) {
            eprintln!("weft: {error:#}");
            outcome = Outcome::Partly;
        }
    }
    Ok(outcome)
}
