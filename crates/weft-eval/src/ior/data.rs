//! The data: every 8 bytes depend on seed, file and position in the transfer, and in every 4 KiB some
//! tell the position in the file. It does not compress, and misplaced data is noticed.

use super::plan::mix;
use crate::api::Buffer;

/// Distance of the places that tell where they belong.
const STRIDE: usize = 4096;

/// Transfers of one file.
pub struct Pattern {
    seed: u64,
    buffer: Buffer,
}

impl Pattern {
    /// Of transfers of `length` bytes of the file number `file`.
    pub fn new(signature: u64, file: u32, length: usize) -> Pattern {
        let seed = mix(signature ^ (u64::from(file) << 40));
        let mut buffer = Buffer::new(length);
        for (index, word) in buffer.chunks_mut(8).enumerate() {
            let bytes = mix(seed ^ index as u64).to_le_bytes();
            word.copy_from_slice(&bytes[..word.len()]);
        }
        Pattern { seed, buffer }
    }

    /// The transfer at `offset` in the file.
    pub fn at(&mut self, offset: u64) -> &[u8] {
        for (index, page) in self.buffer.chunks_mut(STRIDE).enumerate() {
            let bytes = mix(self.seed ^ mix(offset + (index * STRIDE) as u64)).to_le_bytes();
            let length = page.len().min(bytes.len());
            page[..length].copy_from_slice(&bytes[..length]);
        }
        &self.buffer
    }

    /// Position in `data`, which was read at `offset`, of the first wrong byte.
    pub fn wrong(&mut self, data: &[u8], offset: u64) -> Option<usize> {
        let wanted = self.at(offset);
        if data == wanted {
            return None;
        }
        data.iter().zip(wanted).position(|(found, wanted)| found != wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_what_is_misplaced() {
        let mut pattern = Pattern::new(1, 0, 47_008);
        let data = pattern.at(47_008).to_vec();
        assert_eq!(pattern.wrong(&data, 47_008), None);
        assert_eq!(pattern.wrong(&data, 0), Some(0));
        assert!(Pattern::new(1, 1, 47_008).wrong(&data, 47_008).is_some());
        assert!(Pattern::new(2, 0, 47_008).wrong(&data, 47_008).is_some());
        let mut damaged = data;
        damaged[40_000] ^= 1;
        assert_eq!(pattern.wrong(&damaged, 47_008), Some(40_000));
    }

    #[test]
    fn of_any_length() {
        for length in [1, 7, 3901, 4097] {
            let mut pattern = Pattern::new(1, 0, length);
            let data = pattern.at(5).to_vec();
            assert_eq!((data.len(), pattern.wrong(&data, 5)), (length, None));
        }
    }
}
