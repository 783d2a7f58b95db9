//! Appending: the MDT says where the file ends, so that appends of all clients fall side by side.

use crate::client::Client;
use crate::inode::OpenFile;
use weft_model::{ErrorKind, FsError, Layout, Result};
use weft_rpc::pb::mds;
use weft_rpc::router::Patience;

/// Truncations by others that one append puts up with.
const MAX_GLIMPSES: usize = 100;

impl Client {
    /// Reserves room at the end of the file and writes there.
    pub(crate) fn append(
        &self,
        file: &OpenFile,
        data: &[u8],
        patience: &Patience<'_>,
    ) -> Result<usize> {
        let _one_at_a_time = self.acquire(patience, || file.inode.append.try_lock())?;
        let _shared = self.acquire(patience, || file.inode.io.try_read())?;
        if let Some(end) = file.inode.delegated_end() {
            return self.write_at(file, self.place_of_append(end), data, patience);
        }
        let offset = self.reserve(file, data.len() as u64, patience)?;
        let written = self.write_at(file, offset, data, patience);
        file.inode.state().appending = None;
        written
    }

    /// Asks, and takes note of the answer before a reclaim can come between.
    fn ask_for_end(
        &self,
        file: &OpenFile,
        request: mds::Append,
        patience: &Patience<'_>,
    ) -> Result<mds::AppendReply> {
        let keep = |(), reply: Result<mds::AppendReply>| {
            let reply = reply?;
            if reply.glimpse_for == 0 {
                let end = reply.offset.saturating_add(request.len);
                file.inode.state().appending = Some((end, reply.size_epoch));
            }
            Ok(reply)
        };
        self.keeping(file.fid(), request, patience, || Ok(()), keep)
    }

    fn reserve(&self, file: &OpenFile, len: u64, patience: &Patience<'_>) -> Result<u64> {
        let fid = file.fid();
        let request = {
            let state = file.inode.state();
            // An older count than the MDT's makes it ask for the size that the objects have.
            let size_epoch = state.unreported.dirty_epoch().unwrap_or(state.size_epoch);
            let observed = state.unreported.end_at(size_epoch);
            mds::Append { fid: fid.0, len, observed, glimpsed_for: 0, size_epoch }
        };
        let mut reply = self.ask_for_end(file, request, patience)?;
        // Another round only if somebody cuts the file between the look at its objects and the request.
        for _ in 0..MAX_GLIMPSES {
            file.inode.state().learn_epoch(reply.size_epoch);
            if reply.glimpse_for == 0 {
                return Ok(reply.offset);
            }
            let layout = match reply.layout {
                Some(layout) => &Layout::try_from(layout)?,
                None => &*file.layout(),
            };
            let observed = self.glimpse(fid, layout, patience)?.size;
            let size_epoch = reply.size_epoch;
            let glimpsed_for = reply.glimpse_for;
            let again = mds::Append { observed, glimpsed_for, size_epoch, ..request };
            reply = self.ask_for_end(file, again, patience)?;
        }
        Err(FsError::new(ErrorKind::Busy, "append")
            .on(format_args!("fid={fid}"))
            .because("the file is being truncated over and over"))
    }
}
