//! Telling the MDT what was written.

use crate::client::Client;
use crate::inode::written::{Touched, Unreported};
use crate::inode::{OpenInode, State};
use parking_lot::MutexGuard;
use weft_model::{ErrorKind, FsError, Result};
use weft_rpc::pb::mds;
use weft_rpc::router::Patience;

impl Client {
    /// Reports unreported writes, if there are any.
    pub(crate) fn report(&self, inode: &OpenInode, patience: &Patience<'_>) -> Result<()> {
        let sent = inode.unreported();
        let Some(written) = self.to_report(inode, &sent, patience) else { return Ok(()) };
        self.update_written(inode, Some(written), patience)?;
        drop(self.reported(inode, &sent));
        Ok(())
    }

    /// A report was answered: what it told is not told again, and answers to what was asked before do not
    /// have it.
    pub(crate) fn reported<'a>(
        &self,
        inode: &'a OpenInode,
        sent: &Unreported,
    ) -> MutexGuard<'a, State> {
        let mut state = inode.state();
        self.grants.note_report();
        state.unreported.acknowledge(sent);
        state
    }

    pub(crate) fn update_written(
        &self,
        inode: &OpenInode,
        written: Option<mds::Written>,
        patience: &Patience<'_>,
    ) -> Result<()> {
        let request = mds::UpdateWritten { fid: inode.fid().0, written, returned: false };
        self.ask(inode.fid(), request, patience).map(drop)
    }

    /// What the MDT is to be told of `sent`, if that is anything.
    pub(crate) fn to_report(
        &self,
        inode: &OpenInode,
        sent: &Unreported,
        patience: &Patience<'_>,
    ) -> Option<mds::Written> {
        // Looked at after `sent` was taken: what it has of writes to objects was written after this.
        let inline = inode.buffer().is_inline();
        // Without the number of blocks the report is still right about size and time.
        let blocks = match inline {
            true => None,
            false => self.blocks_to_report(inode, sent, patience).unwrap_or(None),
        };
        Some(mds::Written { inline, ..sent.to_wire(blocks)? })
    }

    /// Allocated blocks of the whole file after writes, if any were made: from the last reply when
    /// all of the file is in the one object written, else from the OSTs.
    fn blocks_to_report(
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

/// The MDT does not take what came with a report.
pub(crate) fn is_refusal_of_data(error: &FsError) -> bool {
    matches!(error.kind, ErrorKind::NotInline | ErrorKind::NoSpace)
}
