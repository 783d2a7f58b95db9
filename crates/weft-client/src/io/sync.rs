//! Stable storage: fsync, sync.

use crate::client::Client;
use crate::ctx::Ctx;
use crate::inode::{OpenFile, OpenInode};
use crate::metrics::Op;
use crate::spread::by_target;
use weft_model::{Result, TargetId};
use weft_rpc::pb::{mds, oss};
use weft_rpc::router::Patience;

impl Client {
    /// Returns when everything written to the file before, and its inode, is on stable storage.
    /// `datasync` may leave out time stamps; it does not at present.
    ///
    /// # Errors
    /// Those of the targets. After an error nothing is known about what is stored.
    pub fn fsync(&self, ctx: &Ctx<'_>, file: &OpenFile, _datasync: bool) -> Result<()> {
        self.timed(Op::Fsync, || {
            let patience = self.patience(ctx);
            if file.inode.is_wholly_on_mdt() {
                self.sync_inode(&file.inode, &patience)?;
            }
            // Also where the MDT has not taken it.
            if !file.inode.is_wholly_on_mdt() {
                self.sync_objects(file, &patience)?;
                self.sync_inode(&file.inode, &patience)?;
            }
            self.check_written(&file.inode)
        })
    }

    fn sync_objects(&self, file: &OpenFile, patience: &Patience<'_>) -> Result<()> {
        self.write_back(&file.inode, false, patience)?;
        // Also objects beyond the end known here: others may have written them.
        let groups = by_target(file.layout().objects(file.fid()));
        let asked = groups.into_iter().map(|(target, objects)| {
            (target, oss::Sync { objects: objects.into_iter().map(Into::into).collect() })
        });
        self.ask_many(asked, patience).into_iter().try_for_each(|answer| answer.map(drop))
    }

    /// Brings the inode to stable storage, with what is unreported.
    pub(crate) fn sync_inode(&self, inode: &OpenInode, patience: &Patience<'_>) -> Result<()> {
        let fsync = |written| {
            inode.expect_sync();
            self.ask(inode.fid(), mds::Fsync { fid: inode.fid().0, written }, patience)
        };
        self.report_by(inode, patience, fsync).map(drop)
    }

    /// Returns when everything that this client has been told is done, by any target, is on stable
    /// storage. All targets are asked, also after one has failed.
    ///
    /// # Errors
    /// The first of the targets' errors.
    pub fn sync_all(&self, ctx: &Ctx<'_>) -> Result<()> {
        self.timed(Op::Fsync, || {
            let patience = self.patience(ctx);
            let mut outcome = Ok(());
            for inode in self.inodes.select(|inode| !inode.buffer().is_clean()) {
                outcome = outcome.and(self.write_back(&inode, false, &patience));
            }
            for inode in self.inodes.dirty() {
                outcome = outcome.and(self.report(&inode, &patience));
            }
            self.inodes.select(|_| true).iter().for_each(|inode| inode.expect_sync());
            let map = self.map();
            let osts = map.osts().map(|ost| (ost.id, oss::Sync { objects: Vec::new() }));
            for answer in self.ask_many(osts, &patience) {
                outcome = outcome.and(answer.map(|_| ()));
            }
            for mdt in map.mdts().map(|mdt| mdt.id).collect::<Vec<TargetId>>() {
                outcome = outcome.and(self.ask_mdt(mdt, mds::SyncTarget {}, &patience).map(|_| ()));
            }
            outcome
        })
    }
}
