//! Every key of a metadata target: a type byte, then big-endian parts, so that what is read together
//! lies together.
//!
//! | key | value | why in this order |
//! |---|---|---|
//! | `I` fid | [`crate::record::Inode`] | by number: everything but names |
//! | `B` fid | [`crate::record::Inline`] | bytes of a small file, apart from the inode, which changes more often |
//! | `D` dir position name | [`crate::record::Dirent`] | a directory in the order of `readdir` |
//! | `X` fid name | bytes | extended attributes of an inode together |
//! | `C` client | [`crate::record::Session`] | sessions, read at start |
//! | `R` client slot | [`crate::record::SavedReply`] | reply cache of a session together |
//! | `W` client fid | empty | files a session may have written beyond the known size |
//! | `O` fid | empty | unlinked but perhaps still open |
//! | `G` fid | [`crate::record::Garbage`] | objects to be destroyed |
//! | `T` fid | [`crate::record::Truncation`] | objects being cut |
//! | `K` ost | [`crate::record::ObjectCheck`] | objects being compared with inodes |
//! | `N` | [`crate::record::Counters`] | next FID |

use weft_model::{ClientId, Fid, name};

/// First byte of each kind of key.
pub mod kind {
    #![allow(missing_docs)]
    pub const INODE: u8 = b'I';
    pub const INLINE: u8 = b'B';
    pub const DIRENT: u8 = b'D';
    pub const XATTR: u8 = b'X';
    pub const SESSION: u8 = b'C';
    pub const REPLY: u8 = b'R';
    pub const WRITER: u8 = b'W';
    pub const ORPHAN: u8 = b'O';
    pub const GARBAGE: u8 = b'G';
    pub const TRUNCATION: u8 = b'T';
    pub const OBJECT_CHECK: u8 = b'K';
    pub const COUNTERS: u8 = b'N';
}

fn with_u64(kind: u8, number: u64, room: usize) -> Vec<u8> {
    let mut key = Vec::with_capacity(9 + room);
    key.push(kind);
    key.extend(number.to_be_bytes());
    key
}

/// Key of an inode.
pub fn inode(fid: Fid) -> Vec<u8> {
    with_u64(kind::INODE, fid.0, 0)
}

/// Key of the bytes of a small file.
pub fn inline(fid: Fid) -> Vec<u8> {
    with_u64(kind::INLINE, fid.0, 0)
}

/// Key of an entry.
pub fn dirent(dir: Fid, entry: &[u8]) -> Vec<u8> {
    let mut key = with_u64(kind::DIRENT, dir.0, 8 + entry.len());
    key.extend(name::position(entry).to_be_bytes());
    key.extend(entry);
    key
}

/// First key of the entries of `dir` at or after `position`.
pub fn dirents_from(dir: Fid, position: u64) -> Vec<u8> {
    let mut key = with_u64(kind::DIRENT, dir.0, 8);
    key.extend(position.to_be_bytes());
    key
}

/// Position and name in the key of an entry; `None` when it is not one.
pub fn split_dirent(key: &[u8]) -> Option<(u64, &[u8])> {
    let (head, entry) = key.split_at_checked(17)?;
    let position = u64::from_be_bytes(head[9..17].try_into().ok()?);
    (head[0] == kind::DIRENT).then_some((position, entry))
}

/// Key of an extended attribute; an empty name gives the prefix of all of them.
pub fn xattr(fid: Fid, attribute: &[u8]) -> Vec<u8> {
    let mut key = with_u64(kind::XATTR, fid.0, attribute.len());
    key.extend(attribute);
    key
}

/// Key of a session.
pub fn session(client: ClientId) -> Vec<u8> {
    with_u64(kind::SESSION, client.0, 0)
}

/// Key of the last reply in a slot.
pub fn reply(client: ClientId, slot: u16) -> Vec<u8> {
    let mut key = with_u64(kind::REPLY, client.0, 2);
    key.extend(slot.to_be_bytes());
    key
}

/// Prefix of the replies of a session.
pub fn replies(client: ClientId) -> Vec<u8> {
    with_u64(kind::REPLY, client.0, 0)
}

/// Key of the mark that a session may have written to a file.
pub fn writer(client: ClientId, fid: Fid) -> Vec<u8> {
    let mut key = with_u64(kind::WRITER, client.0, 8);
    key.extend(fid.0.to_be_bytes());
    key
}

/// Prefix of the writer marks of a session.
pub fn writers(client: ClientId) -> Vec<u8> {
    with_u64(kind::WRITER, client.0, 0)
}

/// Key of the mark of an orphan.
pub fn orphan(fid: Fid) -> Vec<u8> {
    with_u64(kind::ORPHAN, fid.0, 0)
}

/// Key of objects to be destroyed.
pub fn garbage(fid: Fid) -> Vec<u8> {
    with_u64(kind::GARBAGE, fid.0, 0)
}

/// Key of a truncation under way.
pub fn truncation(fid: Fid) -> Vec<u8> {
    with_u64(kind::TRUNCATION, fid.0, 0)
}

/// Key of a comparison of an OST's objects with inodes.
pub fn object_check(ost: u16) -> Vec<u8> {
    with_u64(kind::OBJECT_CHECK, ost.into(), 0)
}

/// Key of the counters.
pub fn counters() -> Vec<u8> {
    vec![kind::COUNTERS]
}

/// The number behind the type byte.
pub fn number(key: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(key.get(1..9)?.try_into().ok()?))
}

/// The last eight bytes: the FID of a writer mark.
pub fn last_number(key: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(key.last_chunk::<8>().copied()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_a_directory_are_together_in_position_order() {
        let dir = Fid::new(1, 5);
        let key = dirent(dir, b"file");
        let (position, entry) = split_dirent(&key).unwrap();
        assert_eq!((position, entry), (name::position(b"file"), &b"file"[..]));
        assert!(key >= dirents_from(dir, 0) && key < dirents_from(Fid::new(1, 6), 0));
        assert!(split_dirent(&inode(dir)).is_none());
        assert_eq!(number(&inode(dir)), Some(dir.0));
        assert_eq!(last_number(&writer(ClientId(3), dir)), Some(dir.0));
    }
}
