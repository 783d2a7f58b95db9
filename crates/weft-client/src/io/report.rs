//! Telling the MDT what was written.

use crate::client::Client;
use crate::inode::OpenInode;
use crate::inode::written::{Touched, Unreported};
use weft_model::Result;
use weft_rpc::pb::mds;
use weft_rpc::router::Patience;

impl Client {
    /// Reports unreported writes, if there are any.
    pub(crate) fn report(&self, inode: &OpenInode, patience: &Patience<'_>) -> Result<()> {
        let sent = inode.unreported();
        // Without the number of blocks the report is still right about size and time.
        let blocks = self.blocks_to_report(inode, &sent, patience).unwrap_or(None);
        let Some(written) = sent.to_wire(blocks) else { return Ok(()) };
        let request =
            mds::UpdateWritten { fid: inode.fid().0, written: Some(written), returned: false };
        self.ask(inode.fid(), request, patience)?;
        inode.state().unreported.acknowledge(&sent);
        Ok(())
    }

    /// Allocated blocks of the whole file after writes, if any were made: from the last reply when
    /// all of the file is in the one object written, else from the OSTs.
    pub(crate) fn blocks_to_report(
        &self,
        inode: &OpenInode,
        sent: &Unreported,
        patience: &Patience<'_>,
    ) -> Result<Option<u64>> {
        let (layout, end) = {
            let state = inode.state();
            (state.layout.clone(), state.known_end())
        };
        match sent.touched() {
            Touched::None => Ok(None),
            Touched::One(_, blocks) if layout.objects_below(inode.fid(), end).count() <= 1 => {
                Ok(Some(blocks))
            }
            _ => Ok(Some(self.glimpse(inode.fid(), &layout, patience)?.blocks)),
        }
    }
}
