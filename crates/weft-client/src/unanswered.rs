//! Opens whose answer nobody waited for: they may have been carried out, so their handles are closed.

use crate::client::Client;
use parking_lot::Mutex;
use weft_model::{ErrorKind, Fid, Result, TargetId};
use weft_rpc::pb::mds;
use weft_rpc::router::Patience;

/// Handles remembered. What is beyond stays open until the session ends.
const MAX_REMEMBERED: usize = 16_384;

/// Handles that may be open without anybody knowing.
#[derive(Default)]
pub(crate) struct Unanswered(Mutex<Vec<(TargetId, u64)>>);

impl Client {
    /// Passes on the outcome of opening something under `handle` at the MDT of `fid`. If it is not known
    /// whether it was opened, the handle is closed later.
    pub(crate) fn note_unanswered<T>(&self, fid: Fid, handle: u64, opened: Result<T>) -> Result<T> {
        if let Err(error) = &opened
            && matches!(error.kind, ErrorKind::Interrupted | ErrorKind::TimedOut)
            && let Ok(mdt) = self.mdt_of(fid)
        {
            let mut handles = self.unanswered.0.lock();
            if handles.len() < MAX_REMEMBERED {
                handles.push((mdt, handle));
            }
        }
        opened
    }

    /// Remembers handles of which nobody knows the MDT.
    pub(crate) fn close_later(&self, handles: &[u64]) {
        let mdts: Vec<TargetId> = self.map().mdts().map(|mdt| mdt.id).collect();
        let mut remembered = self.unanswered.0.lock();
        let all = handles.iter().flat_map(|&handle| mdts.iter().map(move |&mdt| (mdt, handle)));
        remembered.extend(all.take(MAX_REMEMBERED));
    }

    /// An operation of an earlier process will not be carried out again: gives its numbers back, and closes
    /// what it may have opened.
    pub fn abandon(&self, numbers: impl Iterator<Item = weft_model::Xid>, handles: &[u64]) {
        self.end_operation(numbers);
        self.close_later(handles);
    }

    /// Closes what was remembered. What fails is tried again with the next call.
    pub(crate) fn close_unanswered(&self, patience: &Patience<'_>) {
        let mut handles = std::mem::take(&mut *self.unanswered.0.lock());
        while let Some((mdt, handle)) = handles.pop() {
            let close = mds::Close { handle, ..mds::Close::default() };
            if let Err(error) = self.ask_mdt(mdt, close, patience) {
                tracing::debug!(%mdt, handle, %error, "cannot close what may have been opened");
                handles.push((mdt, handle));
                // The others would wait as long, and with them whoever keeps the client alive.
                return self.unanswered.0.lock().append(&mut handles);
            }
        }
    }
}
