//! The power fails everywhere, and comes back: what may be missing then, and what must not.

use crate::check;
use crate::cluster::LEASE;
use crate::reference::{Names, Tree};
use crate::run::Stage;
use std::sync::atomic::Ordering;
use std::time::Duration;
use weft_client::{CreateArgs, Ctx, OpenFlags};
use weft_model::Fid;
use weft_store::kv::POWER_LOST;
use weft_store::{Batch, Kv};

/// Cuts the power of everybody, brings it back, and looks.
pub fn fail(stage: &Stage, clients: &[usize]) {
    let (world, cluster) = (&stage.world, &stage.cluster);
    cluster.powered.store(false, Ordering::Relaxed);
    let hosts = clients.iter().chain(&cluster.hosts);
    hosts.for_each(|&host| world.kill(host, "power failed"));
    cut_disks(stage);
    // What was on its way has come to nothing by now.
    world.pause(Duration::from_secs(1));
    while stage.working.load(Ordering::Relaxed) > 0 {
        world.pause(Duration::from_millis(10));
    }
    cluster.powered.store(true, Ordering::Relaxed);
    // Until sessions have ended, and the objects of all OSTs have been compared with inodes.
    world.pause(LEASE * 5);

    let (_, hand) = stage.hire("auditor");
    let trees = std::mem::take(&mut *stage.trees.lock());
    let found: Vec<Names> = trees
        .iter()
        .map(|tree| {
            let name = format!("tree{}", tree.number).into_bytes();
            match hand.client.lookup(&Ctx::root(), hand.client.root(), &name) {
                Ok(attr) => check::walk(&hand, &name, attr.fid),
                Err(_) => Names::new(),
            }
        })
        .collect();
    check_names(&trees, &found);
    for (tree, found) in trees.iter().zip(&found) {
        for (fid, _, images) in tree.files() {
            let there = found.values().any(|&(other, _)| other == fid);
            if there && !images.is_empty() {
                let real = check::contents(&hand, fid, 200_000);
                check_contents(fid, images, &real);
                let size = hand.must("getattr", hand.client.getattr(&Ctx::root(), fid)).size;
                assert_eq!(size, real.len() as u64, "size of {fid}, and what is read");
            }
        }
    }
    check_new_files(stage, &hand);
    hand.unmount();
    world.pause(Duration::from_secs(2));
    check::stores(cluster);
}

/// Each disk keeps what was synced and some of the rest; not every server has to have been hit.
fn cut_disks(stage: &Stage) {
    let (world, cluster) = (&stage.world, &stage.cluster);
    cluster.mdt.crash_power(|unsynced| {
        let kept = world.below(unsynced as u64 + 1) as usize;
        world.note(format_args!("the MDT keeps {kept} of {unsynced} batches"));
        kept
    });
    // What the start of a target would find out.
    let noted = cluster.mdt.write(Batch::new().put(&POWER_LOST, &[]));
    noted.unwrap_or_else(|error| panic!("{error}"));
    cluster.book.crash_power(|unsynced| world.below(unsynced as u64 + 1) as usize);
    for ost in &cluster.osts {
        match world.one_in(3) {
            true => ost.crash_process(),
            false => ost.crash_power(&mut || world.bits()),
        }
    }
}

/// The names are those of one moment: a prefix of what happened, behind the last fsync.
fn check_names(trees: &[Tree], found: &[Names]) {
    let synced = trees.iter().map(|tree| tree.synced).max().unwrap_or(0);
    // The first change that is missing for certain, and the last that is there for certain.
    let (mut missing, mut there) = (u64::MAX, synced);
    for (tree, found) in trees.iter().zip(found) {
        let same = |moment: &&crate::reference::Moment| moment.names == *found;
        let fits: Vec<_> = tree.history.iter().enumerate().filter(|(_, m)| same(m)).collect();
        let Some((first, _)) = fits.first() else {
            panic!("names in tree{} are of no moment: {found:?}", tree.number);
        };
        // A tree that looked like this more than once proves as little as the weakest of them.
        let last = fits.last().map_or(*first, |(last, _)| *last);
        there = there.max(tree.history[*first].span.0);
        missing = missing.min(tree.history.get(last + 1).map_or(u64::MAX, |next| next.span.1));
    }
    assert!(missing >= there, "lost what ended at {missing}, kept what began at {there}");
}

/// Every byte is what it was at the last fsync or became later.
fn check_contents(fid: Fid, images: &[Vec<u8>], real: &[u8]) {
    let sizes = images.iter().map(Vec::len);
    let range = sizes.clone().min().unwrap_or(0)..=sizes.max().unwrap_or(0);
    assert!(range.contains(&real.len()), "size {} of {fid}, expected {range:?}", real.len());
    for (at, byte) in real.iter().enumerate() {
        let legal = images.iter().any(|image| image.get(at).copied().unwrap_or(0) == *byte);
        assert!(legal, "byte {at} of {fid} is {byte}, which it never was since its fsync");
    }
}

/// New files begin empty, whatever the power has taken.
fn check_new_files(stage: &Stage, hand: &crate::reference::Hand) {
    let ctx = Ctx::root();
    let flags = OpenFlags::READ | OpenFlags::WRITE;
    let args = CreateArgs { mode: 0o644, flags, exclusive: true, layout: None };
    for number in 0..200 {
        let name = format!("new{number}");
        let made = hand.client.create(&ctx, hand.client.root(), name.as_bytes(), &args);
        let file = hand.must("create", made).file;
        let objects = stage.cluster.osts.iter().flat_map(|ost| {
            use weft_store::ObjectStore;
            ost.list(None, usize::MAX).unwrap_or_default()
        });
        let stale = objects.filter(|object| object.fid == file.fid()).count();
        assert_eq!(stale, 0, "new file {} has {stale} objects of an old one", file.fid());
        hand.must("close", hand.client.close(&ctx, &file, None));
    }
}
