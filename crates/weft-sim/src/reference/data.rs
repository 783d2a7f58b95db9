//! Random operations on the contents of files.

use super::{Hand, Node, Open, Tree, ctx};
use std::ops::Range;
use weft_client::AllocateMode;
use weft_model::{ErrorKind, Result, SetAttr};

/// Largest offset used, so that a few writes overlap.
const MAX_SIZE: usize = 60_000;
/// Where writes to small files begin, at most: mostly short ones stay below what an MDT keeps.
const MAX_SMALL: usize = 8_000;

impl Tree {
    pub(super) fn data(&self, node: usize) -> &Vec<u8> {
        match &self.nodes[node] {
            Node::File { data, .. } => data,
            _ => unreachable!("node {node} is no file"),
        }
    }

    /// Changes contents.
    pub(super) fn change(&mut self, node: usize, change: impl FnOnce(&mut Vec<u8>)) {
        let Node::File { data, images, .. } = &mut self.nodes[node] else {
            unreachable!("node {node} is no file");
        };
        change(data);
        if !images.is_empty() {
            images.push(data.clone());
        }
    }

    pub(super) fn fresh(&mut self, len: usize) -> Vec<u8> {
        self.byte = self.byte.wrapping_add(1).max(1);
        vec![self.byte; len]
    }

    /// A random open file of the client, and a random range in it.
    fn pick(&self, hand: &Hand) -> Option<(usize, usize, usize)> {
        let own = (0..self.opens.len()).filter(|&open| self.opens[open].client == hand.number);
        let own: Vec<usize> = own.collect();
        if own.is_empty() {
            return None;
        }
        let longest = if hand.one_in(2) { 100 } else { 20_000 };
        let open = own[hand.below(own.len())];
        // Every other file stays small, so that the MDT may keep it.
        let end = if self.opens[open].node.is_multiple_of(2) { MAX_SIZE } else { MAX_SMALL };
        Some((open, hand.below(end), 1 + hand.below(longest)))
    }

    pub(super) fn write(&mut self, hand: &Hand) {
        let Some((open, mut offset, len)) = self.pick(hand) else { return };
        let fresh = self.fresh(len);
        let Open { ref file, node, append, .. } = self.opens[open];
        let real = hand.client.write(&ctx(), file, offset as u64, &fresh);
        if append {
            offset = self.data(node).len();
        }
        let range = offset..offset + len;
        if !self.is_full(hand, &real, len) {
            assert_eq!(hand.must("write", real), len, "length written");
            return self.change(node, |data| put(data, range, &fresh));
        }
        self.learn(hand, open, range, &fresh);
    }

    /// Whether the disks are full, which may shorten a write.
    fn is_full(&self, hand: &Hand, real: &Result<usize>, len: usize) -> bool {
        hand.world.plan.capacity.is_some()
            && match real {
                Ok(written) => *written < len,
                Err(error) => error.kind == ErrorKind::NoSpace,
            }
    }

    /// A write of `fresh` has failed in part: finds out what is there now, which must be old or new.
    fn learn(&mut self, hand: &Hand, open: usize, range: Range<usize>, fresh: &[u8]) {
        let Open { ref file, node, .. } = self.opens[open];
        let old = self.data(node).clone();
        let mut new = old.clone();
        put(&mut new, range, fresh);
        let mut found = vec![0xee; new.len() + 1];
        let real = hand.client.read(&ctx(), file, 0, &mut found);
        found.truncate(hand.must("read what was written in part", real));
        assert!((old.len()..=new.len()).contains(&found.len()), "size after a write in part");
        for (at, &byte) in found.iter().enumerate() {
            let before = old.get(at).copied().unwrap_or(0);
            assert!(byte == before || byte == new[at], "byte {at} after a write in part");
        }
        self.change(node, |data| *data = found);
    }

    pub(super) fn read(&mut self, hand: &Hand) {
        let Some((open, offset, len)) = self.pick(hand) else { return };
        let Open { ref file, node, .. } = self.opens[open];
        let mut buf = vec![0xee; len];
        let got = hand.must("read", hand.client.read(&ctx(), file, offset as u64, &mut buf));
        let content = self.data(node);
        let from = content.len().min(offset);
        let wanted = &content[from..content.len().min(from + len)];
        assert_eq!(got, wanted.len(), "length read at {offset} of {}", file.fid());
        let differs = (0..got).find(|&at| buf[at] != wanted[at]);
        assert!(differs.is_none(), "data read at {offset}+{differs:?} of {}", file.fid());
    }

    pub(super) fn close(&mut self, hand: &Hand) {
        let Some((open, ..)) = self.pick(hand) else { return };
        let open = self.opens.swap_remove(open);
        hand.must("close", hand.client.close(&ctx(), &open.file, None));
    }

    pub(super) fn truncate(&mut self, hand: &Hand) {
        let Some((open, size, _)) = self.pick(hand) else { return };
        let Open { ref file, node, .. } = self.opens[open];
        let by_handle = hand.one_in(2).then_some(file);
        let set = SetAttr { size: Some(size as u64), ..SetAttr::default() };
        let real = hand.client.setattr(&ctx(), self.fids[node], &set, by_handle);
        assert_eq!(hand.must("truncate", real).size, size as u64, "size after truncation");
        self.change(node, |data| data.resize(size, 0));
    }

    pub(super) fn allocate(&mut self, hand: &Hand) {
        let Some((open, offset, len)) = self.pick(hand) else { return };
        let modes = [
            AllocateMode::Reserve { keep_size: false },
            AllocateMode::Reserve { keep_size: true },
            AllocateMode::Zero { keep_size: false },
            AllocateMode::Punch,
        ];
        let mode = modes[hand.below(modes.len())];
        let Open { ref file, node, .. } = self.opens[open];
        let real = hand.client.allocate(&ctx(), file, mode, offset as u64, len as u64);
        hand.must("allocate", real);
        let extends = matches!(
            mode,
            AllocateMode::Reserve { keep_size: false } | AllocateMode::Zero { keep_size: false }
        );
        self.change(node, |data| {
            if extends {
                data.resize(data.len().max(offset + len), 0);
            }
            if !matches!(mode, AllocateMode::Reserve { .. }) {
                let (from, to) = (data.len().min(offset), data.len().min(offset + len));
                data[from..to].fill(0);
            }
        });
    }

    pub(super) fn sync(&mut self, hand: &Hand) {
        let Some((open, ..)) = self.pick(hand) else { return };
        let Open { ref file, node, .. } = self.opens[open];
        let begun = hand.world.digest().1;
        hand.must("fsync", hand.client.fsync(&ctx(), file, false));
        self.synced = begun;
        if let Node::File { data, images, .. } = &mut self.nodes[node] {
            *images = vec![data.clone()];
        }
    }
}

fn put(data: &mut Vec<u8>, range: Range<usize>, fresh: &[u8]) {
    data.resize(data.len().max(range.end), 0);
    data[range].copy_from_slice(fresh);
}
