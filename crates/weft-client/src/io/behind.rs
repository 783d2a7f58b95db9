//! Write-behind: writes to a delegated file are answered when this client has them, and are brought to
//! the OSTs in full windows, by others. Design: `docs/design/0007-write-delegations.md`.

use super::store::{Part, parts};
use crate::client::Client;
use crate::inode::buffer::{Buffer, Extents};
use crate::inode::{OpenFile, OpenInode};
use std::sync::Arc;
use weft_model::error::Retry;
use weft_model::layout::INLINE_MAX;
use weft_model::{ErrorKind, Fid, FsError, Result};
use weft_rpc::pb::{mds, oss};
use weft_rpc::router::Patience;

/// Bytes brought to the OSTs at a time.
const BATCH: usize = 8 << 20;
/// Waiting bytes of a file from which on its full windows are on their way.
const ENOUGH: usize = 4 << 20;
/// An OST takes part if it has room for this many times what may wait in this client: others write, too.
const RESERVE: u64 = 4;

impl Client {
    /// Takes a write if the file is delegated. `false`: it has to go to the OSTs itself, and everything
    /// before it is there. The caller holds the inode's `io` lock shared.
    pub(crate) fn write_behind(
        &self,
        file: &OpenFile,
        offset: u64,
        data: &[u8],
        patience: &Patience<'_>,
    ) -> Result<bool> {
        let inode = &file.inode;
        let (delegated, inline) = {
            let buffer = inode.buffer();
            (buffer.delegated, buffer.is_inline())
        };
        let to_mdt = inline && offset.saturating_add(data.len() as u64) <= INLINE_MAX;
        let through =
            file.flags.is_sync() || !self.config.writes_behind || self.behind.is_through();
        let behind =
            || Ok::<_, FsError>(!through && self.has_room(file, offset, data.len() as u64)?);
        if !delegated || !to_mdt && !behind()? {
            self.write_back(inode, false, patience)?;
            return Ok(false);
        }
        if self.behind.waiting() > self.config.max_pending {
            // Whoever writes more than the OSTs take waits for them.
            self.write_back(inode, true, patience)?;
        }
        let waiting = self.keep(inode, offset, data, !through);
        if through {
            self.write_back(inode, false, patience)?;
            self.check_written(inode)?;
        } else if waiting >= ENOUGH {
            self.behind.write_soon(inode);
        }
        Ok(true)
    }

    /// Takes a write into the buffer. The inode's `io` lock, held shared, keeps it delegated, except that
    /// its session may be lost, and with it the write, of which the next fsync tells. How much waits then.
    fn keep(&self, inode: &OpenInode, offset: u64, data: &[u8], stays: bool) -> usize {
        self.with_buffer(inode, |buffer| {
            if stays {
                self.tell_journal(|journal| journal.waits(inode.fid(), true));
            }
            buffer.put(offset, data, self.env().monotonic());
            // Within the lock: nobody may bring it to the OSTs and find nothing to report.
            let mut state = inode.state();
            let size_epoch = state.size_epoch;
            let end = offset + data.len() as u64;
            state.unreported.record_pending(end, self.env().now(), size_epoch);
            state.note_write();
            buffer.bytes()
        })
    }

    /// Changes what waits of a file, and counts it.
    pub(crate) fn with_buffer<R>(
        &self,
        inode: &OpenInode,
        change: impl FnOnce(&mut Buffer) -> R,
    ) -> R {
        let mut buffer = inode.buffer();
        let before = buffer.bytes();
        let outcome = change(&mut buffer);
        self.behind.count(before, buffer.bytes());
        outcome
    }

    fn has_room(&self, file: &OpenFile, offset: u64, len: u64) -> Result<bool> {
        let (now, needed) = (self.env().monotonic(), RESERVE * self.config.max_pending as u64);
        let pieces = file.layout().split(file.fid(), offset, len)?;
        Ok(pieces.iter().all(|piece| self.room.is_ample(piece.target, needed, now)))
    }

    /// Brings what waits of a file to the OSTs; with `steady`, all but the window that is still being
    /// filled. Data that an OST refuses for good is dropped, and the next fsync or close told.
    ///
    /// # Errors
    /// When patience ended; everything is kept then.
    pub(crate) fn write_back(
        &self,
        inode: &OpenInode,
        steady: bool,
        patience: &Patience<'_>,
    ) -> Result<()> {
        if inode.buffer().is_clean() {
            return Ok(());
        }
        let _one_at_a_time = self.acquire(patience, || inode.writing_back.try_lock())?;
        let update = |written| self.update_written(inode, written, patience);
        match self.try_inline(inode, patience, &update)? {
            Some(()) => Ok(()),
            None => self.store_waiting(inode, steady, patience),
        }
    }

    /// The same for the objects of a file. The caller holds `writing_back`.
    pub(crate) fn store_waiting(
        &self,
        inode: &OpenInode,
        steady: bool,
        patience: &Patience<'_>,
    ) -> Result<()> {
        loop {
            if inode.buffer().is_clean() {
                return Ok(());
            }
            if inode.buffer().is_inline() {
                self.leave_mdt_or_lose(inode, patience)?;
            }
            let (batch, generation) =
                self.with_buffer(inode, |buffer| (buffer.take(BATCH, steady), buffer.generation()));
            if batch.is_empty() {
                return Ok(());
            }
            self.store_batch(inode, batch, generation, patience)?;
        }
    }

    /// Reads a range of which something waits: from what waits if that is all of it; otherwise it is on the
    /// OSTs when this returns `None`, as it is where nothing waits.
    ///
    /// # Errors
    /// As [`Self::write_back`].
    pub(crate) fn read_behind(
        &self,
        file: &OpenFile,
        offset: u64,
        buf: &mut [u8],
        patience: &Patience<'_>,
    ) -> Result<Option<usize>> {
        let inode = &file.inode;
        if !inode.buffer().overlaps(&(offset..offset.saturating_add(buf.len() as u64))) {
            return Ok(None);
        }
        // What is delegated ends where this client says. An ended session has nothing delegated any more.
        let below = inode.delegated_end().map_or(u64::MAX, |end| end.saturating_sub(offset));
        let len = below.min(buf.len() as u64) as usize;
        if self.session_counts(inode.fid()) && inode.buffer().read(offset, &mut buf[..len]) {
            return Ok(Some(len));
        }
        self.write_back(inode, false, patience).map(|()| None)
    }

    fn store_batch(
        &self,
        inode: &OpenInode,
        batch: Arc<Extents>,
        generation: u64,
        patience: &Patience<'_>,
    ) -> Result<()> {
        let layout = inode.layout();
        let cut = batch.iter().map(|(&offset, data)| parts(&layout, inode.fid(), offset, data));
        let parts: Vec<Part<'_>> = match cut.collect::<Result<Vec<_>>>() {
            Ok(parts) => parts.into_iter().flatten().collect(),
            Err(error) => return self.lost(inode, error),
        };
        let still_ours = || match inode.buffer().generation() == generation {
            true => Ok(()),
            false => Err(FsError::new(ErrorKind::Stale, "write back")),
        };
        let answers = self.store(inode.fid(), &parts, false, patience, &still_ours);
        let failure = record_stored(inode, &parts, answers);
        drop(parts);
        drop(batch);
        let mut buffer = inode.buffer();
        match failure {
            None => self.landed(inode, &mut buffer),
            Some(_) if buffer.generation() != generation => buffer.landed(),
            Some(error) if is_passing(error.kind) => {
                self.put_back(&mut buffer, generation);
                return Err(error);
            }
            Some(error) => {
                drop(buffer);
                return self.lost(inode, error);
            }
        }
        Ok(())
    }

    /// What was in flight could not be brought away now. If everything was dropped meanwhile, and said to
    /// be lost, it is, too.
    pub(crate) fn put_back(&self, buffer: &mut Buffer, generation: u64) {
        if buffer.generation() != generation {
            return buffer.landed();
        }
        let before = buffer.bytes();
        buffer.put_back(self.env().monotonic());
        self.behind.count(before, buffer.bytes());
    }

    /// What was in flight is with the servers.
    pub(crate) fn landed(&self, inode: &OpenInode, buffer: &mut Buffer) {
        buffer.landed();
        if buffer.is_clean() {
            self.tell_journal(|journal| journal.waits(inode.fid(), false));
        }
    }

    /// What was in flight cannot be stored.
    pub(crate) fn lost(&self, inode: &OpenInode, error: FsError) -> Result<()> {
        tracing::error!(fid = %inode.fid(), %error, "written data could not be stored");
        let mut buffer = inode.buffer();
        buffer.landed();
        buffer.failure.get_or_insert(error);
        Ok(())
    }

    /// The failure of an earlier write, told once.
    pub(crate) fn check_written(&self, inode: &OpenInode) -> Result<()> {
        inode.buffer().failure.take().map_or(Ok(()), Err)
    }

    /// Brings everything of a file to the OSTs and gives its delegation back.
    ///
    /// # Errors
    /// When patience ended; to be tried again.
    pub fn return_delegation(&self, fid: Fid, patience: &Patience<'_>) -> Result<()> {
        let give = |written| {
            let request = mds::UpdateWritten { fid: fid.0, written, returned: true };
            self.ask(fid, request, patience).map(drop)
        };
        let Some(inode) = self.inodes.get(fid) else { return give(None) };
        // Whoever writes from now on waits, and then writes to the OSTs.
        let _alone = self.acquire(patience, || inode.io.try_write())?;
        inode.buffer().delegated = false;
        self.report_by(&inode, patience, give)
    }
}

/// Another try may succeed.
pub(crate) fn is_passing(kind: ErrorKind) -> bool {
    kind == ErrorKind::Interrupted || !matches!(kind.retry(), Retry::No)
}

/// Takes note of what is on the OSTs now. The first failure.
fn record_stored(
    inode: &OpenInode,
    parts: &[Part<'_>],
    answers: Vec<Result<oss::WriteReply>>,
) -> Option<FsError> {
    let mut failure = None;
    let mut state = inode.state();
    for (Part { piece, .. }, answer) in parts.iter().zip(answers) {
        match answer {
            Ok(reply) => {
                state.unreported.record_piece(piece, reply.blocks);
                state.unreported.record_stored(piece.file_offset + piece.len);
            }
            Err(error) => {
                failure.get_or_insert(error);
            }
        }
    }
    failure
}
