//! Writes the seeds: valid encodings of all kinds, for the fuzzer to start from. `cargo run --example seeds`. They
//! name messages by their place in the list of all, so they are to be written again when one is added.

use std::fs;
use std::path::Path;
use weft_mds::record::Inode;
use weft_model::TargetId;
use weft_model::acl::Acl;
use weft_rpc::message::ALL;
use weft_rpc::pb::{self, mds, oss};
use weft_rpc::{ClusterKey, Request};
use weft_store::superblock::Uuid;
use weft_store::{Batch, Superblock};

fn write(target: &str, name: &str, bytes: &[u8]) {
    let dir = Path::new("seeds").join(target);
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join(name), bytes).unwrap();
}

fn layout() -> pb::Layout {
    use prost::Message;
    let text = [0x0a, 0x00];
    pb::Layout::decode(&text[..]).unwrap_or_default()
}

/// What a client sends in its life, one after the other.
fn life() -> Vec<Request> {
    let cred = Some(pb::Credentials::default());
    let (root, file, name) = (weft_model::Fid::ROOT.0, weft_model::Fid::new(1, 2).0, b"a".to_vec());
    let object = Some(oss::Object { fid: file, index: 0 });
    let sums = vec![0x8a91_36aa; 1];
    vec![
        Request::OpenSession(mds::OpenSession::default()),
        Request::Create(mds::Create {
            cred: cred.clone(),
            parent: root,
            name: name.clone(),
            mode: 0o644,
            flags: 3,
            handle: 1,
            ..mds::Create::default()
        }),
        Request::Write(oss::Write { object, offset: 0, sums, ..oss::Write::default() }),
        Request::Read(oss::Read { object, offset: 0, len: 100 }),
        Request::Truncate(oss::Truncate { object, size: 10, only_shrink: false }),
        Request::Punch(oss::Punch { object, offset: 1, len: 5, ..oss::Punch::default() }),
        Request::Allocate(oss::Allocate { object, offset: 1, len: 5, ..oss::Allocate::default() }),
        Request::SetAttr(mds::SetAttr {
            cred: cred.clone(),
            fid: file,
            size: Some(1 << 40),
            handle: 1,
            ..mds::SetAttr::default()
        }),
        Request::Append(mds::Append { fid: file, len: 100, ..mds::Append::default() }),
        Request::Lock(mds::Lock { fid: file, owner: 1, kind: 1, end: 9, ..mds::Lock::default() }),
        Request::SetXattr(mds::SetXattr {
            cred: cred.clone(),
            fid: file,
            name: b"user.a".to_vec(),
            value: b"b".to_vec(),
            ..mds::SetXattr::default()
        }),
        Request::Readdir(mds::Readdir { dir: root, ..mds::Readdir::default() }),
        Request::Close(mds::Close { fid: file, handle: 1, ..mds::Close::default() }),
        Request::Unlink(mds::Unlink { cred, parent: root, name }),
    ]
}

/// Requests of two sessions that share a file: one has it delegated, both want a lock on it, then the MDT
/// looks after its objects.
fn shared() -> Vec<(u8, Request)> {
    let cred = Some(pb::Credentials::default());
    let (root, file, name) = (weft_model::Fid::ROOT.0, weft_model::Fid::new(1, 2).0, b"a".to_vec());
    let object = Some(oss::Object { fid: file, index: 0 });
    let session = mds::OpenSession { caches: true, delegations: true, ..Default::default() };
    let open = |handle| mds::Open { cred: cred.clone(), fid: file, flags: 3, handle };
    let lock =
        mds::Lock { fid: file, owner: 1, kind: 1, end: 9, wait: true, ..mds::Lock::default() };
    let data = vec![mds::Extent { offset: 0, data: vec![0], sums: vec![0x8a91_36aa] }];
    let inline = Some(mds::Written { end: 1, data, inline: true, ..mds::Written::default() });
    let written = Some(mds::Written { end: 9, ..mds::Written::default() });
    let reclaim = mds::Reclaim {
        opens: vec![mds::OpenHandle { fid: file, handle: 1, flags: 3 }],
        locks: vec![lock],
        done: true,
        appends: vec![mds::ReservedEnd { fid: file, end: 9, size_epoch: 1 }],
        delegations: vec![file],
    };
    vec![
        (0, Request::OpenSession(session.clone())),
        (1, Request::OpenSession(session)),
        (
            0,
            Request::Create(mds::Create {
                cred: cred.clone(),
                parent: root,
                name: name.clone(),
                mode: 0o644,
                flags: 3,
                handle: 1,
                ..mds::Create::default()
            }),
        ),
        (
            0,
            Request::UpdateWritten(mds::UpdateWritten {
                fid: file,
                written: inline,
                returned: false,
            }),
        ),
        (0, Request::ReadInline(mds::ReadInline { fid: file })),
        (0, Request::MoveOut(mds::MoveOut { fid: file, unsynced: true })),
        (0, Request::Clock(oss::Clock {})),
        (
            0,
            Request::Write(oss::Write {
                object,
                sums: vec![0x8a91_36aa],
                not_after: Some(oss::Moment { run: 1, ms: 1 << 40 }),
                ..oss::Write::default()
            }),
        ),
        (1, Request::Lookup(mds::Lookup { cred: cred.clone(), parent: root, name })),
        (1, Request::Open(open(2))),
        (0, Request::AwaitRecalls(mds::AwaitRecalls { wait_ms: 1, ..Default::default() })),
        (0, Request::UpdateWritten(mds::UpdateWritten { fid: file, written, returned: true })),
        (0, Request::Lock(lock)),
        (1, Request::Lock(lock)),
        (1, Request::AwaitLock(mds::AwaitLock { lock: Some(lock), wait_ms: 1 })),
        (1, Request::CancelLock(mds::CancelLock { lock: Some(lock) })),
        (1, Request::TestLock(mds::TestLock { lock: Some(lock) })),
        (0, Request::Reclaim(reclaim)),
        (1, Request::CloseSession(mds::CloseSession {})),
        (0, Request::CheckObjects(mds::CheckObjects { start: true })),
    ]
}

/// As the targets read it: session and number of the request, length of its body, its body.
fn input(requests: &[(u8, Request)]) -> Vec<u8> {
    let one = |(session, request): &(u8, Request)| {
        let (which, body) = encoded(request);
        [&[which | (session << 7)], &(body.len() as u16).to_le_bytes()[..], &body].concat()
    };
    requests.iter().flat_map(one).collect()
}

fn encoded(request: &Request) -> (u8, Vec<u8>) {
    let which = ALL.iter().position(|(number, _)| *number == request.number()).unwrap() as u8;
    let mut body = Vec::new();
    request.encode(&mut body);
    (which, body)
}

fn main() {
    let alone: Vec<(u8, Request)> = life().into_iter().map(|request| (0, request)).collect();
    let shared = shared();
    for (_, request) in alone.iter().chain(&shared) {
        let (which, body) = encoded(request);
        write("wire", request.name(), &[&[which], &body[..]].concat());
    }
    write("serve", "life", &input(&alone));
    write("serve", "shared", &input(&shared));
    let key = ClusterKey::generate().unwrap().to_text();
    write("wire", "key", &[&[0], key.as_bytes()].concat());
    let header = weft_rpc::frame::Header { number: 0x0210, ..Default::default() };
    write("wire", "header", &header.encode());
    let superblock = Superblock {
        cluster: Uuid::random().unwrap(),
        target: TargetId::ost(3),
        uuid: Uuid::random().unwrap(),
        created: 1_700_000_000,
        compat: vec!["a".into()],
        ro_compat: Vec::new(),
        incompat: vec!["sums-4k".into()],
        sequence: 4,
    };
    write("disk", "superblock", &[&[0], superblock.to_text().as_bytes()].concat());
    let mut batch = Batch::new();
    batch.put(b"key", b"value").delete(b"other").delete_range(b"a", b"b");
    write("disk", "batch", &[&[1], batch.as_bytes()].concat());
    let mut inode = vec![2];
    let record = Inode { mode: 0o100_644, nlink: 1, layout: Some(layout()), ..Inode::default() };
    prost::Message::encode(&record, &mut inode).unwrap();
    write("disk", "inode", &inode);
    let check = weft_mds::record::ObjectCheck { cursor: "7.0".into(), again: true };
    let mut bytes = vec![2];
    prost::Message::encode(&check, &mut bytes).unwrap();
    write("disk", "check", &bytes);
    let acl = [
        2, 0, 0, 0, 1, 0, 6, 0, 255, 255, 255, 255, 4, 0, 4, 0, 255, 255, 255, 255, 32, 0, 4, 0,
        255, 255, 255, 255,
    ];
    Acl::decode(&acl).unwrap();
    write("disk", "acl", &[&[3], &acl[..]].concat());
    write("disk", "object", b"\x030000010000000271.00000000");
}
