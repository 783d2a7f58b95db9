//! What goes along with a request: who asks, and its bulk data.

use crate::auth::Role;
use weft_model::{ClientId, Epoch, TargetId, Xid};

/// Who asks what target, and as which request of its session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CallInfo {
    /// What the peer proved to be.
    pub role: Role,
    /// The client's session.
    pub client: ClientId,
    /// Slot and sequence of a modifying request; [`Xid::NONE`] in one process, where no answer is lost.
    pub xid: Xid,
    /// The map version the asker knows.
    pub epoch: Epoch,
    /// The target asked.
    pub target: TargetId,
    /// The request came over a connection. Within one process (false) nothing can damage data on the
    /// way, so that checksums need not be computed a second time.
    pub wire: bool,
}

/// Bulk data of a request.
#[derive(Debug, Default)]
pub enum Bulk<'a> {
    /// None either way.
    #[default]
    None,
    /// Goes to the server.
    Send(&'a [u8]),
    /// The server fills it, from the start; how much is in the reply.
    Receive(&'a mut [u8]),
}

impl Bulk<'_> {
    /// Bytes sent along.
    pub const fn sent_len(&self) -> usize {
        match self {
            Bulk::Send(data) => data.len(),
            _ => 0,
        }
    }

    /// The same bulk for another attempt.
    pub const fn reborrow(&mut self) -> Bulk<'_> {
        match self {
            Bulk::None => Bulk::None,
            Bulk::Send(data) => Bulk::Send(data),
            Bulk::Receive(buffer) => Bulk::Receive(buffer),
        }
    }
}

/// One request of several that are sent together.
#[derive(Debug)]
pub struct Call<'a> {
    /// The target asked.
    pub target: TargetId,
    /// What is asked.
    pub request: crate::Request,
    /// Its bulk.
    pub bulk: Bulk<'a>,
}
