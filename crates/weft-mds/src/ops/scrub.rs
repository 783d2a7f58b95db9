//! `ScrubTarget`: reads the store and checks it, a slice at a time.

use crate::{Mds, Result};
use std::ops::ControlFlow;
use std::time::Duration;
use weft_rpc::pb::mds::{ScrubTarget, ScrubTargetReply};

/// After this long a request ends. Askers wait for 20 s.
const SLICE: Duration = Duration::from_secs(5);

/// Reads from the cursor on for some seconds.
///
/// # Errors
/// Those of the disk; damage is in the answer, and ends the scrub.
pub fn run(mds: &Mds, request: &ScrubTarget) -> Result<ScrubTargetReply> {
    let begun = mds.env.monotonic();
    let mut pace = |_| match mds.env.monotonic().saturating_sub(begun) >= SLICE {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    };
    let report = mds.committer.committed.kv.verify(&request.cursor, &mut pace)?;
    for bad in &report.damaged {
        tracing::error!(target_id = %mds.target, what = bad, "damage found by scrub");
    }
    let cursor = report.next.unwrap_or_default();
    Ok(ScrubTargetReply { records: report.keys, bytes: report.bytes, bad: report.damaged, cursor })
}
