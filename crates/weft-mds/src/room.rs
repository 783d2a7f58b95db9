//! Which requests make the store grow. They are refused while only the reserve of the disk is left; all
//! others, above all those that make room, go on: unlink, truncation, closing.

use crate::ops::rename::WHITEOUT;
use weft_rpc::Request;

/// What a name with its inode and the answer take in the log, rounded up.
const ENTRY: u64 = 1 << 10;

/// Bytes to ask the disk for before a request is carried out, if it makes the store grow.
pub fn wanted(request: &Request) -> Option<u64> {
    use Request as Q;
    match request {
        Q::Create(_) | Q::Mknod(_) | Q::Mkdir(_) | Q::Tmpfile(_) | Q::Link(_) => Some(ENTRY),
        Q::Symlink(r) => Some(ENTRY + r.target.len() as u64),
        Q::Rename(r) if r.flags & WHITEOUT != 0 => Some(ENTRY),
        Q::SetXattr(r) => Some(ENTRY + r.value.len() as u64),
        _ => None,
    }
}
