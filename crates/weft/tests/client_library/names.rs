//! Random operations on names.

use crate::run::{Node, Open, Run, agree};
use rand::Rng;
use std::collections::BTreeMap;
use weft_client::{CreateArgs, Ctx, DirEntry, OpenFlags};
use weft_model::{ErrorKind, Fid, FileType};

impl Run {
    pub fn mkdir(&mut self) {
        let ((_, client), dir, name) = (self.client(), self.dir(), self.name());
        let real = client.mkdir(&Ctx::root(), self.fids[dir], &name, 0o755);
        let wanted = self.find(dir, &name).map_or(Ok(()), |_| Err(ErrorKind::Exists));
        if let Some((attr, ())) = agree("mkdir", real, wanted) {
            let node = Node::Dir { entries: BTreeMap::new(), parent: dir, gone: false };
            self.add(dir, &name, node, attr.fid);
        }
    }

    pub fn symlink(&mut self) {
        let ((_, client), dir, name) = (self.client(), self.dir(), self.name());
        let target = self.fresh(20);
        let real = client.symlink(&Ctx::root(), self.fids[dir], &name, &target);
        let wanted = self.find(dir, &name).map_or(Ok(()), |_| Err(ErrorKind::Exists));
        if let Some((attr, ())) = agree("symlink", real, wanted) {
            assert_eq!((attr.kind, attr.size), (FileType::Symlink, 20));
            self.add(dir, &name, Node::Symlink(target), attr.fid);
        }
    }

    pub fn create(&mut self) {
        let ((index, client), dir, name) = (self.client(), self.dir(), self.name());
        let (exclusive, cuts) = (self.rng.random_bool(0.3), self.rng.random_bool(0.2));
        let append = self.rng.random_bool(0.2);
        let mut flags = OpenFlags::READ | OpenFlags::WRITE;
        if cuts {
            flags = flags | OpenFlags::TRUNCATE;
        }
        if append {
            flags = flags | OpenFlags::APPEND;
        }
        let args = CreateArgs { mode: 0o644, flags, exclusive, layout: None };
        let real = client.create(&Ctx::root(), self.fids[dir], &name, &args);
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
        assert_eq!(real.created, found.is_none());
        let node = found.unwrap_or_else(|| {
            let file = Node::File { data: Vec::new(), nlink: 1 };
            self.add(dir, &name, file, real.file.fid())
        });
        if cuts {
            self.data(node).clear();
        }
        assert_eq!(real.attr.size, self.data(node).len() as u64, "size at create");
        self.opens.push(Open { client: index, file: real.file, node, append });
    }

    pub fn open(&mut self) {
        let ((index, client), dir, name) = (self.client(), self.dir(), self.name());
        let Some(node) = self.find(dir, &name) else { return };
        if let Node::File { .. } = self.nodes[node] {
            let flags = OpenFlags::READ | OpenFlags::WRITE;
            let file = client.open(&Ctx::root(), self.fids[node], flags).unwrap();
            self.opens.push(Open { client: index, file, node, append: false });
        }
    }

    pub fn unlink(&mut self) {
        let ((_, client), dir, name) = (self.client(), self.dir(), self.name());
        let real = client.unlink(&Ctx::root(), self.fids[dir], &name);
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

    pub fn rmdir(&mut self) {
        let ((_, client), dir, name) = (self.client(), self.dir(), self.name());
        let real = client.rmdir(&Ctx::root(), self.fids[dir], &name);
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
    pub fn is_below(&self, mut dir: usize, top: usize) -> bool {
        loop {
            match &self.nodes[dir] {
                _ if dir == top => return true,
                Node::Dir { parent, .. } if *parent != dir => dir = *parent,
                _ => return false,
            }
        }
    }

    pub fn rename(&mut self) {
        let (_, client) = self.client();
        let (from, name, to, new_name) = (self.dir(), self.name(), self.dir(), self.name());
        let (from_fid, to_fid) = (self.fids[from], self.fids[to]);
        let real = client.rename(&Ctx::root(), from_fid, &name, to_fid, &new_name, 0);
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

    pub fn link(&mut self) {
        let (_, client) = self.client();
        let (from, name, to, new_name) = (self.dir(), self.name(), self.dir(), self.name());
        let Some(node) = self.find(from, &name) else { return };
        let Node::File { .. } = self.nodes[node] else { return };
        let real = client.link(&Ctx::root(), self.fids[node], self.fids[to], &new_name);
        let wanted = self.find(to, &new_name).map_or(Ok(()), |_| Err(ErrorKind::Exists));
        if agree("link", real, wanted).is_some() {
            self.entries(to).insert(new_name, node);
            if let Node::File { nlink, .. } = &mut self.nodes[node] {
                *nlink += 1;
            }
        }
    }

    pub fn lookup(&mut self) {
        let ((_, client), dir, name) = (self.client(), self.dir(), self.name());
        let real = client.lookup(&Ctx::root(), self.fids[dir], &name);
        let wanted = self.find(dir, &name).ok_or(ErrorKind::NotFound);
        let Some((attr, node)) = agree("lookup", real, wanted) else { return };
        assert_eq!(attr.fid, self.fids[node]);
        match &self.nodes[node] {
            Node::File { data, nlink } => {
                assert_eq!((attr.size, attr.nlink), (data.len() as u64, *nlink), "of {name:?}");
            }
            Node::Dir { .. } => assert_eq!(attr.kind, FileType::Directory),
            Node::Symlink(target) => {
                assert_eq!(&client.readlink(&Ctx::root(), attr.fid).unwrap(), target);
            }
        }
    }

    pub fn readdir(&mut self) {
        let ((_, client), dir) = (self.client(), self.dir());
        let (ctx, few) = (Ctx::root(), self.rng.random_range(1..4));
        let handle = client.opendir(&ctx, self.fids[dir]).unwrap();
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
            client.readdir(&ctx, &handle, after, false, &mut take).unwrap();
            if taken == 0 {
                break;
            }
        }
        client.closedir(&ctx, &handle).unwrap();
        let Node::Dir { parent, .. } = self.nodes[dir] else { unreachable!() };
        assert_eq!(seen.remove(&b"."[..]), Some(self.fids[dir]));
        assert_eq!(seen.remove(&b".."[..]), Some(self.fids[parent]));
        let wanted: BTreeMap<Vec<u8>, usize> = self.entries(dir).clone();
        let wanted: BTreeMap<Vec<u8>, Fid> =
            wanted.into_iter().map(|(name, node)| (name, self.fids[node])).collect();
        assert_eq!(seen, wanted);
    }
}
