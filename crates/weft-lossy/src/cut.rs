//! What is left after a power cut.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::content::{Content, PAGE, Page};
use crate::disk::{Body, Change, Disk, Inode, Mode, ROOT, apply};

/// Nothing is written back unasked before it is this old. Linux waits for five seconds at least; memory
/// pressure may make it less.
pub const WRITE_BACK_AFTER: Duration = Duration::from_millis(200);

/// What a disk writes at once.
const SECTOR: usize = 512;

impl Disk {
    /// The same disk in another mode.
    pub fn in_mode(self, mode: Mode) -> Disk {
        Disk { mode, ..self }
    }

    /// The disk as it is found when the power is back. The same seed finds the same.
    pub fn after_power_cut(&self, seed: u64) -> Disk {
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut disk = self.clone();
        let journal = std::mem::take(&mut disk.journal);
        for change in surviving(&mut rng, self.mode, &journal) {
            apply(&mut disk.inodes, change, |inode| &mut inode.stable);
        }
        let ended = disk.ended.take().unwrap_or_else(Instant::now);
        for inode in disk.inodes.values_mut() {
            if inode.is_old(ended) {
                write_some_back(&mut rng, self.mode, inode);
            }
            inode.now = inode.stable.clone();
            (inode.dirty_since, inode.reshaped) = (None, false);
        }
        let reachable = reachable(&disk.inodes);
        disk.inodes.retain(|ino, _| reachable.contains(ino));
        disk.rng = rng;
        disk
    }
}

/// The changes that were on their way and have arrived.
fn surviving<'a>(rng: &mut SmallRng, mode: Mode, journal: &'a [Change]) -> Vec<&'a Change> {
    if mode == Mode::Ordered {
        return journal[..some_of(rng, journal.len())].iter().collect();
    }
    // A prefix for each file and directory: the first change that is missing hides those behind it.
    let mut ends: BTreeMap<u64, usize> = BTreeMap::new();
    let owner = |change: &Change| match change {
        Change::Names(names) => names.first().map_or(ROOT, |(dir, ..)| *dir),
        Change::Cut(file, _) | Change::Punch(file, ..) => *file,
    };
    let arrived = |(at, change): &(usize, &Change)| {
        let end = ends.entry(owner(change)).or_insert_with(|| some_of(rng, journal.len()));
        *at < *end
    };
    journal.iter().enumerate().filter(arrived).map(|(_, change)| change).collect()
}

/// Nothing, everything, or any number in between.
fn some_of(rng: &mut SmallRng, most: usize) -> usize {
    match rng.random_range(0..4) {
        0 => 0,
        1 => most,
        _ => rng.random_range(0..=most),
    }
}

/// Has some of what was written to a file arrive though nobody has synced it.
fn write_some_back(rng: &mut SmallRng, mode: Mode, inode: &mut Inode) {
    let (Body::File(now), Body::File(stable)) = (&inode.now, &mut inode.stable) else { return };
    let (old_size, share) = (stable.size, rng.random_range(0..=4));
    let size = match rng.random_range(0..3) {
        _ if now.size <= old_size || share == 0 => old_size,
        0 => old_size,
        1 => now.size,
        _ => rng.random_range(old_size..=now.size),
    };
    for (&page, bytes) in now.pages.range(..size.div_ceil(PAGE)) {
        let old = stable.pages.get(&page);
        if old.is_some_and(|old| Arc::ptr_eq(old, bytes)) {
            continue;
        }
        // Data that makes a file longer arrives before its length does.
        let must = mode == Mode::Ordered && (page + 1) * PAGE > old_size;
        if must {
            stable.pages.insert(page, bytes.clone());
        } else if rng.random_range(0..4) < share {
            let torn = torn(rng, old.map_or(&[0; PAGE as usize], |old| old), bytes);
            stable.pages.insert(page, Arc::new(torn));
        }
    }
    stable.size = size;
    clear_behind_end(stable);
}

/// A page of which some sectors have arrived: mostly all of them.
fn torn(rng: &mut SmallRng, old: &Page, new: &Page) -> Page {
    let whole = rng.random_bool(0.5);
    let mut page = *old;
    for (to, from) in page.chunks_mut(SECTOR).zip(new.chunks(SECTOR)) {
        if whole || rng.random_bool(0.5) {
            to.copy_from_slice(from);
        }
    }
    page
}

fn clear_behind_end(content: &mut Content) {
    content.punch(content.size, u64::MAX);
}

fn reachable(inodes: &BTreeMap<u64, Inode>) -> BTreeSet<u64> {
    let (mut found, mut to_visit) = (BTreeSet::new(), vec![ROOT]);
    while let Some(ino) = to_visit.pop() {
        if let (true, Some(Inode { now: Body::Dir(names), .. })) =
            (found.insert(ino), inodes.get(&ino))
        {
            to_visit.extend(names.values());
        }
    }
    found
}
