//! Reading: pieces in parallel, straight into the caller's buffer, verified before anybody sees them.

use super::ahead::Served;
use crate::client::Client;
use crate::ctx::Ctx;
use crate::inode::{OpenFile, OpenInode};
use crate::metrics::Op;
use crate::spread::bounded;
use weft_model::layout::Piece;
use weft_model::{ErrorKind, Fid, FsError, Layout, Result, checksum};
use weft_rpc::pb::mds::Place;
use weft_rpc::pb::oss;
use weft_rpc::router::Patience;
use weft_rpc::{Bulk, Call, Message, Reply};

impl Client {
    /// Reads up to `buf.len()` bytes at `offset`; fewer only at the end of the file. Holes read as
    /// zeros. Sees every write, on any client, that had returned before the call. Beyond the returned
    /// length `buf` may hold anything.
    ///
    /// # Errors
    /// `BadHandle` when not open for reading, `Checksum` when data is damaged, `Stale`, and those of
    /// the targets.
    pub fn read(
        &self,
        ctx: &Ctx<'_>,
        file: &OpenFile,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<usize> {
        self.timed(Op::Read, || {
            file.check_readable("read")?;
            let layout = file.layout();
            let room = layout.max_size().saturating_sub(offset);
            let len = (buf.len() as u64).min(room) as usize;
            let (patience, buf) = (self.patience(ctx), &mut buf[..len]);
            let got = loop {
                if let Some(got) = self.read_behind(file, offset, buf, &patience)? {
                    break got;
                }
                if let Some(got) = self.read_inline(file, offset, buf, &patience)? {
                    break got;
                }
                let got = self.read_stored(file, offset, buf, &patience)?;
                // Else the MDT has got the file's first bytes meanwhile.
                if file.inode.buffer().place != Place::Inline {
                    break got;
                }
            };
            file.inode.note_read(|| self.env().now());
            self.metrics.count_read(got);
            Ok(got)
        })
    }

    /// Reads what is on the OSTs, or was read ahead.
    fn read_stored(
        &self,
        file: &OpenFile,
        offset: u64,
        buf: &mut [u8],
        patience: &Patience<'_>,
    ) -> Result<usize> {
        match self.serve_ahead(file, offset, buf, patience)? {
            Served::All(got) => Ok(got),
            Served::Part(got) if got == buf.len() => Ok(got),
            Served::Part(got) => {
                let (offset, rest) = (offset + got as u64, &mut buf[got..]);
                let start = self.env().monotonic();
                let more = self.fill(file.fid(), &file.layout(), offset, rest, patience)?;
                self.note_wait(&file.inode, start, more);
                Ok(got + more)
            }
        }
    }

    fn fill(
        &self,
        fid: Fid,
        layout: &Layout,
        offset: u64,
        buf: &mut [u8],
        patience: &Patience<'_>,
    ) -> Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        let pieces = bounded(layout.split(fid, offset, buf.len() as u64)?);
        let short = self.fetch_pieces(&pieces, offset, buf, patience)?;
        if short.is_empty() {
            return Ok(buf.len());
        }
        let size = self.current_attr(fid, patience)?.size;
        let len = size.saturating_sub(offset).min(buf.len() as u64) as usize;
        // What is missing below the size is a hole, or was written after its object was asked. Now
        // that the size is known, what made it so large must be found; the rest is a hole.
        let missing: Vec<Piece> =
            short.into_iter().filter_map(|piece| below(piece, offset + len as u64)).collect();
        for piece in self.fetch_pieces(&missing, offset, buf, patience)? {
            let at = (piece.file_offset - offset) as usize;
            buf[at..at + piece.len as usize].fill(0);
        }
        Ok(len)
    }

    /// Fills `buf` from a file that nobody changes, below its end: what the objects do not have are holes.
    pub(crate) fn read_covered(
        &self,
        inode: &OpenInode,
        offset: u64,
        buf: &mut [u8],
        patience: &Patience<'_>,
    ) -> Result<()> {
        let pieces = bounded(inode.layout().split(inode.fid(), offset, buf.len() as u64)?);
        for piece in self.fetch_pieces(&pieces, offset, buf, patience)? {
            let at = (piece.file_offset - offset) as usize;
            buf[at..at + piece.len as usize].fill(0);
        }
        Ok(())
    }

    /// Reads pieces into their places in `buf`, which starts at `offset` of the file. Returns what the
    /// objects do not have.
    fn fetch_pieces(
        &self,
        pieces: &[Piece],
        offset: u64,
        buf: &mut [u8],
        patience: &Patience<'_>,
    ) -> Result<Vec<Piece>> {
        let (mut rest, mut at) = (buf, offset);
        let mut calls = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let (_, from_piece) = rest.split_at_mut((piece.file_offset - at) as usize);
            let (mine, behind) = from_piece.split_at_mut(piece.len as usize);
            (rest, at) = (behind, piece.file_offset + piece.len);
            let request = oss::Read {
                object: Some(piece.object.into()),
                offset: piece.object_offset,
                len: piece.len as u32,
            };
            calls.push(Call {
                target: piece.target,
                request: request.into_request(),
                bulk: Bulk::Receive(mine),
            });
        }
        let answers = self.call_many(&mut calls, patience);
        let mut short = Vec::new();
        for ((piece, call), answer) in pieces.iter().zip(&mut calls).zip(answers) {
            let got = self.verified(piece, call, answer, patience)?;
            if got < piece.len {
                short.push(Piece {
                    object_offset: piece.object_offset + got,
                    file_offset: piece.file_offset + got,
                    len: piece.len - got,
                    ..*piece
                });
            }
        }
        Ok(short)
    }

    /// Checks what was received; when it is damaged, asks once more (it may have been on the way).
    /// Returns the number of good bytes.
    fn verified(
        &self,
        piece: &Piece,
        call: &mut Call<'_>,
        answer: Result<Reply>,
        patience: &Patience<'_>,
    ) -> Result<u64> {
        let damage = match verify(piece, &call.bulk, answer)? {
            Ok(got) => return Ok(got),
            Err(damage) => damage,
        };
        self.metrics.count_checksum_error();
        tracing::warn!(error = %damage, "damaged data received, reading it again");
        let again = self.router.call(call.target, &call.request, call.bulk.reborrow(), patience);
        verify(piece, &call.bulk, again)?
    }
}

/// The part of a piece that lies below `end` of the file.
fn below(piece: Piece, end: u64) -> Option<Piece> {
    let len = end.saturating_sub(piece.file_offset).min(piece.len);
    (len > 0).then_some(Piece { len, ..piece })
}

/// The outer error is the target's, the inner one is damage.
fn verify(piece: &Piece, bulk: &Bulk<'_>, answer: Result<Reply>) -> Result<Result<u64>> {
    let reply = oss::Read::reply(answer?)?;
    let data: &[u8] = match bulk {
        Bulk::Receive(buffer) => buffer,
        _ => &[],
    };
    let data = data.get(..reply.len as usize).ok_or_else(|| {
        FsError::new(ErrorKind::Protocol, "read")
            .on(format_args!("target={}", piece.target))
            .because("more data than asked for")
    })?;
    Ok(match checksum::verify(piece.object_offset, data, &reply.sums) {
        Ok(()) => Ok(data.len() as u64),
        Err(at) => Err(FsError::new(ErrorKind::Checksum, "read")
            .on(format_args!("target={} object={} offset={at}", piece.target, piece.object))),
    })
}
