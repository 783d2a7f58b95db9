//! Bringing pieces of a file to their objects, in time.

use crate::client::Client;
use crate::spread::bounded;
use std::time::Duration;
use weft_model::layout::Piece;
use weft_model::{ErrorKind, Fid, Layout, Result, TargetId, checksum};
use weft_rpc::pb::oss;
use weft_rpc::router::Patience;
use weft_rpc::{Bulk, Call, Message};

/// Times that pieces are sent again because an OST was restarted or the session's time was over.
pub(crate) const MAX_LATE: u32 = 100;

/// A piece and where its bytes are.
pub(crate) struct Part<'a> {
    pub(crate) piece: Piece,
    pub(crate) data: &'a [u8],
}

/// Cuts data that lies at `offset` of a file into parts.
pub(crate) fn parts<'a>(
    layout: &Layout,
    fid: Fid,
    offset: u64,
    data: &'a [u8],
) -> Result<Vec<Part<'a>>> {
    let pieces = bounded(layout.split(fid, offset, data.len() as u64)?);
    let part = |piece: Piece| {
        let start = (piece.file_offset - offset) as usize;
        Part { piece, data: &data[start..start + piece.len as usize] }
    };
    Ok(pieces.into_iter().map(part).collect())
}

impl Client {
    /// Writes parts of a file, all at once; answers in their order. `may_go_on` is asked before each
    /// try, after the time was taken that the try is good for.
    pub(crate) fn store(
        &self,
        fid: Fid,
        parts: &[Part<'_>],
        sync: bool,
        patience: &Patience<'_>,
        may_go_on: &dyn Fn() -> Result<()>,
    ) -> Vec<Result<oss::WriteReply>> {
        let mut answers: Vec<Option<Result<oss::WriteReply>>> = Vec::new();
        answers.resize_with(parts.len(), || None);
        for _ in 0..MAX_LATE {
            let open: Vec<usize> = (0..parts.len()).filter(|&at| answers[at].is_none()).collect();
            if open.is_empty() {
                break;
            }
            let tried = self.try_to_store(fid, parts, &open, sync, patience, may_go_on);
            for (&at, answer) in open.iter().zip(tried) {
                match answer {
                    Err(error) if error.kind == ErrorKind::Fenced => {
                        tracing::debug!(%error, "to be sent again");
                        self.forget_clock(parts[at].piece.target);
                    }
                    answer => answers[at] = Some(answer),
                }
            }
        }
        let late = || Err(ErrorKind::Fenced.into());
        answers.into_iter().map(|answer| answer.unwrap_or_else(late)).collect()
    }

    fn try_to_store(
        &self,
        fid: Fid,
        parts: &[Part<'_>],
        chosen: &[usize],
        sync: bool,
        patience: &Patience<'_>,
        may_go_on: &dyn Fn() -> Result<()>,
    ) -> Vec<Result<oss::WriteReply>> {
        let prepare = || {
            let until = self.session_time(fid, patience)?;
            may_go_on()?;
            let moment = |&at: &usize| self.moment_for(parts[at].piece.target, until, patience);
            chosen.iter().map(moment).collect::<Result<Vec<_>>>()
        };
        let moments = match prepare() {
            Ok(moments) => moments,
            Err(error) => return chosen.iter().map(|_| Err(error.again())).collect(),
        };
        let mut calls: Vec<Call<'_>> = chosen
            .iter()
            .zip(moments)
            .map(|(&at, not_after)| to_call(&parts[at], sync, not_after))
            .collect();
        let answers = self.call_many(&mut calls, patience);
        let replies = answers.into_iter().map(|answer| oss::Write::reply(answer?));
        chosen.iter().zip(replies).map(|(&at, reply)| self.note(&parts[at], reply)).collect()
    }

    /// The moment on an OST's clock until which the session counts, if it matters.
    pub(crate) fn moment_for(
        &self,
        ost: TargetId,
        until: Option<Duration>,
        patience: &Patience<'_>,
    ) -> Result<Option<oss::Moment>> {
        until.map(|until| self.moment_at(ost, until, patience)).transpose()
    }

    fn note(&self, part: &Part<'_>, reply: Result<oss::WriteReply>) -> Result<oss::WriteReply> {
        let reply = reply?;
        self.room.told(part.piece.target, reply.free, self.env().monotonic());
        Ok(reply)
    }
}

fn to_call<'a>(part: &Part<'a>, sync: bool, not_after: Option<oss::Moment>) -> Call<'a> {
    let Part { piece, data } = part;
    let request = oss::Write {
        object: Some(piece.object.into()),
        offset: piece.object_offset,
        sums: checksum::compute(piece.object_offset, data),
        sync,
        not_after,
    };
    Call { target: piece.target, request: request.into_request(), bulk: Bulk::Send(data) }
}
