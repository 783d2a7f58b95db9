//! Random operations on the contents of files.

use crate::run::{Open, Run};
use rand::Rng;
use weft_client::{AllocateMode, Ctx};
use weft_model::SetAttr;

/// Largest offset used, so that a few writes overlap.
const MAX_SIZE: u64 = 60_000;

impl Run {
    /// A random open file and a random range in it.
    pub fn pick(&mut self) -> Option<(usize, u64, usize)> {
        if self.opens.is_empty() {
            return None;
        }
        let open = self.rng.random_range(0..self.opens.len());
        let offset = self.rng.random_range(0..MAX_SIZE);
        let longest = if self.rng.random_bool(0.5) { 100 } else { 20_000 };
        Some((open, offset, self.rng.random_range(1..longest)))
    }

    pub fn write(&mut self) {
        let Some((open, mut offset, len)) = self.pick() else { return };
        let data = self.fresh(len);
        let Open { client, ref file, node, append } = self.opens[open];
        let client = self.clients[client].clone();
        assert_eq!(client.write(&Ctx::root(), file, offset, &data).unwrap(), len);
        let content = self.data(node);
        if append {
            offset = content.len() as u64;
        }
        let end = offset as usize + len;
        content.resize(content.len().max(end), 0);
        content[offset as usize..end].copy_from_slice(&data);
    }

    pub fn read(&mut self) {
        let Some((open, offset, len)) = self.pick() else { return };
        let Open { client, ref file, node, .. } = self.opens[open];
        let mut buf = vec![0xee; len];
        let got = self.clients[client].read(&Ctx::root(), file, offset, &mut buf).unwrap();
        let content = self.data(node);
        let from = content.len().min(offset as usize);
        let wanted = &content[from..content.len().min(from + len)];
        assert_eq!(got, wanted.len(), "length read at {offset}");
        assert!(&buf[..got] == wanted, "data read at {offset}+{len}");
    }

    pub fn close(&mut self) {
        let Some((open, ..)) = self.pick() else { return };
        let open = self.opens.swap_remove(open);
        self.clients[open.client].close(&Ctx::root(), &open.file, None).unwrap();
    }

    pub fn truncate(&mut self) {
        let Some((open, size, _)) = self.pick() else { return };
        let Open { client, ref file, node, .. } = self.opens[open];
        let by_handle = self.rng.random_bool(0.5).then_some(file);
        let set = SetAttr { size: Some(size), ..SetAttr::default() };
        let client = self.clients[client].clone();
        let attr = client.setattr(&Ctx::root(), self.fids[node], &set, by_handle).unwrap();
        assert_eq!(attr.size, size);
        self.data(node).resize(size as usize, 0);
    }

    pub fn allocate(&mut self) {
        let Some((open, offset, len)) = self.pick() else { return };
        let modes = [
            AllocateMode::Reserve { keep_size: false },
            AllocateMode::Reserve { keep_size: true },
            AllocateMode::Zero { keep_size: false },
            AllocateMode::Punch,
        ];
        let mode = modes[self.rng.random_range(0..modes.len())];
        let Open { client, ref file, node, .. } = self.opens[open];
        let client = self.clients[client].clone();
        client.allocate(&Ctx::root(), file, mode, offset, len as u64).unwrap();
        let (content, end) = (self.data(node), offset as usize + len);
        let extends = matches!(
            mode,
            AllocateMode::Reserve { keep_size: false } | AllocateMode::Zero { keep_size: false }
        );
        if extends {
            content.resize(content.len().max(end), 0);
        }
        if !matches!(mode, AllocateMode::Reserve { .. }) {
            let (from, to) = (content.len().min(offset as usize), content.len().min(end));
            content[from..to].fill(0);
        }
    }

    pub fn sync(&mut self) {
        if let Some((open, ..)) = self.pick() {
            let open = &self.opens[open];
            self.clients[open.client].fsync(&Ctx::root(), &open.file, false).unwrap();
        }
        self.cluster.mds.tick();
    }
}
