//! The answering side: a thread per connection that reads a request, carries it out and answers.
//!
//! **Channels.** A client numbers its connections to a node and counts how often it has opened each.
//! Before a newer connection of a channel is welcomed, the older one is shut down and the request it
//! may still be carrying out has ended. So what a client sends after a reconnect never races with
//! what it sent before, and a resent write cannot be overtaken by its own ghost. In the same way the first
//! connection of a process that carries on the work of a client's earlier one ends all connections of that
//! one.

use crate::auth::{ClusterKey, Role, Side, nonce};
use crate::buffer::BufferPool;
use crate::call::{Bulk, CallInfo};
use crate::channel::{decode, handshake, receive_plain, send_plain, send_status};
use crate::frame::{FLAG_REPLY, FLAG_WANT_BULK, HEADER_LEN, Header};
use crate::message::{Reply, Request};
use crate::pb;
use crate::registry::Registry;
use crate::stream::{FrameStream, Listener, Stream, give_up};
use parking_lot::Mutex;
use prost::Message as _;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;
use weft_model::{ClientId, Epoch, ErrorKind, FsError, Result, TargetId, Xid, checksum};

/// Longest wait for the rest of a frame whose header has come, and for a peer to take an answer.
const TRANSFER_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// A refused peer waits this long for its answer, so that guessing keys is slow.
const REFUSAL_DELAY: Duration = Duration::from_secs(1);
/// Connections being greeted at a time; more have to come again.
const MAX_HANDSHAKES: usize = 64;
/// Longest wait for a bulk buffer.
const BUFFER_PATIENCE: Duration = Duration::from_secs(10);

/// Bounds of a server.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at a time.
    pub connections: usize,
    /// Bytes of bulk buffers of all connections together.
    pub bulk_bytes: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { connections: 8192, bulk_bytes: 256 << 20 }
    }
}

/// A running server.
pub struct Server {
    shared: Arc<Shared>,
    addresses: Vec<String>,
}

struct Shared {
    node: String,
    key: Option<ClusterKey>,
    registry: Arc<Registry>,
    buffers: Arc<BufferPool>,
    limits: Limits,
    stopping: AtomicBool,
    connections: AtomicUsize,
    handshakes: AtomicUsize,
    channels: Mutex<HashMap<(ClientId, u32), Arc<ChannelState>>>,
    per_client: Mutex<HashMap<ClientId, usize>>,
    open: Mutex<HashMap<u64, Stream>>,
    next_connection: std::sync::atomic::AtomicU64,
}

/// The newest connection of a channel.
struct ChannelState {
    generation: u64,
    /// Of the process that connected.
    incarnation: u64,
    stream: Stream,
    /// Connections whose requests have to end before any is taken over this one.
    former: Mutex<Vec<Arc<ChannelState>>>,
    /// Held while a request is carried out.
    busy: Mutex<()>,
    replaced: AtomicBool,
}

impl Server {
    /// Starts answering on all `listeners`. Without a key only processes of the same user on this
    /// machine are let in.
    pub fn start(
        node: &str,
        listeners: Vec<Listener>,
        key: Option<ClusterKey>,
        registry: Arc<Registry>,
        limits: Limits,
    ) -> Server {
        let addresses = listeners.iter().map(Listener::address).collect();
        let shared = Arc::new(Shared {
            node: node.to_string(),
            key,
            registry,
            buffers: BufferPool::new(limits.bulk_bytes),
            limits,
            stopping: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
            handshakes: AtomicUsize::new(0),
            channels: Mutex::default(),
            per_client: Mutex::default(),
            open: Mutex::default(),
            next_connection: std::sync::atomic::AtomicU64::new(1),
        });
        for listener in listeners {
            let shared = shared.clone();
            spawn("weft-accept", move || accept_loop(&shared, &listener));
        }
        Server { shared, addresses }
    }

    /// Where it listens, with the ports the system chose.
    pub fn addresses(&self) -> &[String] {
        &self.addresses
    }

    /// Number of open connections.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// Stops accepting and ends every connection. Requests being carried out still end.
    pub fn stop(&self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        for address in &self.addresses {
            // Wakes the accepting thread, which then sees that it has to go.
            let _ = Stream::connect(address, Duration::from_millis(200));
        }
        self.shared.open.lock().values().for_each(Stream::shutdown);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) {
    let builder = thread::Builder::new().name(name.into()).stack_size(512 << 10);
    if let Err(error) = builder.spawn(body) {
        tracing::error!(%error, thread = name, "cannot start thread");
    }
}

fn accept_loop(shared: &Arc<Shared>, listener: &Listener) {
    loop {
        let accepted = listener.accept();
        if shared.stopping.load(Ordering::SeqCst) {
            return;
        }
        match accepted {
            Ok(stream) => admit(shared, stream),
            Err(error) => {
                // Out of descriptors, most likely; they come back when connections end.
                tracing::warn!(%error, "cannot accept connection");
                thread::sleep(Duration::from_millis(50));
            }
        }
    }
}

fn admit(shared: &Arc<Shared>, stream: Stream) {
    let full = shared.connections.load(Ordering::Relaxed) >= shared.limits.connections
        || shared.handshakes.load(Ordering::Relaxed) >= MAX_HANDSHAKES;
    if full {
        tracing::warn!(peer = stream.peer_name(), "too many connections, peer turned away");
        return stream.shutdown();
    }
    shared.connections.fetch_add(1, Ordering::Relaxed);
    shared.handshakes.fetch_add(1, Ordering::Relaxed);
    let shared = shared.clone();
    spawn("weft-conn", move || {
        let id = shared.next_connection.fetch_add(1, Ordering::Relaxed);
        if let Ok(handle) = stream.try_clone() {
            shared.open.lock().insert(id, handle);
        }
        serve_connection(&shared, stream);
        shared.open.lock().remove(&id);
        shared.connections.fetch_sub(1, Ordering::Relaxed);
    });
}

/// A channel's key and the connection that is its newest.
type OwnChannel = ((ClientId, u32), Arc<ChannelState>);

/// A peer that has been let in.
struct Peer {
    role: Role,
    client: ClientId,
    name: String,
    channel: Option<OwnChannel>,
}

fn serve_connection(shared: &Shared, stream: Stream) {
    let peer_name = stream.peer_name();
    let mut frames = FrameStream::new(stream);
    let greeted = frames
        .stream()
        .set_timeout(Some(HANDSHAKE_TIMEOUT))
        .map_err(|error| FsError::from_io("handshake", &error))
        .and_then(|()| welcome(shared, &mut frames));
    if matches!(&greeted, Err(error) if error.kind == ErrorKind::Denied) {
        // Still counted as a handshake while it waits: the delay is what limits the rate.
        thread::sleep(REFUSAL_DELAY);
    }
    shared.handshakes.fetch_sub(1, Ordering::Relaxed);
    let peer = match greeted {
        Ok(Some(peer)) => peer,
        Ok(None) => return,
        Err(error) => {
            tracing::warn!(peer = peer_name, %error, "connection refused");
            let body = pb::ErrorBody::from(&error).encode_to_vec();
            // The peer may be gone; it was refused either way.
            let _ = send_status(&mut frames, handshake::WELCOME, error.kind as u16, &body);
            return frames.stream().shutdown();
        }
    };
    *shared.per_client.lock().entry(peer.client).or_insert(0) += 1;
    if let Err(error) = serve_requests(shared, &mut frames, &peer) {
        let lost = matches!(error.kind, ErrorKind::Disconnected);
        if !lost && !shared.stopping.load(Ordering::Relaxed) {
            tracing::warn!(peer = peer_name, name = peer.name, %error, "connection dropped");
        }
    }
    frames.stream().shutdown();
    farewell(shared, &peer);
}

fn farewell(shared: &Shared, peer: &Peer) {
    if let Some((key, state)) = &peer.channel {
        let mut channels = shared.channels.lock();
        if channels.get(key).is_some_and(|newest| Arc::ptr_eq(newest, state)) {
            channels.remove(key);
        }
    }
    let mut per_client = shared.per_client.lock();
    let left = per_client.get_mut(&peer.client).map_or(0, |count| {
        *count -= 1;
        *count
    });
    if left == 0 {
        per_client.remove(&peer.client);
        drop(per_client);
        if peer.client != ClientId::NONE {
            shared.registry.disconnected(peer.client);
        }
    }
}

/// The handshake. `None` when the peer left without a word (a port probe).
fn welcome(shared: &Shared, frames: &mut FrameStream) -> Result<Option<Peer>> {
    let hello_bytes = match receive_plain(frames, handshake::HELLO) {
        Ok(bytes) => bytes,
        Err(error) if error.kind == ErrorKind::Disconnected => return Ok(None),
        Err(error) => return Err(error),
    };
    let hello: pb::Hello = decode(&hello_bytes)?;
    let denied = |why: &str| FsError::new(ErrorKind::Denied, "handshake").because(why);
    let role = Role::from_wire(hello.role).ok_or_else(|| denied("no such role"))?;
    let trusted = frames.stream().peer_is_same_user();
    let challenge =
        pb::Challenge { nonce: nonce()?.to_vec(), proof_needed: !trusted }.encode_to_vec();
    send_plain(frames, handshake::CHALLENGE, &challenge)?;
    let proof: pb::Proof = decode(&receive_plain(frames, handshake::PROOF)?)?;
    let mut mac = Vec::new();
    if !trusted {
        let key =
            shared.key.as_ref().ok_or_else(|| denied("this server takes local users only"))?;
        let key = key.for_role(role).map_err(|_| denied("this server has no key for that role"))?;
        if !key.verify(Side::Connecting, &hello_bytes, &challenge, &proof.mac) {
            return Err(denied("the proof of knowing the cluster's key is wrong"));
        }
        mac = key.prove(Side::Accepting, &hello_bytes, &challenge).to_vec();
    }
    let client = ClientId(hello.client);
    let channel = take_over(shared, frames, client, &hello)?;
    let welcome = pb::Welcome { mac, node: shared.node.clone() }.encode_to_vec();
    send_plain(frames, handshake::WELCOME, &welcome)?;
    Ok(Some(Peer { role, client, name: hello.name, channel }))
}

/// Makes this the newest connection of its channel and waits for the end of the former one, and of those of
/// the client's earlier process.
fn take_over(
    shared: &Shared,
    frames: &FrameStream,
    client: ClientId,
    hello: &pb::Hello,
) -> Result<Option<OwnChannel>> {
    if client == ClientId::NONE {
        return Ok(None);
    }
    let key = (client, hello.channel);
    let handle = frames.stream().try_clone();
    let state = Arc::new(ChannelState {
        generation: hello.generation,
        incarnation: hello.incarnation,
        stream: handle.map_err(|error| FsError::from_io("handshake", &error))?,
        former: Mutex::default(),
        busy: Mutex::new(()),
        replaced: AtomicBool::new(false),
    });
    let former = {
        let mut channels = shared.channels.lock();
        if channels.get(&key).is_some_and(|former| former.generation >= hello.generation) {
            return Err(FsError::new(ErrorKind::Protocol, "handshake")
                .because("a newer connection of this channel is open"));
        }
        let of_client = channels.iter().filter(|((owner, _), _)| *owner == client);
        let others: Vec<_> = of_client.map(|(_, other)| other.clone()).collect();
        if others.iter().any(|other| other.incarnation > hello.incarnation) {
            return Err(FsError::new(ErrorKind::Protocol, "handshake")
                .because("another process carries on this client's work"));
        }
        let replaced = channels.insert(key, state.clone());
        let is_over = |other: &&Arc<ChannelState>| {
            other.incarnation < hello.incarnation
                || replaced.as_ref().is_some_and(|replaced| Arc::ptr_eq(replaced, other))
        };
        let mut former: Vec<_> = others.iter().filter(is_over).cloned().collect();
        // Somebody else may still wait for the end of these.
        others.iter().for_each(|other| former.extend(other.former.lock().iter().cloned()));
        *state.former.lock() = former.clone();
        former
    };
    for former in &former {
        former.replaced.store(true, Ordering::SeqCst);
        former.stream.shutdown();
    }
    for former in former {
        if former.busy.try_lock_for(HANDSHAKE_TIMEOUT).is_none() {
            return Err(FsError::new(ErrorKind::NotReady, "handshake")
                .because("a request of the former connection is still being carried out"));
        }
    }
    state.former.lock().clear();
    Ok(Some((key, state)))
}

fn serve_requests(shared: &Shared, frames: &mut FrameStream, peer: &Peer) -> Result<()> {
    let mut body = Vec::new();
    let mut out = Vec::with_capacity(512);
    let timeout = |frames: &FrameStream, timeout| {
        frames.stream().set_timeout(timeout).map_err(|error| FsError::from_io("serve", &error))
    };
    // One bound for everything: a peer may be idle for long, but must not stall within a frame.
    timeout(frames, Some(TRANSFER_TIMEOUT))?;
    loop {
        let header = match frames.read_header(&mut give_up) {
            Ok(Some(header)) => header,
            Ok(None) => return Ok(()),
            Err(error) if error.kind == ErrorKind::TimedOut && frames.is_between_frames() => {
                continue;
            }
            Err(error) => return Err(error),
        };
        frames.read_body(&header, &mut body, &mut give_up)?;
        let bulk_len = header.bulk_len as usize;
        let mut buffer = match bulk_len {
            0 => None,
            len => Some(shared.buffers.take(len, BUFFER_PATIENCE)?),
        };
        if header.bulk_follows() > 0
            && let Some(buffer) = buffer.as_mut()
        {
            frames.read_exact(buffer, &mut give_up)?;
        }
        let request = Request::decode(header.number, &body);
        let answer = {
            // Whoever waits for news changes nothing, and is not waited for.
            let waits = matches!(request, Ok(Request::AwaitRecalls(_) | Request::AwaitLock(_)));
            let channel = peer.channel.as_ref().filter(|_| !waits);
            let _busy = channel.map(|(_, state)| state.busy.lock());
            if peer.channel.as_ref().is_some_and(|(_, s)| s.replaced.load(Ordering::SeqCst)) {
                return Ok(());
            }
            let bulk = match buffer.as_mut() {
                None => Bulk::None,
                Some(buffer) if header.flags & FLAG_WANT_BULK != 0 => Bulk::Receive(buffer),
                Some(buffer) => Bulk::Send(buffer),
            };
            request.and_then(|request| carry_out(shared, peer, &header, &request, bulk))
        };
        let bulk_out = encode_answer(&header, &answer, &mut out);
        let data =
            buffer.as_deref().map_or(&[][..], |buffer| &buffer[..bulk_out.min(buffer.len())]);
        frames.stream_mut().send(&out, data, &mut give_up)?;
    }
}

fn carry_out(
    shared: &Shared,
    peer: &Peer,
    header: &Header,
    request: &Request,
    bulk: Bulk<'_>,
) -> Result<Reply> {
    let target = TargetId::from_wire(header.target)
        .ok_or_else(|| FsError::new(ErrorKind::Protocol, "serve").because("no such target"))?;
    let info = CallInfo {
        role: peer.role,
        // A server or administrator may speak for itself only; a client is who it greeted as.
        client: peer.client,
        xid: Xid(header.xid),
        epoch: Epoch(header.epoch),
        target,
        wire: true,
    };
    shared.registry.dispatch(&info, request, bulk)
}

/// Encodes the answer's head into `out`; returns how many bytes of bulk go with it.
fn encode_answer(header: &Header, answer: &Result<Reply>, out: &mut Vec<u8>) -> usize {
    out.clear();
    out.resize(HEADER_LEN, 0);
    let (status, bulk_len) = match answer {
        Ok(reply) => {
            reply.encode(out);
            (0, reply.bulk_len())
        }
        Err(error) => {
            pb::ErrorBody::from(error).encode_raw(out);
            (error.kind as u16, 0)
        }
    };
    let body = &out[HEADER_LEN..];
    let reply = Header {
        number: header.number,
        flags: FLAG_REPLY,
        status,
        target: header.target,
        request_id: header.request_id,
        session: header.session,
        xid: header.xid,
        epoch: header.epoch,
        body_len: body.len() as u32,
        bulk_len: bulk_len as u32,
        body_crc: checksum::crc32c(body),
    };
    out[..HEADER_LEN].copy_from_slice(&reply.encode());
    bulk_len
}

impl Reply {
    /// Bytes of bulk that go with the reply.
    pub const fn bulk_len(&self) -> usize {
        match self {
            Reply::Read(read) => read.len as usize,
            _ => 0,
        }
    }
}
