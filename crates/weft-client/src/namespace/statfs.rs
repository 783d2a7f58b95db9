//! Space and inodes of the file system.

use crate::client::Client;
use crate::ctx::Ctx;
use crate::metrics::Op;
use std::time::Duration;
use weft_model::map::{self, Space};
use weft_model::name::NAME_MAX;
use weft_model::{Result, TargetId};
use weft_rpc::pb::{mds, oss};
use weft_rpc::router::Patience;

/// Longest wait for one target; one that does not answer counts with what it last told the manager.
const ATTEMPT: Duration = Duration::from_secs(2);

/// What statfs(2) shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FsStat {
    /// Bytes on all OSTs.
    pub bytes: u64,
    /// Bytes still free there.
    pub bytes_free: u64,
    /// Inodes that there are or could be.
    pub files: u64,
    /// Inodes that could still be made.
    pub files_free: u64,
    /// Longest name.
    pub name_max: u32,
}

impl Client {
    /// Space of all OSTs and inodes of all MDTs.
    ///
    /// # Errors
    /// None so far; a target that does not answer is counted as last known.
    pub fn statfs(&self, _ctx: &Ctx<'_>) -> Result<FsStat> {
        self.timed(Op::Statfs, || {
            let map = self.map();
            let patience = Patience::of(ATTEMPT);
            let last_known = |target: TargetId| -> Space {
                map.target(target).map(|known| known.space).unwrap_or_default()
            };
            let mut total = FsStat { name_max: NAME_MAX as u32, ..FsStat::default() };
            let osts: Vec<TargetId> = map.osts().map(|ost| ost.id).collect();
            let asked = osts.iter().map(|&ost| (ost, oss::Statfs {}));
            let answers = self.ask_many(asked, &patience).into_iter().zip(&osts);
            let told = |(answer, &ost): (Result<oss::StatfsReply>, &TargetId)| -> Space {
                let told = answer.ok().and_then(|reply| reply.space);
                told.map_or_else(|| last_known(ost), Space::from)
            };
            let mut spaces: Vec<Space> = answers.map(told).collect();
            map::divide(spaces.iter_mut());
            for space in &spaces {
                total.bytes += space.total;
                total.bytes_free += space.free;
            }
            spaces.clear();
            for mdt in map.mdts().map(|mdt| mdt.id) {
                let answer = self.ask_mdt(mdt, mds::Statfs {}, &patience).ok();
                total.files += answer.as_ref().map_or(0, |reply| reply.files);
                let told = answer.and_then(|reply| reply.space);
                spaces.push(told.map_or_else(|| last_known(mdt), Space::from));
            }
            map::divide(spaces.iter_mut());
            total.files_free = spaces.iter().map(|space| space.inodes_free).sum();
            total.files = total.files.saturating_add(total.files_free);
            Ok(total)
        })
    }
}
