//! Checksums at rest: one `u32` per 4 KiB block.
//!
//! The value is the CRC32C of the block, padded with zeros behind the end of the object. The value 0
//! means "never written: all zeros", so a hole in the object is a hole in its checksums; a CRC that
//! happens to be 0 is stored as `!0`, and one that is `!0` of itself is told apart by looking.

use weft_model::checksum::{BLOCK, crc32c};
use weft_model::{ErrorKind, FsError, ObjectId};

/// Bytes of a block.
pub const BLOCK_LEN: usize = BLOCK as usize;

/// A block of zeros.
pub static ZEROS: [u8; BLOCK_LEN] = [0; BLOCK_LEN];

/// CRC32C of a block of zeros.
pub const ZERO_SUM: u32 = 0x98f9_4189;

/// The stored form of a CRC.
pub fn encode(sum: u32) -> u32 {
    if sum == 0 { !0 } else { sum }
}

/// The CRC behind a stored value; none when only the data can tell.
pub fn decode(stored: u32) -> Option<u32> {
    match stored {
        0 => Some(ZERO_SUM),
        u32::MAX => None,
        sum => Some(sum),
    }
}

/// Whether a block with this CRC is what the stored value says.
pub fn holds(stored: u32, sum: u32) -> bool {
    if stored == 0 { sum == ZERO_SUM } else { stored == encode(sum) }
}

/// CRC of a block of which only the first bytes exist.
pub fn padded(bytes: &[u8]) -> u32 {
    let mut block = ZEROS;
    block[..bytes.len()].copy_from_slice(bytes);
    crc32c(&block)
}

/// Number of blocks of an object of `size` bytes.
pub fn block_count(size: u64) -> u64 {
    size.div_ceil(BLOCK)
}

/// The error for the damaged block that starts at `offset`.
pub fn damaged(op: &'static str, id: ObjectId, offset: u64) -> FsError {
    FsError::new(ErrorKind::Checksum, op).on(format!("object={id} offset={offset}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_is_a_hole_and_only_that() {
        assert_eq!(crc32c(&ZEROS), ZERO_SUM);
        assert_eq!(padded(b""), ZERO_SUM);
        assert!(holds(0, ZERO_SUM) && !holds(0, 0) && !holds(0, 1));
        assert!(holds(encode(0), 0) && holds(encode(!0), !0) && holds(encode(5), 5));
        assert!(holds(encode(ZERO_SUM), ZERO_SUM));
        assert_eq!((decode(0), decode(encode(0)), decode(7)), (Some(ZERO_SUM), None, Some(7)));
    }
}
