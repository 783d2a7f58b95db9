//! Writing: pieces in parallel, each with its checksums, nothing else on the way.

use super::store::{Part, parts};
use crate::client::Client;
use crate::ctx::Ctx;
use crate::flags::OpenFlags;
use crate::inode::{OpenFile, OpenInode};
use crate::metrics::Op;
use weft_model::{ErrorKind, FsError, Result};
use weft_rpc::pb::{mds, oss};
use weft_rpc::router::Patience;

impl Client {
    /// Writes `data` at `offset`; at the end of the file instead when it was opened for appending.
    /// Returns how much was written from the start of `data`: less than all only when a target failed
    /// or the largest size was met. When the call has returned, every later read on any client sees
    /// the data. Of a file that is delegated to this client, it may be in this client only, for about a
    /// second; otherwise it survives a crash of this machine. It survives a crash of a server's
    /// machine after [`Client::fsync`], or when the file is open with `SYNC` or `DSYNC`.
    ///
    /// # Errors
    /// `BadHandle`, `NoSpace`, `FileTooBig`, `Stale`, and those of the targets; only when nothing was
    /// written.
    pub fn write(&self, ctx: &Ctx<'_>, file: &OpenFile, offset: u64, data: &[u8]) -> Result<usize> {
        self.timed(Op::Write, || {
            file.check_writable("write")?;
            if data.is_empty() {
                return Ok(0);
            }
            self.drop_set_id(ctx, &file.inode)?;
            let patience = self.patience(ctx);
            let written = if file.flags.has(OpenFlags::APPEND) {
                self.append(file, data, &patience)?
            } else {
                let _shared = self.acquire(&patience, || file.inode.io.try_read())?;
                self.write_at(file, offset, data, &patience)?
            };
            if file.flags.is_sync() {
                // Data is on stable storage; its size has to be, too.
                self.sync_inode(&file.inode, &patience)?;
            }
            self.metrics.count_written(written);
            Ok(written)
        })
    }

    /// A write by somebody without privileges takes set-id bits away, before the data is there.
    pub(crate) fn drop_set_id(&self, ctx: &Ctx<'_>, inode: &OpenInode) -> Result<()> {
        if ctx.cred.uid == 0 || !inode.has_set_id() {
            return Ok(());
        }
        let written = mds::Written {
            kill_suidgid: true,
            mtime: Some(self.env().now().into()),
            size_epoch: inode.state().size_epoch,
            inline: inode.buffer().is_inline(),
            ..Default::default()
        };
        let request =
            mds::UpdateWritten { fid: inode.fid().0, written: Some(written), returned: false };
        self.ask(inode.fid(), request, &self.patience(ctx))?;
        inode.clear_set_id();
        Ok(())
    }

    /// Writes at an offset. The caller holds the inode's `io` lock shared.
    pub(crate) fn write_at(
        &self,
        file: &OpenFile,
        offset: u64,
        data: &[u8],
        patience: &Patience<'_>,
    ) -> Result<usize> {
        let layout = file.layout();
        let room = layout.max_size().saturating_sub(offset);
        if room == 0 {
            return Err(FsError::new(ErrorKind::FileTooBig, "write"));
        }
        let data = &data[..room.min(data.len() as u64) as usize];
        let _changing = file.inode.changing(offset..offset + data.len() as u64);
        if self.write_behind(file, offset, data, patience)? {
            return Ok(data.len());
        }
        self.move_out(&file.inode, patience)?;
        let size_epoch = file.inode.state().size_epoch;
        let parts = parts(&layout, file.fid(), offset, data)?;
        let sync = file.flags.is_sync();
        let answers = self.store(file.fid(), &parts, sync, patience, &|| Ok(()));
        record(&file.inode, &parts, answers, size_epoch, self.env().now())
            .map(|written| written.min(data.len()))
    }
}

/// Takes note of what was written. Returns the bytes written without a gap from the start; the first
/// error when there are none.
fn record(
    inode: &OpenInode,
    parts: &[Part<'_>],
    answers: Vec<Result<oss::WriteReply>>,
    size_epoch: u64,
    now: weft_model::Timespec,
) -> Result<usize> {
    let (mut prefix, mut end, mut failure) = (0, 0, None);
    let mut state = inode.state();
    for (Part { piece, .. }, answer) in parts.iter().zip(answers) {
        match answer {
            Ok(reply) => {
                state.unreported.record_piece(piece, reply.blocks);
                // Beyond a failed piece, too: the object shows it to everybody.
                end = piece.file_offset + piece.len;
                if failure.is_none() {
                    prefix += piece.len as usize;
                }
            }
            Err(error) => {
                failure.get_or_insert(error);
            }
        }
    }
    if end > 0 {
        state.unreported.record_change(end, now, size_epoch);
        state.note_write();
    }
    match failure {
        Some(error) if prefix == 0 => Err(error),
        _ => Ok(prefix),
    }
}
