//! Requests that no kernel would send.

use std::fs::File;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::*;
use crate::kernel::abi::{CreateIn, InHeader, MkdirIn, ReadIn, SetxattrExt, SetxattrIn, WriteIn};
use crate::null::{NullFs, NullOptions};

const OUT: usize = 8192;
const OPCODES: u32 = 60;

/// A dispatcher with nothing behind it; what it sends unasked goes to `/dev/null`.
struct Bench {
    server: Server<NullFs>,
    device: Arc<Device>,
}

impl Bench {
    fn new() -> Bench {
        let null = File::options().read(true).write(true).open("/dev/null").unwrap();
        let fs = NullFs::new(NullOptions::default());
        let (terms, interrupts) = (Terms::default(), Interrupts::new(1, false, |_| true));
        let device = Arc::new(Device::from_fd(null.into()));
        Bench { server: Server { fs, terms, interrupts }, device }
    }

    /// Serves the bytes as the workers do.
    fn serve(&self, bytes: &[u8]) -> Outcome {
        let slot = self.server.interrupts.begin(0, &InHeader::default());
        let mut out = [0; OUT];
        let outcome = match Message::decode(bytes) {
            Ok(message) => self.server.serve(message, Origin::Device(&self.device), slot, &mut out),
            Err(errno) => Outcome::Error(errno),
        };
        assert!(!matches!(outcome, Outcome::Reply(length) if length > OUT));
        outcome
    }
}

/// A request with the right length in its header.
fn request(opcode: u32, nodeid: u64, parts: &[&[u8]]) -> Vec<u8> {
    let body = parts.concat();
    let len = (size_of::<InHeader>() + body.len()) as u32;
    let header = InHeader { len, opcode, unique: 2, nodeid, ..InHeader::default() };
    [header.as_bytes(), &body].concat()
}

/// One valid request of most shapes: fixed, fixed and names, names, fixed and data.
fn valid() -> Vec<Vec<u8>> {
    let write = WriteIn { size: 100, ..WriteIn::default() };
    let read = ReadIn { size: 4096, ..ReadIn::default() };
    let xattr = SetxattrIn { size: 3, flags: 0 };
    vec![
        request(op::LOOKUP, 1, &[b"name\0"]),
        request(op::MKDIR, 1, &[MkdirIn { mode: 0o755, umask: 0 }.as_bytes(), b"dir\0"]),
        request(op::CREATE, 1, &[CreateIn::default().as_bytes(), b"file\0"]),
        request(op::SYMLINK, 1, &[b"sym\0", b"target\0"]),
        request(op::RENAME, 1, &[&1u64.to_ne_bytes(), b"file\0", b"other\0"]),
        request(op::LINK, 1, &[&3u64.to_ne_bytes(), b"link\0"]),
        request(op::WRITE, 3, &[write.as_bytes(), &[7; 100]]),
        request(op::READ, 3, &[read.as_bytes()]),
        request(op::READDIR, 1, &[read.as_bytes()]),
        request(op::READDIRPLUS, 1, &[read.as_bytes()]),
        request(op::SETXATTR, 3, &[xattr.as_bytes(), SetxattrExt::default().as_bytes(), b"a\0xyz"]),
        request(op::BATCH_FORGET, 0, &[&1u64.to_ne_bytes(), &9u64.to_ne_bytes(), &[0; 8]]),
        request(op::SETATTR, 3, &[&[0xff; 88]]),
        request(op::SETLKW, 3, &[&[0; 48]]),
        request(op::INTERRUPT, 0, &[&4u64.to_ne_bytes()]),
    ]
}

/// Runs `body` and answers how often a file system operation panicked meanwhile; such panics are
/// caught by the dispatcher, so nothing else would show them.
fn panics(body: impl FnOnce()) -> usize {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        COUNT.fetch_add(1, SeqCst);
        hook(info);
    }));
    body();
    COUNT.load(SeqCst)
}

#[test]
fn survives_random_and_mutated_requests() {
    let mut random = SmallRng::seed_from_u64(45);
    let (bench, valid) = (Bench::new(), valid());
    let panics = panics(|| {
        for request in &valid {
            let outcome = bench.serve(request);
            assert!(!matches!(outcome, Outcome::Error(Errno::EINVAL)), "{outcome:?}");
        }
        for round in 0..200_000 {
            let mut bytes: Vec<u8> = if round % 2 == 0 {
                let mut body = vec![0; random.random_range(0..200)];
                random.fill(body.as_mut_slice());
                request(random.random_range(0..OPCODES), random.random_range(0..8), &[&body])
            } else {
                valid[random.random_range(0..valid.len())].clone()
            };
            for _ in 0..random.random_range(0..4) {
                let place = random.random_range(0..bytes.len());
                bytes[place] = random.random();
            }
            bytes.truncate(random.random_range(bytes.len() / 2..=bytes.len()).max(4));
            if random.random_bool(0.9) {
                let length = bytes.len() as u32;
                bytes[..4].copy_from_slice(&length.to_ne_bytes());
            }
            bench.serve(&bytes);
        }
    });
    assert_eq!(panics, 0);
}

#[test]
fn answers_what_it_cannot_do() {
    let bench = Bench::new();
    assert_eq!(bench.serve(&request(999, 1, &[])), Outcome::Error(Errno::ENOSYS));
    assert_eq!(bench.serve(&request(op::LOOKUP, 1, &[b"no NUL"])), Outcome::Error(Errno::EINVAL));
    assert_eq!(bench.serve(&request(op::MKDIR, 1, &[&[0; 3]])), Outcome::Error(Errno::EINVAL));
    assert_eq!(bench.serve(&request(op::FORGET, 1, &[])), Outcome::Silent);
    let unknown = request(op::INTERRUPT, 0, &[&77u64.to_ne_bytes()]);
    assert_eq!(bench.serve(&unknown), Outcome::Error(Errno::EAGAIN));
    let mut short = request(op::GETATTR, 1, &[&[0; 16]]);
    short.pop();
    assert_eq!(bench.serve(&short), Outcome::Error(Errno::EINVAL));
}
