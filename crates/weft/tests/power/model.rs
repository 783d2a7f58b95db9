//! What a worker has done in its directory, and what of that must be found again.

use std::collections::BTreeMap;
use weft_model::{Fid, FsError};

/// Names of a directory. None where a creation was not answered, so that the FID is not known.
pub type Names = BTreeMap<Vec<u8>, Option<Fid>>;

/// Contents that a file may have: as at its last fsync, and after every change since then.
#[derive(Default)]
pub struct Images(Vec<Vec<u8>>);

impl Images {
    /// A new, empty file.
    pub fn new() -> Images {
        Images(vec![Vec::new()])
    }

    /// As the writer sees it.
    pub fn now(&self) -> &Vec<u8> {
        self.0.last().unwrap()
    }

    /// A change that is about to be made, answered or not.
    pub fn change(&mut self, change: impl FnOnce(&mut Vec<u8>)) {
        let mut image = self.now().clone();
        change(&mut image);
        self.0.push(image);
    }

    /// A change that is durable by itself.
    pub fn in_all(&mut self, change: impl Fn(&mut Vec<u8>)) {
        self.0.iter_mut().for_each(change);
    }

    /// Everything so far is durable.
    pub fn synced(&mut self) {
        self.0.drain(..self.0.len() - 1);
    }

    /// Every byte must be what it was at the last fsync or has become later.
    pub fn check(&self, fid: Fid, real: &[u8]) {
        let sizes = self.0.iter().map(Vec::len);
        let range = sizes.clone().min().unwrap()..=sizes.max().unwrap();
        assert!(range.contains(&real.len()), "size {} of {fid}, expected {range:?}", real.len());
        for (at, byte) in real.iter().enumerate() {
            let was = |image: &Vec<u8>| image.get(at).copied().unwrap_or(0) == *byte;
            let (count, size) = (self.0.len(), real.len());
            assert!(
                self.0.iter().any(was),
                "byte {at} of {size} of {fid} is {byte}, which it never was since its fsync, {count} images"
            );
        }
    }
}

/// The directory of a worker.
pub struct Tree {
    pub dir: Fid,
    /// The names after each change; the last may not have been answered.
    pub history: Vec<Names>,
    /// The moment in the history that is durable.
    pub synced: usize,
    pub files: BTreeMap<Fid, Images>,
    /// Steps that were answered, and why the last one was not.
    pub steps: usize,
    pub end: Option<FsError>,
}

impl Tree {
    pub fn new(dir: Fid) -> Tree {
        Tree {
            dir,
            history: vec![Names::new()],
            synced: 0,
            files: BTreeMap::new(),
            steps: 0,
            end: None,
        }
    }

    pub fn names(&self) -> &Names {
        self.history.last().unwrap()
    }

    /// A change that is about to be made, answered or not.
    pub fn change(&mut self, change: impl FnOnce(&mut Names)) {
        let mut names = self.names().clone();
        change(&mut names);
        self.history.push(names);
    }

    /// Everything so far is durable.
    pub fn sync(&mut self) {
        self.synced = self.history.len() - 1;
    }

    /// The names must be those of one moment since the last fsync.
    pub fn check(&self, real: &BTreeMap<Vec<u8>, Fid>) {
        let same = |names: &&Names| {
            names.len() == real.len()
                && names.iter().zip(real).all(|((name, fid), (real_name, real_fid))| {
                    name == real_name && fid.is_none_or(|fid| fid == *real_fid)
                })
        };
        let moments = &self.history[self.synced..];
        assert!(
            moments.iter().any(|names| same(&names)),
            "the names are of no moment since the last fsync: {real:?}, not one of {moments:?}"
        );
    }
}
