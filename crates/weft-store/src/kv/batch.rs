//! A list of changes that happen together or not at all, kept in the form in which it travels.

use weft_model::{ErrorKind, FsError, Result};

const VERSION: u8 = 1;
const HEADER: usize = 5;
const PUT: u8 = 1;
const DELETE: u8 = 2;
const DELETE_RANGE: u8 = 3;

/// One change of a [`Batch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op<'a> {
    /// Sets a key.
    Put {
        /// The key.
        key: &'a [u8],
        /// Its new value.
        value: &'a [u8],
    },
    /// Removes a key; nothing happens when there is none.
    Delete {
        /// The key.
        key: &'a [u8],
    },
    /// Removes all keys with `from <= key < until`. Leaves a mark that later reads of the range
    /// have to step over: for big and rare removals.
    DeleteRange {
        /// First key.
        from: &'a [u8],
        /// First key that stays.
        until: &'a [u8],
    },
}

/// Changes that [`super::Kv::write`] carries out atomically, in order: a later one wins.
///
/// The bytes are version (1), number of changes (u32), then for each its tag (1) and two strings
/// (one for a deletion), each with its length (u32) in front. Integers are little-endian.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    bytes: Vec<u8>,
}

impl Default for Batch {
    fn default() -> Batch {
        Batch::new()
    }
}

impl Batch {
    /// A batch without changes.
    pub fn new() -> Batch {
        Batch { bytes: vec![VERSION, 0, 0, 0, 0] }
    }

    /// Sets `key` to `value`.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> &mut Batch {
        self.push(PUT, key, Some(value))
    }

    /// Removes `key`.
    pub fn delete(&mut self, key: &[u8]) -> &mut Batch {
        self.push(DELETE, key, None)
    }

    /// Removes all keys with `from <= key < until`; nothing when `until` is not above `from`.
    pub fn delete_range(&mut self, from: &[u8], until: &[u8]) -> &mut Batch {
        self.push(DELETE_RANGE, from, Some(until))
    }

    /// Adds the changes of `other` behind the own ones.
    pub fn append(&mut self, other: &Batch) -> &mut Batch {
        let count = self.len() + other.len();
        self.bytes.extend_from_slice(&other.bytes[HEADER..]);
        self.set_len(count);
        self
    }

    /// Number of changes.
    pub fn len(&self) -> usize {
        u32::from_le_bytes([self.bytes[1], self.bytes[2], self.bytes[3], self.bytes[4]]) as usize
    }

    /// Whether there are no changes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets all changes and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.truncate(HEADER);
        self.set_len(0);
    }

    /// The bytes to ship or store; [`Batch::decode`] reads them.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The changes in order.
    pub fn iter(&self) -> impl Iterator<Item = Op<'_>> {
        let mut rest = &self.bytes[HEADER..];
        std::iter::from_fn(move || take_op(&mut rest))
    }

    /// Reads what [`Batch::as_bytes`] gave, and accepts nothing else.
    ///
    /// # Errors
    /// `Version` for an unknown version; `Corrupt` for anything cut short, too long or unknown.
    pub fn decode(bytes: &[u8]) -> Result<Batch> {
        const OP: &str = "decode batch";
        if bytes.len() < HEADER {
            return Err(FsError::new(ErrorKind::Corrupt, OP).because("shorter than its header"));
        }
        if bytes[0] != VERSION {
            let have = format!("version={} known={VERSION}", bytes[0]);
            return Err(FsError::new(ErrorKind::Version, OP).on(have));
        }
        let mut rest = &bytes[HEADER..];
        let mut count = 0;
        while !rest.is_empty() {
            let at = bytes.len() - rest.len();
            if take_op(&mut rest).is_none() {
                return Err(FsError::new(ErrorKind::Corrupt, OP).on(format!("byte={at}")));
            }
            count += 1;
        }
        let batch = Batch { bytes: bytes.to_vec() };
        if batch.len() != count {
            let numbers = format!("changes={count} announced={}", batch.len());
            return Err(FsError::new(ErrorKind::Corrupt, OP).on(numbers));
        }
        Ok(batch)
    }

    fn push(&mut self, tag: u8, first: &[u8], second: Option<&[u8]>) -> &mut Batch {
        self.bytes.push(tag);
        for text in std::iter::once(first).chain(second) {
            let len = u32::try_from(text.len()).expect("keys and values are far below 4 GiB");
            self.bytes.extend_from_slice(&len.to_le_bytes());
            self.bytes.extend_from_slice(text);
        }
        self.set_len(self.len() + 1);
        self
    }

    fn set_len(&mut self, count: usize) {
        let count = u32::try_from(count).expect("a batch has far less than 2^32 changes");
        self.bytes[1..HEADER].copy_from_slice(&count.to_le_bytes());
    }
}

fn take_op<'a>(rest: &mut &'a [u8]) -> Option<Op<'a>> {
    let (&tag, tail) = rest.split_first()?;
    *rest = tail;
    match tag {
        PUT => Some(Op::Put { key: take_string(rest)?, value: take_string(rest)? }),
        DELETE => Some(Op::Delete { key: take_string(rest)? }),
        DELETE_RANGE => {
            Some(Op::DeleteRange { from: take_string(rest)?, until: take_string(rest)? })
        }
        _ => None,
    }
}

fn take_string<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (len, tail) = rest.split_first_chunk::<4>()?;
    let (text, tail) = tail.split_at_checked(u32::from_le_bytes(*len) as usize)?;
    *rest = tail;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Batch {
        let mut batch = Batch::new();
        batch.put(b"k", b"v").delete(b"").delete_range(b"a", b"b").put(b"", b"");
        batch
    }

    #[test]
    fn comes_back_as_it_was() {
        let batch = sample();
        let back = Batch::decode(batch.as_bytes()).unwrap();
        assert_eq!(back, batch);
        assert_eq!(back.len(), 4);
        let ops: Vec<_> = back.iter().collect();
        assert_eq!(ops[0], Op::Put { key: b"k", value: b"v" });
        assert_eq!(ops[1], Op::Delete { key: b"" });
        assert_eq!(ops[2], Op::DeleteRange { from: b"a", until: b"b" });
        let mut both = Batch::new();
        both.append(&batch).append(&batch);
        assert_eq!(both.iter().count(), 8);
        both.clear();
        assert!(both.is_empty() && both.iter().next().is_none());
    }

    #[test]
    fn refuses_everything_else() {
        let bytes = sample().as_bytes().to_vec();
        for cut in 0..bytes.len() {
            assert!(Batch::decode(&bytes[..cut]).is_err(), "cut at {cut}");
        }
        let mut longer = bytes.clone();
        longer.push(0);
        assert_eq!(Batch::decode(&longer).unwrap_err().kind, ErrorKind::Corrupt);
        let mut newer = bytes.clone();
        newer[0] = 9;
        assert_eq!(Batch::decode(&newer).unwrap_err().kind, ErrorKind::Version);
        let mut huge = bytes;
        huge[HEADER + 1..HEADER + 5].fill(0xff);
        assert_eq!(Batch::decode(&huge).unwrap_err().kind, ErrorKind::Corrupt);
    }
}
