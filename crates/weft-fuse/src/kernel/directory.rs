//! Packing of directory listings.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use zerocopy::IntoBytes;

use super::abi::{Dirent, EntryOut};
use super::types::Entry;

/// Type of a file as a directory record tells it (`DT_…`): bits 12 to 15 of the mode.
fn dirent_kind(mode: u32) -> u32 {
    (mode & libc::S_IFMT) >> 12
}

/// Records in a reply buffer of fixed size.
struct Records<'a> {
    out: &'a mut [u8],
    used: usize,
}

impl Records<'_> {
    /// Appends head and name padded to 8 bytes; false, and nothing appended, if there is no room.
    fn push(&mut self, heads: [&[u8]; 2], name: &OsStr) -> bool {
        let parts = [heads[0], heads[1], name.as_bytes()];
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let padded = length.next_multiple_of(8);
        let Some(mut record) = self.out.get_mut(self.used..self.used + padded) else {
            return false;
        };
        for part in parts {
            let (place, rest) = record.split_at_mut(part.len());
            place.copy_from_slice(part);
            record = rest;
        }
        record.fill(0);
        self.used += padded;
        true
    }
}

fn dirent(ino: u64, offset: u64, mode: u32, name: &OsStr) -> Dirent {
    Dirent { ino, off: offset, namelen: name.len() as u32, kind: dirent_kind(mode) }
}

/// Reply of `readdir`: names with their inode numbers and types.
pub struct Listing<'a>(Records<'a>);

impl<'a> Listing<'a> {
    /// An empty listing that may grow to the size of `out`.
    pub fn new(out: &'a mut [u8]) -> Listing<'a> {
        Listing(Records { out, used: 0 })
    }

    /// Appends a name, of whose `mode` only the type bits matter. `offset` is what a later
    /// `readdir` gets to go on after this record, so never 0. False: full, stop here.
    #[must_use]
    pub fn push(&mut self, ino: u64, offset: u64, mode: u32, name: &OsStr) -> bool {
        self.0.push([dirent(ino, offset, mode, name).as_bytes(), &[]], name)
    }

    /// Bytes used so far.
    pub fn used(&self) -> usize {
        self.0.used
    }
}

/// Reply of `readdirplus`: names with all that a lookup would tell.
pub struct ListingPlus<'a>(Records<'a>);

impl<'a> ListingPlus<'a> {
    /// An empty listing that may grow to the size of `out`.
    pub fn new(out: &'a mut [u8]) -> ListingPlus<'a> {
        ListingPlus(Records { out, used: 0 })
    }

    /// Appends a name; as [`Listing::push`]. An entry with node 0 tells only inode number and
    /// type, and is no lookup. False: full, and the entry was not handed out.
    #[must_use]
    pub fn push(&mut self, entry: &Entry, offset: u64, name: &OsStr) -> bool {
        let attr = &entry.attr;
        let dirent = dirent(attr.ino, offset, attr.mode, name);
        self.0.push([EntryOut::from(entry).as_bytes(), dirent.as_bytes()], name)
    }

    /// Bytes used so far.
    pub fn used(&self) -> usize {
        self.0.used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packs_until_full() {
        let mut out = [0xff; 70];
        let mut list = Listing::new(&mut out);
        assert!(list.push(7, 1, libc::S_IFDIR | 0o755, OsStr::new("a")));
        assert!(list.push(8, 2, libc::S_IFREG, OsStr::new("12345678")));
        assert!(!list.push(9, 3, 0, OsStr::new("")));
        assert_eq!(list.used(), 64);
        assert_eq!(out[..8], 7u64.to_ne_bytes());
        assert_eq!(out[20..32], [4, 0, 0, 0, b'a', 0, 0, 0, 0, 0, 0, 0]);
    }
}
