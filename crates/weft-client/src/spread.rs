//! Requests to several OSTs at once.

use crate::client::Client;
use std::collections::BTreeMap;
use weft_model::layout::{ObjectRef, Piece};
use weft_model::{ObjectId, Result, TargetId};
use weft_rpc::router::Patience;
use weft_rpc::{Call, Message, Reply};

/// Requests of one caller that are under way at a time. Bounds the connections a caller holds while
/// it waits for more of them.
const MAX_PARALLEL: usize = 16;
/// Longest transfer in one request, bytes: well below what a frame may carry.
const MAX_TRANSFER: u64 = 4 << 20;

impl Client {
    /// Sends all calls, some at a time; answers in their order.
    pub(crate) fn call_many(
        &self,
        calls: &mut [Call<'_>],
        patience: &Patience<'_>,
    ) -> Vec<Result<Reply>> {
        if calls.len() <= MAX_PARALLEL {
            return self.router.call_all(calls, patience);
        }
        calls.chunks_mut(MAX_PARALLEL).flat_map(|c| self.router.call_all(c, patience)).collect()
    }

    /// Sends messages without bulk; answers in their order.
    pub(crate) fn ask_many<M: Message>(
        &self,
        messages: impl Iterator<Item = (TargetId, M)>,
        patience: &Patience<'_>,
    ) -> Vec<Result<M::Reply>> {
        let mut calls: Vec<Call<'_>> = messages
            .map(|(target, message)| Call {
                target,
                request: message.into_request(),
                bulk: weft_rpc::Bulk::None,
            })
            .collect();
        let answers = self.call_many(&mut calls, patience);
        answers.into_iter().map(|answer| M::reply(answer?)).collect()
    }
}

/// Objects grouped by the target that has them.
pub(crate) fn by_target(
    objects: impl Iterator<Item = ObjectRef>,
) -> BTreeMap<TargetId, Vec<ObjectId>> {
    let mut groups: BTreeMap<TargetId, Vec<ObjectId>> = BTreeMap::new();
    for found in objects {
        groups.entry(found.target).or_default().push(found.object);
    }
    groups
}

/// Pieces cut to what one request may carry, in the same order.
pub(crate) fn bounded(pieces: Vec<Piece>) -> Vec<Piece> {
    if pieces.iter().all(|piece| piece.len <= MAX_TRANSFER) {
        return pieces;
    }
    let cut = |piece: Piece| {
        (0..piece.len).step_by(MAX_TRANSFER as usize).map(move |at| Piece {
            object_offset: piece.object_offset + at,
            file_offset: piece.file_offset + at,
            len: MAX_TRANSFER.min(piece.len - at),
            ..piece
        })
    };
    pieces.into_iter().flat_map(cut).collect()
}
