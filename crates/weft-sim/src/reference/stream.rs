//! Readers that go through a file from its beginning to its end, while others may come between.

use super::{Hand, Node, Tree, ctx};
use weft_client::{OpenFile, OpenFlags};

/// Files that are read so at a time.
const MAX_READERS: usize = 4;
/// Reads in a row.
const READS: usize = 8;
/// Longest pause between two of them, microseconds.
const PAUSE: u64 = 20_000;

/// A file open for reading, and how far it was read.
pub(super) struct Reader {
    pub(super) client: u64,
    file: OpenFile,
    node: usize,
    next: usize,
    /// Bytes read at a time.
    len: usize,
}

impl Tree {
    /// Goes on reading a file, or begins another.
    pub(super) fn stream(&mut self, hand: &Hand) {
        let own = |reader: &Reader| reader.client == hand.number;
        let at = match self.readers.iter().position(own) {
            Some(at) if hand.one_in(3) || self.readers.len() >= MAX_READERS => Some(at),
            _ => self.begin_to_read(hand),
        };
        let Some(at) = at else { return };
        let mut reader = self.readers.remove(at);
        for _ in 0..READS {
            if !self.read_on(hand, &mut reader) {
                return hand.must("close", hand.client.close(&ctx(), &reader.file, None));
            }
            if hand.one_in(2) {
                hand.world.pause(hand.world.span(1, PAUSE));
            }
        }
        self.readers.push(reader);
    }

    fn begin_to_read(&mut self, hand: &Hand) -> Option<usize> {
        let is_large = |node: &Node| matches!(node, Node::File { data, nlink: 1.., .. } if data.len() > 10_000);
        let files: Vec<usize> =
            (0..self.nodes.len()).filter(|&node| is_large(&self.nodes[node])).collect();
        if files.is_empty() {
            return None;
        }
        let node = files[hand.below(files.len())];
        let opened = hand.client.open(&ctx(), self.fids[node], OpenFlags::READ);
        let (file, len) = (hand.must("open to read", opened), 500 + hand.below(4_000));
        self.readers.push(Reader { client: hand.number, file, node, next: 0, len });
        Some(self.readers.len() - 1)
    }

    /// Whether there was anything left.
    fn read_on(&self, hand: &Hand, reader: &mut Reader) -> bool {
        let mut buf = vec![0xee; reader.len];
        let real = hand.client.read(&ctx(), &reader.file, reader.next as u64, &mut buf);
        let (got, content) = (hand.must("read on", real), self.data(reader.node));
        let end = content.len().min(reader.next + reader.len);
        let wanted = content.get(reader.next..end).unwrap_or_default();
        assert_eq!(got, wanted.len(), "length read at {} of {}", reader.next, reader.file.fid());
        assert!(buf[..got] == *wanted, "data read at {} of {}", reader.next, reader.file.fid());
        reader.next += got;
        got > 0
    }

    pub(super) fn close_readers(&mut self, hand: &Hand) {
        let all = self.readers.drain(..).collect::<Vec<_>>();
        for reader in all {
            if reader.client == hand.number {
                hand.must("close", hand.client.close(&ctx(), &reader.file, None));
            } else {
                self.readers.push(reader);
            }
        }
    }
}
