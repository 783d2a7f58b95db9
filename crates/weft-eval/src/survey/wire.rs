//! An OST asked directly, over its connection, without the client library in between.
//!
//! The objects belong to files that the client library makes and removes, so that nothing is left
//! behind that nobody knows of.

use super::objects::{Library, Objects, told};
use std::io::{self, ErrorKind};
use std::sync::Arc;
use weft_client::Client;
use weft_model::layout::Piece;
use weft_model::{TargetId, checksum};
use weft_rpc::pb::oss;
use weft_rpc::router::Patience;
use weft_rpc::{Bulk, Message};

/// Longest wait for an answer.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

/// Objects of one OST.
pub struct Wire {
    files: Library,
    client: Arc<Client>,
}

impl Wire {
    /// Objects of the OST number `ost`, of files in the directory `name`.
    ///
    /// # Errors
    /// Those of the MDT.
    pub fn make(client: Arc<Client>, name: &str, ost: u16) -> io::Result<Wire> {
        Ok(Wire { files: Library::make(client.clone(), name, Some(ost))?, client })
    }

    /// Where a record lies: a file on one OST has one object, so it is in one piece.
    fn piece(&self, object: u32, offset: u64, length: usize) -> io::Result<Piece> {
        let file = self.files.file(object)?;
        let pieces = file.layout().split(file.fid(), offset, length as u64).map_err(told)?;
        let one = || io::Error::new(ErrorKind::InvalidData, "the file is not on one OST");
        pieces.into_iter().next().filter(|piece| piece.len == length as u64).ok_or_else(one)
    }

    fn call<M: Message>(
        &self,
        target: TargetId,
        message: M,
        bulk: Bulk<'_>,
    ) -> io::Result<M::Reply> {
        let (request, patience) = (message.into_request(), Patience::of(PATIENCE));
        let reply = self.client.router().call(target, &request, bulk, &patience);
        reply.and_then(M::reply).map_err(told)
    }
}

impl Objects for Wire {
    fn write(&self, object: u32, data: &[u8], offset: u64) -> io::Result<()> {
        let piece = self.piece(object, offset, data.len())?;
        let sums = checksum::compute(piece.object_offset, data);
        let object = Some(piece.object.into());
        let request =
            oss::Write { object, offset: piece.object_offset, sums, sync: false, not_after: None };
        self.call(piece.target, request, Bulk::Send(data)).map(drop)
    }

    fn read(&self, object: u32, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let piece = self.piece(object, offset, buffer.len())?;
        let (object, at) = (Some(piece.object.into()), piece.object_offset);
        let request = oss::Read { object, offset: at, len: buffer.len() as u32 };
        let reply = self.call(piece.target, request, Bulk::Receive(buffer))?;
        if reply.len as usize != buffer.len() {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let damaged = |at| io::Error::new(ErrorKind::InvalidData, format!("damaged at {at}"));
        checksum::verify(at, buffer, &reply.sums).map_err(damaged)
    }

    fn sync(&self, object: u32) -> io::Result<()> {
        let piece = self.piece(object, 0, 1)?;
        let request = oss::Sync { objects: vec![piece.object.into()] };
        self.call(piece.target, request, Bulk::None).map(drop)
    }

    fn remove(&self) -> io::Result<()> {
        self.files.remove()
    }
}
