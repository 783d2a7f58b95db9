//! The bytes of a small file, which the MDT keeps. Design: `docs/design/0008-inline-data.md`.

use crate::grants::Grant;
use std::sync::Arc;
use weft_model::{ErrorKind, Fid, FsError, Result, checksum};
use weft_rpc::pb::mds;

/// All bytes of a small file, as the MDT told them.
#[derive(Clone, Debug)]
pub(crate) struct Bytes {
    pub(crate) data: Arc<[u8]>,
    /// Of the file: what is missing reads as zeros.
    pub(crate) size: u64,
    /// That they stay so.
    pub(crate) grant: Grant,
}

impl Bytes {
    /// Takes what was told, if it is not damaged.
    ///
    /// # Errors
    /// `Checksum`.
    pub(crate) fn verified(fid: Fid, told: mds::Inline, size: u64, grant: Grant) -> Result<Bytes> {
        checksum::verify(0, &told.data, &told.sums).map_err(|at| {
            FsError::new(ErrorKind::Checksum, "read inline data")
                .on(format_args!("fid={fid} offset={at}"))
        })?;
        Ok(Bytes { data: told.data.into(), size, grant })
    }

    /// Reads at an offset; how much there is.
    pub(crate) fn read(&self, offset: u64, buf: &mut [u8]) -> usize {
        let len = self.size.saturating_sub(offset).min(buf.len() as u64) as usize;
        let from = self.data.get(offset.min(usize::MAX as u64) as usize..).unwrap_or(&[]);
        let known = from.len().min(len);
        buf[..known].copy_from_slice(&from[..known]);
        buf[known..len].fill(0);
        len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_up_to_the_size_reads_as_zeros() {
        let told = mds::Inline { data: b"hello".to_vec(), sums: checksum::compute(0, b"hello") };
        let bytes = Bytes::verified(Fid(7), told.clone(), 8, Grant::NONE).unwrap();
        let mut buf = [9; 10];
        assert_eq!((bytes.read(3, &mut buf), &buf[..6]), (5, &b"lo\0\0\0\x09"[..]));
        assert_eq!((bytes.read(7, &mut buf), bytes.read(8, &mut buf)), (1, 0));
        assert_eq!(bytes.read(u64::MAX, &mut buf), 0);
        let damaged = mds::Inline { data: b"jello".to_vec(), ..told };
        let error = Bytes::verified(Fid(7), damaged, 8, Grant::NONE).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Checksum);
    }
}
