//! A real server and real sockets: handshake, bulk both ways, exactly-once channels, bad peers.

use parking_lot::Mutex;
use prost::Message as _;
use std::io::{Read, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};
use weft_model::map::{Node, Target, TargetState};
use weft_model::{ClientId, ClusterMap, Epoch, ErrorKind, FsError, NodeId, Result, TargetId};
use weft_rpc::channel::{Identity, handshake, receive_plain, send_plain};
use weft_rpc::pb::{self, oss};
use weft_rpc::registry::Registry;
use weft_rpc::router::{Patience, Router};
use weft_rpc::server::{Limits, Server};
use weft_rpc::stream::{FrameStream, Listener, Stream};
use weft_rpc::{Bulk, CallInfo, ClusterKey, Message, Reply, Request, Role, Service, SystemEnv};

/// Keeps one object in memory.
#[derive(Default)]
struct OneObject(Mutex<Vec<u8>>);

impl Service for OneObject {
    fn serve(&self, _: &CallInfo, request: &Request, bulk: Bulk<'_>) -> Result<Reply> {
        let mut data = self.0.lock();
        match (request, bulk) {
            (Request::Write(write), Bulk::Send(bytes)) => {
                let (start, end) = (write.offset as usize, write.offset as usize + bytes.len());
                let size = data.len().max(end);
                data.resize(size, 0);
                data[start..end].copy_from_slice(bytes);
                Ok(Reply::Write(oss::WriteReply { blocks: 1, free: 0 }))
            }
            (Request::Read(read), Bulk::Receive(buffer)) => {
                let start = (read.offset as usize).min(data.len());
                let len = buffer.len().min(data.len() - start);
                buffer[..len].copy_from_slice(&data[start..start + len]);
                Ok(Reply::Read(oss::ReadReply { len: len as u32, sums: vec![] }))
            }
            _ => Err(FsError::new(ErrorKind::NotImplemented, "test")),
        }
    }
}

fn map(addresses: Vec<String>) -> ClusterMap {
    ClusterMap {
        epoch: Epoch(1),
        nodes: vec![Node { id: NodeId(1), name: "n1".into(), addresses }],
        targets: vec![Target {
            id: TargetId::ost(0),
            uuid: String::new(),
            node: NodeId(1),
            state: TargetState::Up,
            space: Default::default(),
        }],
        ..ClusterMap::default()
    }
}

fn router(addresses: Vec<String>, role: Role, key: Option<ClusterKey>) -> Router {
    let identity = Identity { role, client: ClientId(7), name: "test".into(), key };
    let router = Router::new(identity, addresses.clone(), None, Arc::new(SystemEnv::new()));
    router.set_map(map(addresses));
    router
}

fn serve(address: &str, key: Option<ClusterKey>) -> Server {
    let registry = Arc::new(Registry::default());
    registry.add(TargetId::ost(0), Arc::new(OneObject::default()));
    let listener = Listener::bind(address).unwrap();
    Server::start("n1", vec![listener], key, registry, Limits::default())
}

fn write_and_read_back(router: &Router, len: usize) {
    let data: Vec<u8> = (0..len).map(|i| (i * 7) as u8).collect();
    let patience = Patience::of(Duration::from_secs(5));
    let write = oss::Write { offset: 3, ..Default::default() }.into_request();
    router.call(TargetId::ost(0), &write, Bulk::Send(&data), &patience).unwrap();
    let mut back = vec![0; len];
    let read = oss::Read { offset: 3, len: len as u32, ..Default::default() }.into_request();
    let reply = router.call(TargetId::ost(0), &read, Bulk::Receive(&mut back), &patience).unwrap();
    assert!(matches!(reply, Reply::Read(r) if r.len as usize == len));
    assert!(back == data);
}

#[test]
fn bulk_travels_both_ways_over_tcp_and_unix() {
    let key = ClusterKey::generate().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let unix = format!("unix:{}", dir.path().join("s").display());
    for (address, key) in [("127.0.0.1:0", Some(key)), (unix.as_str(), None)] {
        let server = serve(address, key.clone());
        let router = router(server.addresses().to_vec(), Role::Client, key);
        for len in [1, 4096, 70_000, 1 << 20, 3 << 20] {
            write_and_read_back(&router, len);
        }
    }
}

#[test]
fn a_wrong_or_missing_key_is_refused() {
    let key = ClusterKey::generate().unwrap();
    let server = serve("127.0.0.1:0", Some(key.clone()));
    let ask = |role, key| {
        let router = router(server.addresses().to_vec(), role, key);
        let request = oss::Read::default().into_request();
        router.call(TargetId::ost(0), &request, Bulk::None, &Patience::of(Duration::from_secs(2)))
    };
    let wrong = ClusterKey::generate().unwrap();
    assert_eq!(ask(Role::Client, Some(wrong)).unwrap_err().kind, ErrorKind::Denied);
    assert_eq!(ask(Role::Client, None).unwrap_err().kind, ErrorKind::Denied);
    let client_key = key.for_role(Role::Client).unwrap();
    assert_eq!(ask(Role::Server, Some(client_key.clone())).unwrap_err().kind, ErrorKind::Denied);
    assert_eq!(ask(Role::Client, Some(client_key)).unwrap_err().kind, ErrorKind::NotImplemented);
    let destroy = oss::Destroy::default();
    let router = router(server.addresses().to_vec(), Role::Client, Some(key));
    let refused = router.ask(TargetId::ost(0), destroy, &Patience::FOREVER).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Denied);
}

#[test]
fn garbage_is_dropped_and_others_go_on() {
    let server = serve("127.0.0.1:0", Some(ClusterKey::generate().unwrap()));
    for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 300], b"WEFT"] {
        let mut stream = std::net::TcpStream::connect(&server.addresses()[0]).unwrap();
        stream.write_all(garbage).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        // The server answers with a refusal or nothing, and closes.
        let mut answer = Vec::new();
        stream.set_read_timeout(Some(Duration::from_secs(8))).unwrap();
        stream.read_to_end(&mut answer).unwrap();
    }
    assert!(server.connections() <= 1);
}

#[test]
fn a_restarted_server_is_found_again() {
    let dir = tempfile::tempdir().unwrap();
    let address = format!("unix:{}", dir.path().join("s").display());
    let first = serve(&address, None);
    let router = router(vec![address.clone()], Role::Client, None);
    write_and_read_back(&router, 100);
    first.stop();
    drop(first);
    let later = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        serve(&address, None)
    });
    write_and_read_back(&router, 100);
    drop(later.join().unwrap());
}

#[test]
fn patience_ends() {
    let router = router(vec!["127.0.0.1:1".into()], Role::Client, None);
    let start = Instant::now();
    let request = oss::Read::default().into_request();
    let patience = Patience::of(Duration::from_millis(300));
    let error = router.call(TargetId::ost(0), &request, Bulk::None, &patience).unwrap_err();
    assert_eq!(error.kind, ErrorKind::TimedOut);
    assert!(start.elapsed() < Duration::from_secs(5));
    let stop = || true;
    let patience = Patience { limit: None, interrupted: Some(&stop) };
    let error = router.call(TargetId::ost(0), &request, Bulk::None, &patience).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Interrupted);
}

/// Notes which requests were carried out, by their offsets. The one at 1 takes its time, and so does,
/// less, the one at 2.
#[derive(Default)]
struct Slow(Mutex<Vec<u64>>);

impl Service for Slow {
    fn serve(&self, _: &CallInfo, request: &Request, _: Bulk<'_>) -> Result<Reply> {
        let Request::Write(write) = request else {
            return Err(FsError::new(ErrorKind::NotImplemented, "test"));
        };
        let pause = [0, 4000, 2600].get(write.offset as usize).copied().unwrap_or(0);
        std::thread::sleep(Duration::from_millis(pause));
        self.0.lock().push(write.offset);
        Ok(Reply::Write(oss::WriteReply { blocks: 1, free: 0 }))
    }
}

#[test]
fn nothing_overtakes_a_request_that_was_given_up() {
    let slow = Arc::new(Slow::default());
    let registry = Arc::new(Registry::default());
    registry.add(TargetId::ost(0), slow.clone());
    let listener = Listener::bind("127.0.0.1:0").unwrap();
    let key = Some(ClusterKey::generate().unwrap());
    let server = Server::start("n1", vec![listener], key.clone(), registry, Limits::default());
    let router = router(server.addresses().to_vec(), Role::Client, key);
    let write = |offset, seconds| {
        let request = oss::Write { offset, ..Default::default() }.into_request();
        let patience = Patience::of(Duration::from_secs(seconds));
        router.call(TargetId::ost(0), &request, Bulk::Send(b"x"), &patience)
    };
    std::thread::scope(|scope| {
        // Its channel is free, and the last one used, when the one at 1 is given up after two seconds.
        let beside = scope.spawn(|| write(2, 10).unwrap());
        assert_eq!(write(1, 1).unwrap_err().kind, ErrorKind::TimedOut);
        beside.join().unwrap();
    });
    write(3, 10).unwrap();
    assert_eq!(*slow.0.lock(), [2, 1, 3]);
}

/// A process that carries on the work of another one greets on whatever channel.
#[test]
fn a_newer_process_waits_for_the_requests_of_the_older_one() {
    let slow = Arc::new(Slow::default());
    let registry = Arc::new(Registry::default());
    registry.add(TargetId::ost(0), slow.clone());
    let dir = tempfile::tempdir().unwrap();
    let address = format!("unix:{}", dir.path().join("socket").display());
    let listener = Listener::bind(&address).unwrap();
    let _server = Server::start("n1", vec![listener], None, registry, Limits::default());
    let router = router(vec![address.clone()], Role::Client, None);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let request = oss::Write { offset: 2, ..Default::default() }.into_request();
            let patience = Patience::of(Duration::from_secs(1));
            // Its connection is ended under it, and it is not let in again.
            router.call(TargetId::ost(0), &request, Bulk::Send(b"x"), &patience).unwrap_err();
        });
        std::thread::sleep(Duration::from_millis(500));
        let stream = Stream::connect(&address, Duration::from_secs(1)).unwrap();
        let mut frames = FrameStream::new(stream);
        let hello = pb::Hello {
            role: Role::Client as u32,
            client: 7,
            channel: 40,
            generation: u64::MAX,
            incarnation: u64::MAX,
            nonce: vec![1; 32],
            ..pb::Hello::default()
        };
        send_plain(&mut frames, handshake::HELLO, &hello.encode_to_vec()).unwrap();
        receive_plain(&mut frames, handshake::CHALLENGE).unwrap();
        send_plain(&mut frames, handshake::PROOF, &[]).unwrap();
        assert!(slow.0.lock().is_empty());
        receive_plain(&mut frames, handshake::WELCOME).unwrap();
        assert_eq!(*slow.0.lock(), [2]);
    });
}
