//! Ranks on other machines: `weft bench serve` there, connections from the driver here.
//!
//! Both sides prove that they know the same key before anything is said ([`weft_rpc::auth`]); what
//! follows is not encrypted. A connection is one rank, and a rank can be told to run a benchmark and
//! nothing else.

use super::launch::process;
use super::link::Link;
use std::ffi::OsString;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::path::Path;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use weft_rpc::ClusterKey;
use weft_rpc::auth::{KEY_LEN, Side, nonce};

/// Port unless told otherwise.
pub const PORT: u16 = 7494;
/// What both sides send first.
const MAGIC: &[u8; 16] = b"weft bench    1\n";
/// Longest wait for a connection, and for each step of the handshake.
const PATIENCE: Duration = Duration::from_secs(10);
/// Ranks and strangers at once.
const MAX_CONNECTIONS: usize = 1024;

/// Accepts ranks for as long as the process lives; each is a process of its own.
///
/// # Errors
/// Those of the listener. What goes wrong with one connection is told on standard error.
pub fn serve(
    listener: &TcpListener,
    key: &ClusterKey,
    program: &Path,
    arguments: &[OsString],
) -> io::Result<()> {
    let open = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming() {
        let stream = stream?;
        if open.fetch_add(1, Ordering::SeqCst) >= MAX_CONNECTIONS {
            open.fetch_sub(1, Ordering::SeqCst);
            continue;
        }
        let (open, key) = (open.clone(), key.clone());
        let (program, arguments) = (program.to_path_buf(), arguments.to_vec());
        std::thread::Builder::new().name("bench rank".into()).spawn(move || {
            let rank = accept(stream, &key).and_then(|link| process(&program, &arguments, link));
            if let Err(error) = rank.and_then(|mut child: Child| child.wait()) {
                eprintln!("weft: {error}");
            }
            open.fetch_sub(1, Ordering::SeqCst);
        })?;
    }
    Ok(())
}

/// Connects to `weft bench serve` at `address` (HOST:PORT); what is there becomes a rank.
///
/// # Errors
/// Naming the address: nobody there, another key, another protocol.
pub fn connect(address: &str, key: &ClusterKey, patience: Duration) -> io::Result<Link> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{address}: {error}"));
    let nobody = || io::Error::new(ErrorKind::NotFound, "no such host");
    let target = address.to_socket_addrs().map_err(named)?.next();
    let target = target.ok_or_else(nobody).map_err(named)?;
    let stream = TcpStream::connect_timeout(&target, PATIENCE).map_err(named)?;
    introduce(&stream, key).map_err(named)?;
    Link::tcp(stream, patience)
}

/// The side that connects.
fn introduce(stream: &TcpStream, key: &ClusterKey) -> io::Result<()> {
    set_patience(stream)?;
    let hello = nonce().map_err(io::Error::other)?;
    send(stream, &[MAGIC, &hello])?;
    let [magic, challenge, proof] = receive(stream)?;
    if magic[..MAGIC.len()] != MAGIC[..] {
        return Err(io::Error::new(ErrorKind::InvalidData, "this is not `weft bench serve`"));
    }
    if !key.verify(Side::Accepting, &hello, &challenge, &proof) {
        return Err(io::Error::new(ErrorKind::PermissionDenied, "it has another key"));
    }
    send(stream, &[&key.prove(Side::Connecting, &hello, &challenge)])
}

/// The side that accepts.
pub(super) fn accept(stream: TcpStream, key: &ClusterKey) -> io::Result<Link> {
    let peer = stream.peer_addr()?;
    let refused = |why: &str| io::Error::other(format!("refused {peer}: {why}"));
    set_patience(&stream)?;
    let mut hello = [0u8; MAGIC.len() + KEY_LEN];
    (&stream).read_exact(&mut hello)?;
    let (magic, hello) = hello.split_at(MAGIC.len());
    if magic != MAGIC {
        return Err(refused("it does not speak this protocol"));
    }
    let challenge = nonce().map_err(io::Error::other)?;
    let mut padded = [b' '; KEY_LEN];
    padded[..MAGIC.len()].copy_from_slice(MAGIC);
    send(&stream, &[&padded, &challenge, &key.prove(Side::Accepting, hello, &challenge)])?;
    let [proof] = receive(&stream)?;
    if !key.verify(Side::Connecting, hello, &challenge, &proof) {
        return Err(refused("it has another key"));
    }
    Link::tcp(stream, PATIENCE)
}

fn set_patience(stream: &TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))
}

fn send(mut stream: &TcpStream, parts: &[&[u8]]) -> io::Result<()> {
    stream.write_all(&parts.concat())
}

fn receive<const N: usize>(mut stream: &TcpStream) -> io::Result<[[u8; KEY_LEN]; N]> {
    let mut parts = [[0u8; KEY_LEN]; N];
    parts.iter_mut().try_for_each(|part| stream.read_exact(part))?;
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meet(ours: &ClusterKey, theirs: &ClusterKey) -> (io::Result<Link>, io::Result<Link>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        std::thread::scope(|scope| {
            let there = scope.spawn(|| accept(listener.accept().unwrap().0, theirs));
            (connect(&address, ours, PATIENCE), there.join().unwrap())
        })
    }

    #[test]
    fn those_with_the_key_meet() {
        let key = ClusterKey::generate().unwrap();
        let (one, other) = meet(&key, &key);
        let (one, other) = (one.unwrap(), other.unwrap());
        one.send(super::super::link::Kind::Done, b"x").unwrap();
        assert_eq!(other.receive().unwrap().1, b"x");
    }

    #[test]
    fn others_do_not() {
        let (ours, theirs) = (ClusterKey::generate().unwrap(), ClusterKey::generate().unwrap());
        let (one, other) = meet(&ours, &theirs);
        assert_eq!(one.unwrap_err().kind(), ErrorKind::PermissionDenied);
        assert!(other.is_err());
    }
}
