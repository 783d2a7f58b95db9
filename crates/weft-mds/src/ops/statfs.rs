//! `MdtStatfs`: space of the target and inodes in use.

use crate::{Mds, Result};
use weft_rpc::pb::mds::StatfsReply;

/// Answers.
///
/// # Errors
/// Those of the disk.
pub fn run(mds: &Mds) -> Result<StatfsReply> {
    let files = mds.committer.with_planner(|planner| planner.counters.inodes);
    Ok(StatfsReply { space: Some((mds.space)().into()), files })
}
