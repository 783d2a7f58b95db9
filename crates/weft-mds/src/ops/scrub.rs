//! `ScrubTarget`: reads the whole store and checks it.

use crate::{Mds, Result};
use std::ops::ControlFlow;
use weft_rpc::pb::mds::ScrubTargetReply;

/// Answers when everything has been read.
///
/// # Errors
/// Those of the disk; damage is in the answer.
pub fn run(mds: &Mds) -> Result<ScrubTargetReply> {
    let report = mds.committer.committed.kv.verify(&mut |_| ControlFlow::Continue(()))?;
    for bad in &report.damaged {
        tracing::error!(target_id = %mds.target, what = bad, "damage found by scrub");
    }
    Ok(ScrubTargetReply { records: report.keys, bytes: report.bytes, bad: report.damaged })
}
