//! CRC32C of file data, from the client to rest and back.
//!
//! Data is checked in *blocks* of 4 KiB at absolute positions in an object. A transfer is split at
//! block boundaries into *pieces*, each with its own checksum, so that a whole block's checksum goes
//! to rest and comes back without anybody reading the data again in between.

use std::ops::Range;

/// Unit of checksums at rest, bytes.
pub const BLOCK: u64 = 4096;

/// CRC32C, by the widest instructions that the processor has.
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}

/// Number of pieces of the extent `[offset, offset + len)`.
pub fn piece_count(offset: u64, len: u64) -> usize {
    if len == 0 {
        return 0;
    }
    ((offset + len - 1) / BLOCK - offset / BLOCK + 1) as usize
}

/// Splits `[offset, offset + len)` at block boundaries: ranges into the buffer that holds it.
pub fn pieces(offset: u64, len: usize) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0usize;
    std::iter::from_fn(move || {
        if start >= len {
            return None;
        }
        let room = (BLOCK - (offset + start as u64) % BLOCK) as usize;
        let end = len.min(start + room);
        let range = start..end;
        start = end;
        Some(range)
    })
}

/// Checksums of the pieces of `data`, which lies at `offset` of its object.
pub fn compute(offset: u64, data: &[u8]) -> Vec<u32> {
    pieces(offset, data.len()).map(|range| crc32c(&data[range])).collect()
}

/// Checks `data` against `sums`.
///
/// # Errors
/// The offset in the object of the first piece that does not match; that of the end when the number
/// of checksums is wrong.
pub fn verify(offset: u64, data: &[u8], sums: &[u32]) -> Result<(), u64> {
    if sums.len() != piece_count(offset, data.len() as u64) {
        return Err(offset + data.len() as u64);
    }
    for (range, &sum) in pieces(offset, data.len()).zip(sums) {
        let start = range.start as u64;
        if crc32c(&data[range]) != sum {
            return Err(offset + start);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_castagnoli_crc() {
        assert_eq!(crc32c(b""), 0);
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; BLOCK as usize]), 0x98f9_4189);
    }

    #[test]
    fn splits_at_absolute_boundaries() {
        let split: Vec<_> = pieces(4000, 4200).collect();
        assert_eq!(split, vec![0..96, 96..4192, 4192..4200]);
        assert_eq!(piece_count(4000, 4200), 3);
        assert_eq!(piece_count(0, 4096), 1);
        assert_eq!(piece_count(4095, 2), 2);
        assert_eq!(piece_count(5, 0), 0);
    }

    #[test]
    fn finds_a_flipped_bit() {
        let mut data: Vec<u8> = (0..10_000u32).map(|i| i as u8).collect();
        let sums = compute(100, &data);
        assert_eq!(verify(100, &data, &sums), Ok(()));
        data[5000] ^= 1;
        assert_eq!(verify(100, &data, &sums), Err(100 + 3996));
        assert_eq!(verify(100, &data, &sums[1..]), Err(10_100));
    }
}
