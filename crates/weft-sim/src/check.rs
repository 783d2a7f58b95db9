//! What must hold when all is quiet: everything is as the reference has it, and nothing is left over.

use crate::cluster::Cluster;
use crate::reference::{Hand, Names, Tree};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use weft_client::{Ctx, DirEntry, OpenFlags};
use weft_mds::keys::{self, kind};
use weft_mds::record::{self, Dirent, Inode};
use weft_model::{Fid, FileType};
use weft_store::{Kv, ObjectStore};

/// Everything in and below a directory as a client sees it, by path.
pub fn walk(hand: &Hand, path: &[u8], dir: Fid) -> Names {
    let ctx = Ctx::root();
    let mut names = Names::new();
    let mut to_visit = vec![(path.to_vec(), dir)];
    names.insert(path.to_vec(), (dir, None));
    while let Some((path, dir)) = to_visit.pop() {
        let handle = hand.must("opendir", hand.client.opendir(&ctx, dir));
        let mut found: Vec<DirEntry> = Vec::new();
        let mut take = |entry: &DirEntry| {
            found.push(entry.clone());
            true
        };
        hand.must("readdir", hand.client.readdir(&ctx, &handle, 0, true, &mut take));
        hand.must("closedir", hand.client.closedir(&ctx, &handle));
        for entry in found.into_iter().filter(|entry| entry.position > 2) {
            let path = [&path, &b"/"[..], &entry.name].concat();
            let link = (entry.kind == FileType::Symlink)
                .then(|| hand.must("readlink", hand.client.readlink(&ctx, entry.fid)));
            if entry.kind == FileType::Directory {
                to_visit.push((path.clone(), entry.fid));
            }
            names.insert(path, (entry.fid, link));
        }
    }
    names
}

/// The contents of a file.
pub fn contents(hand: &Hand, fid: Fid, at_most: usize) -> Vec<u8> {
    let ctx = Ctx::root();
    let file = hand.must("open", hand.client.open(&ctx, fid, OpenFlags::READ));
    let mut data = vec![0xee; at_most];
    let got = hand.must("read", hand.client.read(&ctx, &file, 0, &mut data));
    hand.must("close", hand.client.close(&ctx, &file, None));
    data.truncate(got);
    data
}

/// A tree is exactly as its reference.
pub fn tree(hand: &Hand, tree: &Tree) {
    let name = format!("tree{}", tree.number);
    let attr = hand.client.lookup(&Ctx::root(), hand.client.root(), name.as_bytes());
    let top = hand.must("find the tree", attr).fid;
    assert_eq!(walk(hand, name.as_bytes(), top), tree.names(), "names in {name}");
    for (fid, data, _) in tree.files() {
        let size = hand.must("getattr", hand.client.getattr(&Ctx::root(), fid)).size;
        assert_eq!(size, data.len() as u64, "size of {fid}");
        let real = contents(hand, fid, data.len() + 10);
        assert!(real == *data, "contents of {fid}, length {} of {}", real.len(), data.len());
    }
}

/// Nothing is in the stores but files, their names and their objects.
pub fn stores(cluster: &Cluster) {
    if let Some(mds) = &*cluster.mds.lock() {
        assert_eq!(mds.counts(), (0, 0, 0), "sessions, opens, locks left");
    }
    let mut inodes: BTreeMap<Fid, Inode> = BTreeMap::new();
    let mut dirents: Vec<(Fid, Vec<u8>, Dirent)> = Vec::new();
    let mut inline: BTreeSet<Fid> = BTreeSet::new();
    let scanned = cluster.mdt.scan(&[1], &[], &mut |key, value| {
        let number = keys::number(key).map(Fid);
        match (key[0], number) {
            (kind::INODE, Some(fid)) => {
                inodes.insert(fid, decode(key, value));
            }
            (kind::DIRENT, Some(dir)) => {
                dirents.push((dir, key[17..].to_vec(), decode(key, value)))
            }
            (kind::INLINE, Some(fid)) => drop(inline.insert(fid)),
            (kind::XATTR | kind::COUNTERS, _) => {}
            _ => panic!("left in the store: {}", key.escape_ascii()),
        }
        ControlFlow::Continue(())
    });
    scanned.unwrap_or_else(|error| panic!("scan: {error}"));
    check_links(&inodes, &dirents);
    let said = inodes.iter().filter(|(_, inode)| inode.inline).map(|(&fid, _)| fid);
    assert_eq!(inline, said.collect(), "files whose bytes the MDT has, and those said to be such");
    for ost in &cluster.osts {
        let objects = ost.list(None, usize::MAX).unwrap_or_default();
        for object in objects {
            assert!(inodes.contains_key(&object.fid), "object {object} of no file");
        }
    }
}

fn decode<M: prost::Message + Default>(key: &[u8], value: &[u8]) -> M {
    record::decode(key, value).unwrap_or_else(|error| panic!("{error}"))
}

/// Entries and links are counted right, and every inode has a name.
fn check_links(inodes: &BTreeMap<Fid, Inode>, dirents: &[(Fid, Vec<u8>, Dirent)]) {
    let (mut entries, mut links) = (BTreeMap::<Fid, u64>::new(), BTreeMap::<Fid, u32>::new());
    for (dir, name, dirent) in dirents {
        let fid = Fid(dirent.fid);
        let name = name.escape_ascii();
        let inode = inodes.get(&fid).unwrap_or_else(|| panic!("entry {name} of no inode"));
        assert_eq!(inode.kind() as u32, dirent.kind, "kind of {name}");
        *entries.entry(*dir).or_default() += 1;
        if inode.is_dir() {
            // Its own `.` and the `..` of what is in it.
            *links.entry(fid).or_default() += 2;
            *links.entry(*dir).or_default() += 1;
            assert_eq!(Fid(inode.parent), *dir, "parent of {name}");
        } else {
            *links.entry(fid).or_default() += 1;
        }
    }
    *links.entry(Fid::ROOT).or_default() += 2;
    for (fid, inode) in inodes {
        let (entries, links) = (entries.get(fid).copied(), links.get(fid).copied());
        assert_eq!(inode.entries, entries.unwrap_or(0), "number of entries of {fid}");
        assert_eq!(inode.nlink, links.unwrap_or(0), "number of links of {fid}");
        assert!(inode.nlink > 0, "{fid} has no name");
        assert!(inode.writers.is_empty(), "{fid} is marked as being written");
    }
}
