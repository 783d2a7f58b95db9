//! Size and times of a file as its objects show them.

use crate::client::Client;
use crate::metrics::Op;
use crate::spread::by_target;
use weft_model::{Fid, Layout, Result, Timespec};
use weft_rpc::pb::oss;
use weft_rpc::router::Patience;

/// What the objects of a file prove.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Glimpse {
    /// The file has at least this many bytes.
    pub(crate) size: u64,
    /// 512-byte blocks of all objects.
    pub(crate) blocks: u64,
    /// Last change of any object.
    pub(crate) mtime: Option<Timespec>,
}

impl Client {
    /// Asks every OST that may have data of the file, at once, one request each.
    pub(crate) fn glimpse(
        &self,
        fid: Fid,
        layout: &Layout,
        patience: &Patience<'_>,
    ) -> Result<Glimpse> {
        self.timed(Op::Glimpse, || {
            let groups = by_target(layout.objects(fid));
            let asked = groups.iter().map(|(&target, objects)| {
                (target, oss::Stat { objects: objects.iter().map(|&id| id.into()).collect() })
            });
            let mut seen = Glimpse::default();
            for (answer, objects) in self.ask_many(asked, patience).into_iter().zip(groups.values())
            {
                for (stat, object) in answer?.stats.iter().zip(objects).filter(|(s, _)| s.exists) {
                    seen.size = seen.size.max(layout.size_from_object(object.index, stat.size));
                    seen.blocks += stat.blocks;
                    seen.mtime = seen.mtime.max(stat.mtime.map(Timespec::from));
                }
            }
            Ok(seen)
        })
    }
}
