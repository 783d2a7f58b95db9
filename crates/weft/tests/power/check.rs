//! What is found after a power cut.

use crate::cluster::{self, Cluster, LEASE};
use crate::model::Tree;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use weft_client::{Client, CreateArgs, Ctx, OpenFlags};
use weft_model::{Fid, ObjectId};

/// Longest wait until what dead clients have left is cleared away.
const CLEARED_WITHIN: Duration = Duration::from_secs(30);
/// Files made at the end.
const NEW_FILES: usize = 20;

/// Everything that was promised.
pub fn everything(cluster: &Cluster, trees: &[Tree]) {
    let client = cluster.client();
    let mut alive = BTreeSet::new();
    let names: Vec<_> = trees.iter().map(|tree| list(&client, tree.dir)).collect();
    for (tree, names) in trees.iter().zip(&names) {
        tree.check(names);
        for &fid in names.values() {
            alive.insert(fid);
            let data = contents(&client, fid);
            match tree.files.get(&fid) {
                Some(images) => images.check(fid, &data),
                None => assert!(data.is_empty(), "{fid} is new and not empty"),
            }
        }
    }
    cluster.weft(0, &["scrub", "--manager", &cluster.manager()]);
    wait_for_osts(&client);
    let before: BTreeSet<Fid> = objects(cluster).iter().map(|object| object.fid).collect();
    for number in 0..NEW_FILES {
        let fid = new_file_works(&client, number);
        assert!(!before.contains(&fid), "new file {fid} has objects of an old one");
        alive.insert(fid);
    }
    client.unmount().unwrap();
    only_objects_of(cluster, &alive);
}

fn list(client: &Client, dir: Fid) -> BTreeMap<Vec<u8>, Fid> {
    let handle = client.opendir(&Ctx::root(), dir).unwrap();
    let mut names = BTreeMap::new();
    let mut take = |entry: &weft_client::DirEntry| {
        if entry.position > 2 {
            names.insert(entry.name.clone(), entry.fid);
        }
        true
    };
    client.readdir(&Ctx::root(), &handle, 0, false, &mut take).unwrap();
    client.closedir(&Ctx::root(), &handle).unwrap();
    names
}

/// The contents, at one size: a truncation that was not answered may be finished any time, and a size
/// that went with the power is found by and by.
fn contents(client: &Client, fid: Fid) -> Vec<u8> {
    let (ctx, deadline) = (Ctx::root(), Instant::now() + LEASE + CLEARED_WITHIN);
    let size = || client.getattr(&ctx, fid).unwrap().size as usize;
    let file = client.open(&ctx, fid, OpenFlags::READ).unwrap();
    loop {
        let before = size();
        let mut data = vec![0xee; before + 1];
        let got = client.read(&ctx, &file, 0, &mut data);
        let got = got.unwrap_or_else(|error| panic!("read {fid}: {error}"));
        if size() == before && got == before {
            client.close(&ctx, &file, None).unwrap();
            data.truncate(before);
            return data;
        }
        assert!(Instant::now() < deadline, "{got} of {before} bytes read of {fid}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until the metadata server has heard of the OSTs, which it does with its next heartbeat.
pub fn wait_for_osts(client: &Client) {
    let (ctx, deadline) = (Ctx::root(), Instant::now() + CLEARED_WITHIN);
    let args = CreateArgs { mode: 0o644, flags: OpenFlags::WRITE, ..CreateArgs::default() };
    loop {
        match client.create(&ctx, client.root(), b"probe", &args) {
            Ok(made) => {
                client.close(&ctx, &made.file, None).unwrap();
                return client.unlink(&ctx, client.root(), b"probe").unwrap();
            }
            Err(error) => assert!(Instant::now() < deadline, "no file can be made: {error}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A file can be made, written, synced and read.
fn new_file_works(client: &Client, number: usize) -> Fid {
    let ctx = Ctx::root();
    let flags = OpenFlags::READ | OpenFlags::WRITE;
    let args = CreateArgs { mode: 0o644, flags, exclusive: true, layout: None };
    let name = format!("after{number}");
    let file = client.create(&ctx, client.root(), name.as_bytes(), &args).unwrap().file;
    assert!(contents(client, file.fid()).is_empty());
    let data: Vec<u8> = (0..100_000u32).map(|n| (n % 251) as u8).collect();
    assert_eq!(client.write(&ctx, &file, 0, &data).unwrap(), data.len());
    client.fsync(&ctx, &file, false).unwrap();
    let fid = file.fid();
    client.close(&ctx, &file, None).unwrap();
    assert!(contents(client, fid) == data);
    fid
}

/// Once the dead clients' sessions have ended, no object is without a file.
fn only_objects_of(cluster: &Cluster, alive: &BTreeSet<Fid>) {
    let deadline = Instant::now() + LEASE + CLEARED_WITHIN;
    loop {
        let left: Vec<ObjectId> =
            objects(cluster).into_iter().filter(|object| !alive.contains(&object.fid)).collect();
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "objects of no file: {left:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn objects(cluster: &Cluster) -> Vec<ObjectId> {
    let mut found = Vec::new();
    for target in ["ost0", "ost1"] {
        let root = cluster.dir(target).join("objects");
        for dir in cluster::names(&root) {
            let names = cluster::names(&root.join(dir));
            found.extend(names.iter().filter_map(|name| name.parse::<ObjectId>().ok()));
        }
    }
    found
}
