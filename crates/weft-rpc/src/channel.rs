//! The asking side of one connection: handshake, then one request at a time.

use crate::auth::{ClusterKey, Role, Side, nonce};
use crate::call::{Bulk, CallInfo};
use crate::convert::error_from_wire;
use crate::frame::{FLAG_REPLY, FLAG_WANT_BULK, HEADER_LEN, Header};
use crate::message::{Reply, Request};
use crate::pb;
use crate::pool::incarnation;
use crate::stream::{FrameStream, Stalled, Stream, give_up};
use prost::Message as _;
use std::time::Duration;
use weft_model::{ClientId, ErrorKind, FsError, Result, checksum};

/// Message numbers of the handshake.
pub mod handshake {
    /// Hello, from the connecting side.
    pub const HELLO: u16 = 1;
    /// Challenge, the answer.
    pub const CHALLENGE: u16 = 2;
    /// Proof, from the connecting side.
    pub const PROOF: u16 = 3;
    /// Welcome, the end.
    pub const WELCOME: u16 = 4;
}

/// Longest wait for a connection and its handshake.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// How long nothing may come from the peer before the asker is asked whether to wait on.
const STALL: Duration = Duration::from_millis(250);

/// Who connects.
#[derive(Clone, Debug)]
pub struct Identity {
    /// In which role.
    pub role: Role,
    /// As which client.
    pub client: ClientId,
    /// For the server's log.
    pub name: String,
    /// Knowledge of the cluster's key; none is needed on a Unix socket of the same user.
    pub key: Option<ClusterKey>,
}

/// An open connection.
#[derive(Debug)]
pub struct Channel {
    frames: FrameStream,
    head: Vec<u8>,
    body: Vec<u8>,
    next_id: u64,
}

impl Channel {
    /// Connects and proves who we are. `number` and `generation` tell the server which earlier
    /// connection this one replaces.
    ///
    /// # Errors
    /// `Disconnected` or `TimedOut` when nobody answers, `Denied` when either side's proof fails,
    /// `Version`.
    pub fn open(
        address: &str,
        identity: &Identity,
        number: u32,
        generation: u64,
    ) -> Result<Channel> {
        let stream = Stream::connect(address, CONNECT_TIMEOUT)?;
        let set = |timeout| {
            stream.set_timeout(timeout).map_err(|error| FsError::from_io("connect", &error))
        };
        set(Some(CONNECT_TIMEOUT))?;
        let mut frames = FrameStream::new(stream);
        greet(&mut frames, identity, number, generation).map_err(|error| {
            if error.subject.is_empty() {
                error.on(format_args!("address={address}"))
            } else {
                error
            }
        })?;
        frames
            .stream()
            .set_timeout(Some(STALL))
            .map_err(|error| FsError::from_io("connect", &error))?;
        Ok(Channel { frames, head: Vec::with_capacity(512), body: Vec::new(), next_id: 1 })
    }

    /// Sends a request. Exactly one [`Self::receive`] must follow.
    ///
    /// # Errors
    /// `Disconnected`, or that of `stalled`; the channel is of no use then.
    pub fn send(
        &mut self,
        info: &CallInfo,
        request: &Request,
        bulk: &Bulk<'_>,
        stalled: &mut Stalled<'_>,
    ) -> Result<()> {
        self.next_id += 1;
        let (flags, bulk_len, data): (u16, usize, &[u8]) = match bulk {
            Bulk::None => (0, 0, &[]),
            Bulk::Send(data) => (0, data.len(), data),
            Bulk::Receive(buffer) => (FLAG_WANT_BULK, buffer.len(), &[]),
        };
        self.head.clear();
        self.head.resize(HEADER_LEN, 0);
        request.encode(&mut self.head);
        let body = &self.head[HEADER_LEN..];
        let header = Header {
            number: request.number(),
            flags,
            status: 0,
            target: info.target.to_wire(),
            request_id: self.next_id,
            session: info.client.0,
            xid: info.xid.0,
            epoch: info.epoch.0,
            body_len: body.len() as u32,
            bulk_len: bulk_len as u32,
            body_crc: checksum::crc32c(body),
        };
        self.head[..HEADER_LEN].copy_from_slice(&header.encode());
        self.frames.stream_mut().send(&self.head, data, stalled)
    }

    /// Receives the answer to what was sent last; bulk goes into `bulk`.
    ///
    /// The outer error means that the channel is of no use any more, the inner one is the server's
    /// answer.
    ///
    /// # Errors
    /// Outer: `Disconnected`, `Protocol`, or that of `stalled`.
    pub fn receive(
        &mut self,
        number: u16,
        bulk: &mut Bulk<'_>,
        stalled: &mut Stalled<'_>,
    ) -> Result<Result<Reply>> {
        let header = self
            .frames
            .read_header(stalled)?
            .ok_or_else(|| FsError::new(ErrorKind::Disconnected, "receive"))?;
        self.frames.read_body(&header, &mut self.body, stalled)?;
        let expected = header.flags & FLAG_REPLY != 0
            && header.request_id == self.next_id
            && header.number == number;
        let bulk_len = header.bulk_len as usize;
        match bulk {
            Bulk::Receive(buffer) if expected && bulk_len <= buffer.len() => {
                self.frames.read_exact(&mut buffer[..bulk_len], stalled)?;
            }
            _ if expected && bulk_len == 0 => {}
            _ => {
                return Err(
                    FsError::new(ErrorKind::Protocol, "receive").because("unexpected answer")
                );
            }
        }
        if header.status != 0 {
            let body = pb::ErrorBody::decode(self.body.as_slice()).unwrap_or_default();
            return Ok(Err(error_from_wire(header.status, body)));
        }
        Reply::decode(number, &self.body).map(Ok)
    }
}

fn greet(
    frames: &mut FrameStream,
    identity: &Identity,
    number: u32,
    generation: u64,
) -> Result<()> {
    let hello = pb::Hello {
        role: identity.role as u32,
        client: identity.client.0,
        channel: number,
        generation,
        nonce: nonce()?.to_vec(),
        name: identity.name.clone(),
        incarnation: incarnation(),
    }
    .encode_to_vec();
    send_plain(frames, handshake::HELLO, &hello)?;
    let challenge_bytes = receive_plain(frames, handshake::CHALLENGE)?;
    let challenge = decode::<pb::Challenge>(&challenge_bytes)?;
    if !challenge.proof_needed {
        // Only the kernel's word on a local socket can stand in for a proof.
        if !frames.stream().peer_is_same_user() {
            return Err(FsError::new(ErrorKind::Denied, "connect")
                .because("the server asks for no proof over a network connection"));
        }
        send_plain(frames, handshake::PROOF, &[])?;
        receive_plain(frames, handshake::WELCOME)?;
        return Ok(());
    }
    let key = identity.key.as_ref().ok_or_else(|| {
        FsError::new(ErrorKind::Denied, "connect")
            .because("a cluster key is needed; give --key FILE")
    })?;
    let key = key.for_role(identity.role)?;
    let mac = key.prove(Side::Connecting, &hello, &challenge_bytes).to_vec();
    send_plain(frames, handshake::PROOF, &pb::Proof { mac }.encode_to_vec())?;
    let welcome = decode::<pb::Welcome>(&receive_plain(frames, handshake::WELCOME)?)?;
    if !key.verify(Side::Accepting, &hello, &challenge_bytes, &welcome.mac) {
        return Err(FsError::new(ErrorKind::Denied, "connect")
            .because("the server does not know the cluster's key"));
    }
    Ok(())
}

/// Decodes a handshake message.
///
/// # Errors
/// `Protocol`.
pub fn decode<M: prost::Message + Default>(bytes: &[u8]) -> Result<M> {
    M::decode(bytes).map_err(|error| FsError::new(ErrorKind::Protocol, "handshake").because(error))
}

/// Sends a handshake message.
///
/// # Errors
/// `Disconnected`, `TimedOut`.
pub fn send_plain(frames: &mut FrameStream, number: u16, body: &[u8]) -> Result<()> {
    send_status(frames, number, 0, body)
}

/// Sends a handshake message with a status: a refusal carries its reason in the body.
///
/// # Errors
/// `Disconnected`, `TimedOut`.
pub fn send_status(frames: &mut FrameStream, number: u16, status: u16, body: &[u8]) -> Result<()> {
    let header = Header {
        number,
        status,
        body_len: body.len() as u32,
        body_crc: checksum::crc32c(body),
        ..Header::default()
    };
    frames.stream_mut().send(&header.encode(), body, &mut give_up)
}

/// Receives handshake message `number`.
///
/// # Errors
/// The peer's refusal, or `Disconnected`, `TimedOut`, `Protocol`.
pub fn receive_plain(frames: &mut FrameStream, number: u16) -> Result<Vec<u8>> {
    /// Handshake messages are small; whoever sends more has no business here.
    const LIMIT: u32 = 4096;
    let header = frames
        .read_header(&mut give_up)?
        .ok_or_else(|| FsError::new(ErrorKind::Disconnected, "handshake"))?;
    if header.body_len > LIMIT || header.bulk_len != 0 {
        return Err(FsError::new(ErrorKind::Protocol, "handshake").because("message too long"));
    }
    let mut body = Vec::new();
    frames.read_body(&header, &mut body, &mut give_up)?;
    if header.status != 0 {
        let refusal = pb::ErrorBody::decode(body.as_slice()).unwrap_or_default();
        return Err(error_from_wire(header.status, refusal));
    }
    if header.number != number {
        return Err(FsError::new(ErrorKind::Protocol, "handshake").because("message out of turn"));
    }
    Ok(body)
}
