//! Appending: the MDT says where the file ends, so that appends of all clients fall side by side.

use crate::client::Client;
use crate::inode::OpenFile;
use weft_model::{ErrorKind, FsError, Layout, Result};
use weft_rpc::pb::mds;
use weft_rpc::router::Patience;

impl Client {
    /// Reserves room at the end of the file and writes there.
    pub(crate) fn append(
        &self,
        file: &OpenFile,
        data: &[u8],
        patience: &Patience<'_>,
    ) -> Result<usize> {
        let _one_at_a_time = file.inode.append.lock();
        let _shared = file.inode.io.read();
        let offset = self.reserve(file, data.len() as u64, patience)?;
        self.write_at(file, offset, data, patience)
    }

    fn reserve(&self, file: &OpenFile, len: u64, patience: &Patience<'_>) -> Result<u64> {
        let fid = file.fid();
        let request = {
            let state = file.inode.state();
            // An older count than the MDT's makes it ask for the size that the objects have.
            let size_epoch = state.unreported.dirty_epoch().unwrap_or(state.size_epoch);
            let observed = state.unreported.end_at(size_epoch);
            mds::Append { fid: fid.0, len, observed, glimpsed: false, size_epoch }
        };
        let first = self.ask(fid, request, patience)?;
        file.inode.state().learn_epoch(first.size_epoch);
        if !first.glimpse {
            return Ok(first.offset);
        }
        let layout = match first.layout {
            Some(layout) => &Layout::try_from(layout)?,
            None => &*file.layout(),
        };
        let seen = self.glimpse(fid, layout, patience)?.size;
        let request =
            mds::Append { observed: seen, glimpsed: true, size_epoch: first.size_epoch, ..request };
        let second = self.ask(fid, request, patience)?;
        if second.glimpse {
            return Err(FsError::new(ErrorKind::Protocol, "append")
                .on(format_args!("fid={fid}"))
                .because("the MDT asks for the size again"));
        }
        Ok(second.offset)
    }
}
