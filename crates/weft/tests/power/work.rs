//! What a client does until the power fails: random changes in a directory of its own, some synced.

use crate::cluster::Cluster;
use crate::model::{Images, Tree};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::collections::BTreeMap;
use std::sync::Arc;
use weft_client::{AllocateMode, Client, CreateArgs, Ctx, OpenFile, OpenFlags};
use weft_model::{Fid, Result, SetAttr};

/// Largest offset written at.
const MAX_OFFSET: usize = 100_000;
/// Longest write: some cross stripes of objects' blocks, most do not.
const LENGTHS: [usize; 3] = [10, 5000, 40_000];

/// A client at work.
pub struct Worker {
    client: Arc<Client>,
    rng: SmallRng,
    tree: Tree,
    open: BTreeMap<Fid, OpenFile>,
    /// One step of so many syncs something: often, so that there is much to lose, or seldom, so that much
    /// is lost.
    sync_one_in: u32,
}

impl Worker {
    /// Makes its directory, durably.
    pub fn new(cluster: &Cluster, number: u64, seed: u64) -> Worker {
        let client = cluster.client();
        let name = format!("tree{number}");
        let dir = client.mkdir(&Ctx::root(), client.root(), name.as_bytes(), 0o755).unwrap().fid;
        let mut rng = SmallRng::seed_from_u64(seed);
        let sync_one_in = [5, 30, 300][rng.random_range(0..3)];
        let (tree, open) = (Tree::new(dir), BTreeMap::new());
        let mut worker = Worker { client, rng, tree, open, sync_one_in };
        worker.sync_dir().unwrap();
        worker
    }

    /// Works until something fails.
    pub fn run(mut self) -> Tree {
        loop {
            match self.step() {
                Ok(()) => self.tree.steps += 1,
                Err(error) => {
                    self.tree.end = Some(error);
                    return self.tree;
                }
            }
        }
    }

    fn step(&mut self) -> Result<()> {
        if self.rng.random_ratio(1, self.sync_one_in) {
            return match self.rng.random_range(0..6) {
                0 => self.sync_dir(),
                1 => self.sync_all(),
                _ => self.sync_file(),
            };
        }
        match self.rng.random_range(0..100) {
            0..15 => self.create(),
            15..60 => self.write(),
            60..70 => self.unlink(),
            70..80 => self.rename(),
            80..90 => self.truncate(),
            90..95 => self.punch(),
            _ => self.close(),
        }
    }

    fn sync_all(&mut self) -> Result<()> {
        self.client.sync_all(&Ctx::root())?;
        self.tree.sync();
        self.tree.files.values_mut().for_each(Images::synced);
        Ok(())
    }

    fn name(&mut self) -> Vec<u8> {
        vec![b'a' + self.rng.random_range(0..8)]
    }

    /// A file that has a name, open.
    fn pick(&mut self) -> Result<Option<(Fid, OpenFile)>> {
        let fids: Vec<Fid> = self.tree.names().values().flatten().copied().collect();
        if fids.is_empty() {
            return Ok(None);
        }
        let fid = fids[self.rng.random_range(0..fids.len())];
        if !self.open.contains_key(&fid) {
            let sync = self.rng.random_ratio(1, 4 * self.sync_one_in);
            let flags = OpenFlags::READ | OpenFlags::WRITE;
            let flags = if sync { flags | OpenFlags::SYNC } else { flags };
            let file = self.client.open(&Ctx::root(), fid, flags)?;
            self.open.insert(fid, file);
        }
        Ok(self.open.get(&fid).cloned().map(|file| (fid, file)))
    }

    fn images(&mut self, fid: Fid) -> &mut Images {
        self.tree.files.get_mut(&fid).unwrap()
    }

    fn create(&mut self) -> Result<()> {
        let name = self.name();
        if self.tree.names().contains_key(&name) {
            return Ok(());
        }
        self.tree.change(|names| {
            names.insert(name.clone(), None);
        });
        let flags = OpenFlags::READ | OpenFlags::WRITE;
        let args = CreateArgs { mode: 0o644, flags, exclusive: true, layout: None };
        let made = self.client.create(&Ctx::root(), self.tree.dir, &name, &args)?;
        let fid = made.attr.fid;
        self.tree.history.last_mut().unwrap().insert(name, Some(fid));
        self.tree.files.insert(fid, Images::new());
        self.open.insert(fid, made.file);
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        let Some((fid, file)) = self.pick()? else { return Ok(()) };
        let at = self.rng.random_range(0..MAX_OFFSET);
        let longest = LENGTHS[self.rng.random_range(0..LENGTHS.len())];
        let data = vec![self.rng.random_range(1..=255); self.rng.random_range(1..=longest)];
        let write = |image: &mut Vec<u8>| {
            image.resize(image.len().max(at + data.len()), 0);
            image[at..at + data.len()].copy_from_slice(&data);
        };
        self.images(fid).change(write);
        self.client.write(&Ctx::root(), &file, at as u64, &data)?;
        if file.flags().is_sync() {
            // This write is durable, whatever came before it.
            self.images(fid).in_all(write);
        }
        Ok(())
    }

    fn sync_file(&mut self) -> Result<()> {
        let Some((fid, file)) = self.pick()? else { return Ok(()) };
        self.client.fsync(&Ctx::root(), &file, false)?;
        self.images(fid).synced();
        // The log of the MDT is one for all.
        self.tree.sync();
        Ok(())
    }

    fn sync_dir(&mut self) -> Result<()> {
        let flags = OpenFlags::READ | OpenFlags::DIRECTORY;
        let dir = self.client.open(&Ctx::root(), self.tree.dir, flags)?;
        self.client.fsync(&Ctx::root(), &dir, false)?;
        self.tree.sync();
        self.client.close(&Ctx::root(), &dir, None)
    }

    fn unlink(&mut self) -> Result<()> {
        let name = self.name();
        let Some(fid) = self.tree.names().get(&name).copied() else { return Ok(()) };
        self.tree.change(|names| {
            names.remove(&name);
        });
        self.client.unlink(&Ctx::root(), self.tree.dir, &name)?;
        // Mostly at once, so that its objects are destroyed at once.
        if self.rng.random_bool(0.7) {
            self.close_fid(fid)?;
        }
        Ok(())
    }

    fn rename(&mut self) -> Result<()> {
        let (from, to) = (self.name(), self.name());
        if from == to || !self.tree.names().contains_key(&from) {
            return Ok(());
        }
        let mut replaced = None;
        self.tree.change(|names| {
            let moved = names.remove(&from).flatten();
            replaced = names.insert(to.clone(), moved).flatten();
        });
        let dir = self.tree.dir;
        self.client.rename(&Ctx::root(), dir, &from, dir, &to, 0)?;
        self.close_fid(replaced)
    }

    fn truncate(&mut self) -> Result<()> {
        let Some((fid, file)) = self.pick()? else { return Ok(()) };
        let size = if self.rng.random_bool(0.2) { 0 } else { self.rng.random_range(0..MAX_OFFSET) };
        self.images(fid).change(|image| image.resize(size, 0));
        let set = SetAttr { size: Some(size as u64), ..SetAttr::default() };
        self.client.setattr(&Ctx::root(), fid, &set, Some(&file)).map(drop)
    }

    fn punch(&mut self) -> Result<()> {
        let Some((fid, file)) = self.pick()? else { return Ok(()) };
        let (at, len) = (self.rng.random_range(0..MAX_OFFSET), self.rng.random_range(1..20_000));
        self.images(fid).change(|image| {
            let end = image.len().min(at + len);
            image.get_mut(at..end).unwrap_or_default().fill(0);
        });
        self.client.allocate(&Ctx::root(), &file, AllocateMode::Punch, at as u64, len as u64)
    }

    fn close(&mut self) -> Result<()> {
        let picked = self.pick()?.map(|(fid, _)| fid);
        self.close_fid(picked)
    }

    fn close_fid(&mut self, fid: Option<Fid>) -> Result<()> {
        match fid.and_then(|fid| self.open.remove(&fid)) {
            Some(file) => self.client.close(&Ctx::root(), &file, None),
            None => Ok(()),
        }
    }
}
