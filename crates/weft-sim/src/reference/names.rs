//! Random operations on names.

use super::{Hand, Node, Open, Tree, agree, ctx};
use std::collections::BTreeMap;
use weft_client::{CreateArgs, DirEntry, OpenFlags};
use weft_model::{ErrorKind, Fid, FileType};

impl Tree {
    fn dir(&self, hand: &Hand) -> usize {
        let alive: Vec<usize> = (0..self.nodes.len())
            .filter(|&node| matches!(&self.nodes[node], Node::Dir { gone: false, .. }))
            .collect();
        alive[hand.below(alive.len())]
    }

    fn place(&self, hand: &Hand) -> (usize, Vec<u8>) {
        (self.dir(hand), vec![b'a' + hand.below(6) as u8])
    }

    fn entries(&mut self, dir: usize) -> &mut BTreeMap<Vec<u8>, usize> {
        match &mut self.nodes[dir] {
            Node::Dir { entries, .. } => entries,
            _ => unreachable!("node {dir} is no directory"),
        }
    }

    fn find(&self, dir: usize, name: &[u8]) -> Option<usize> {
        match &self.nodes[dir] {
            Node::Dir { entries, .. } => entries.get(name).copied(),
            _ => None,
        }
    }

    fn is_dir(&self, node: usize) -> bool {
        matches!(self.nodes[node], Node::Dir { .. })
    }

    fn is_empty_dir(&self, node: usize) -> bool {
        matches!(&self.nodes[node], Node::Dir { entries, .. } if entries.is_empty())
    }

    fn add(&mut self, dir: usize, name: &[u8], node: Node, fid: Fid) -> usize {
        assert!(!self.fids.contains(&fid), "{fid} was given out twice");
        let number = self.nodes.len();
        self.nodes.push(node);
        self.fids.push(fid);
        self.entries(dir).insert(name.to_vec(), number);
        number
    }

    fn drop_link(&mut self, node: usize) {
        match &mut self.nodes[node] {
            Node::File { nlink, .. } => *nlink -= 1,
            Node::Dir { gone, .. } => *gone = true,
            Node::Symlink(_) => {}
        }
    }

    pub(super) fn mkdir(&mut self, hand: &Hand) {
        let (dir, name) = self.place(hand);
        let real = hand.client.mkdir(&ctx(), self.fids[dir], &name, 0o755);
        let wanted = self.find(dir, &name).map_or(Ok(()), |_| Err(ErrorKind::Exists));
        if let Some((attr, ())) = agree("mkdir", real, wanted) {
            let node = Node::Dir { entries: BTreeMap::new(), parent: dir, gone: false };
            self.add(dir, &name, node, attr.fid);
        }
    }

    pub(super) fn symlink(&mut self, hand: &Hand) {
        let (dir, name) = self.place(hand);
        let target = self.fresh(20);
        let real = hand.client.symlink(&ctx(), self.fids[dir], &name, &target);
        let wanted = self.find(dir, &name).map_or(Ok(()), |_| Err(ErrorKind::Exists));
        if let Some((attr, ())) = agree("symlink", real, wanted) {
            assert_eq!((attr.kind, attr.size), (FileType::Symlink, 20));
            self.add(dir, &name, Node::Symlink(target), attr.fid);
        }
    }

    pub(super) fn create(&mut self, hand: &Hand) {
        let (dir, name) = self.place(hand);
        let (exclusive, cuts) = (hand.one_in(3), hand.one_in(5));
        // An append for which there is no space leaves a hole: its place stays reserved.
        let append = hand.one_in(5) && hand.world.plan.capacity.is_none();
        let mut flags = OpenFlags::READ | OpenFlags::WRITE;
        if cuts {
            flags = flags | OpenFlags::TRUNCATE;
        }
        if append {
            flags = flags | OpenFlags::APPEND;
        }
        if hand.one_in(10) {
            flags = flags | OpenFlags::DSYNC;
        }
        let args = CreateArgs { mode: 0o644, flags, exclusive, layout: None };
        let real = hand.client.create(&ctx(), self.fids[dir], &name, &args);
        let wanted = match self.find(dir, &name) {
            None => Ok(None),
            Some(_) if exclusive => Err(ErrorKind::Exists),
            Some(node) => match self.nodes[node] {
                Node::File { .. } => Ok(Some(node)),
                Node::Dir { .. } => Err(ErrorKind::IsDir),
                Node::Symlink(_) => Err(ErrorKind::Loop),
            },
        };
        let Some((real, found)) = agree("create", real, wanted) else { return };
        assert_eq!(real.created, found.is_none(), "create says whether it created");
        let node = found.unwrap_or_else(|| {
            let file = Node::File { data: Vec::new(), nlink: 1, images: Vec::new() };
            self.add(dir, &name, file, real.file.fid())
        });
        if cuts {
            self.change(node, |data| data.clear());
        }
        assert_eq!(real.attr.size, self.data(node).len() as u64, "size at create");
        self.opens.push(Open { client: hand.number, file: real.file, node, append });
    }

    pub(super) fn open(&mut self, hand: &Hand) {
        let (dir, name) = self.place(hand);
        let Some(node) = self.find(dir, &name) else { return };
        if let Node::File { .. } = self.nodes[node] {
            let flags = OpenFlags::READ | OpenFlags::WRITE;
            let file = hand.must("open", hand.client.open(&ctx(), self.fids[node], flags));
            self.opens.push(Open { client: hand.number, file, node, append: false });
        }
    }

    pub(super) fn unlink(&mut self, hand: &Hand) {
        let (dir, name) = self.place(hand);
        let real = hand.client.unlink(&ctx(), self.fids[dir], &name);
        let wanted = match self.find(dir, &name) {
            None => Err(ErrorKind::NotFound),
            Some(node) if self.is_dir(node) => Err(ErrorKind::IsDir),
            Some(node) => Ok(node),
        };
        if let Some(((), node)) = agree("unlink", real, wanted) {
            self.entries(dir).remove(&name);
            self.drop_link(node);
        }
    }

    pub(super) fn rmdir(&mut self, hand: &Hand) {
        let (dir, name) = self.place(hand);
        let real = hand.client.rmdir(&ctx(), self.fids[dir], &name);
        let wanted = match self.find(dir, &name) {
            None => Err(ErrorKind::NotFound),
            Some(node) if !self.is_dir(node) => Err(ErrorKind::NotDir),
            Some(node) if !self.is_empty_dir(node) => Err(ErrorKind::NotEmpty),
            Some(node) => Ok(node),
        };
        if let Some(((), node)) = agree("rmdir", real, wanted) {
            self.entries(dir).remove(&name);
            self.drop_link(node);
        }
    }

    /// Whether `dir` is `top` or below it.
    fn is_below(&self, mut dir: usize, top: usize) -> bool {
        loop {
            match &self.nodes[dir] {
                _ if dir == top => return true,
                Node::Dir { parent, .. } if *parent != dir => dir = *parent,
                _ => return false,
            }
        }
    }

    pub(super) fn rename(&mut self, hand: &Hand) {
        let ((from, name), (to, new_name)) = (self.place(hand), self.place(hand));
        let (from_fid, to_fid) = (self.fids[from], self.fids[to]);
        let real = hand.client.rename(&ctx(), from_fid, &name, to_fid, &new_name, 0);
        let (moved, replaced) = (self.find(from, &name), self.find(to, &new_name));
        let wanted = match (moved, replaced) {
            (None, _) => Err(ErrorKind::NotFound),
            (Some(moved), _) if self.is_dir(moved) && self.is_below(to, moved) => {
                Err(ErrorKind::Invalid)
            }
            (Some(moved), Some(old)) if moved == old => Ok(None),
            (Some(moved), Some(old)) => match (self.is_dir(moved), self.is_dir(old)) {
                (true, false) => Err(ErrorKind::NotDir),
                (false, true) => Err(ErrorKind::IsDir),
                (true, true) if !self.is_empty_dir(old) => Err(ErrorKind::NotEmpty),
                _ => Ok(Some(moved)),
            },
            (Some(moved), None) => Ok(Some(moved)),
        };
        let Some(((), Some(moved))) = agree("rename", real, wanted) else { return };
        if let Some(old) = replaced {
            self.drop_link(old);
        }
        self.entries(from).remove(&name);
        self.entries(to).insert(new_name, moved);
        if let Node::Dir { parent, .. } = &mut self.nodes[moved] {
            *parent = to;
        }
    }

    pub(super) fn link(&mut self, hand: &Hand) {
        let ((from, name), (to, new_name)) = (self.place(hand), self.place(hand));
        let Some(node) = self.find(from, &name) else { return };
        let Node::File { .. } = self.nodes[node] else { return };
        let real = hand.client.link(&ctx(), self.fids[node], self.fids[to], &new_name);
        let wanted = self.find(to, &new_name).map_or(Ok(()), |_| Err(ErrorKind::Exists));
        if agree("link", real, wanted).is_some() {
            self.entries(to).insert(new_name, node);
            if let Node::File { nlink, .. } = &mut self.nodes[node] {
                *nlink += 1;
            }
        }
    }

    pub(super) fn lookup(&mut self, hand: &Hand) {
        let (dir, name) = self.place(hand);
        let real = hand.kept.look(&hand.client, hand.world.now(), self.fids[dir], &name);
        let wanted = self.find(dir, &name).ok_or(ErrorKind::NotFound);
        let Some((attr, node)) = agree("lookup", real, wanted) else { return };
        assert_eq!(attr.fid, self.fids[node]);
        match &self.nodes[node] {
            Node::File { data, nlink, .. } => {
                assert_eq!((attr.size, attr.nlink), (data.len() as u64, *nlink), "size, links");
                if let Some(&mode) = self.modes.get(&node) {
                    assert_eq!(attr.mode, mode, "mode of {}", attr.fid);
                }
            }
            Node::Dir { .. } => assert_eq!(attr.kind, FileType::Directory),
            Node::Symlink(target) => {
                let real = hand.client.readlink(&ctx(), attr.fid);
                assert_eq!(&hand.must("readlink", real), target);
            }
        }
    }

    pub(super) fn readdir(&mut self, hand: &Hand) {
        let (dir, few) = (self.dir(hand), 1 + hand.below(3));
        let handle = hand.must("opendir", hand.client.opendir(&ctx(), self.fids[dir]));
        let (mut seen, mut position) = (BTreeMap::new(), 0);
        loop {
            let (mut taken, after) = (0, position);
            let mut take = |entry: &DirEntry| {
                if taken == few {
                    return false;
                }
                taken += 1;
                position = entry.position;
                assert!(seen.insert(entry.name.clone(), entry.fid).is_none(), "seen twice");
                true
            };
            hand.must("readdir", hand.client.readdir(&ctx(), &handle, after, false, &mut take));
            if taken == 0 {
                break;
            }
        }
        hand.must("closedir", hand.client.closedir(&ctx(), &handle));
        let Node::Dir { parent, entries, .. } = &self.nodes[dir] else { unreachable!() };
        assert_eq!(seen.remove(&b"."[..]), Some(self.fids[dir]));
        let up = seen.remove(&b".."[..]);
        assert!(dir == 0 || up == Some(self.fids[*parent]), "parent directory");
        let wanted: BTreeMap<Vec<u8>, Fid> =
            entries.iter().map(|(name, &node)| (name.clone(), self.fids[node])).collect();
        assert_eq!(seen, wanted, "entries");
    }
}
