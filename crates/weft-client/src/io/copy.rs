//! Copying between two open files.

use crate::client::Client;
use crate::ctx::Ctx;
use crate::inode::OpenFile;
use weft_model::{ErrorKind, FsError, Result};

/// Bytes copied at a time.
const CHUNK: u64 = 1 << 20;

impl Client {
    /// Copies up to `len` bytes from one file to another, as copy_file_range(2). Returns how many;
    /// fewer at the end of the source.
    ///
    /// # Errors
    /// `Invalid` for overlapping ranges of one file, and those of reading and writing; only when
    /// nothing was copied.
    pub fn copy_range(
        &self,
        ctx: &Ctx<'_>,
        from: (&OpenFile, u64),
        to: (&OpenFile, u64),
        len: u64,
    ) -> Result<u64> {
        let overlap = from.1 < to.1.saturating_add(len) && to.1 < from.1.saturating_add(len);
        if from.0.fid() == to.0.fid() && overlap {
            return Err(FsError::new(ErrorKind::Invalid, "copy range").because("ranges overlap"));
        }
        let mut buffer = vec![0u8; CHUNK.min(len) as usize];
        let mut copied = 0;
        while copied < len {
            let want = CHUNK.min(len - copied) as usize;
            let step = self.copy_chunk(ctx, from, to, copied, &mut buffer[..want]);
            match step {
                Ok(0) => break,
                Ok(written) => copied += written as u64,
                Err(error) if copied == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(copied)
    }

    fn copy_chunk(
        &self,
        ctx: &Ctx<'_>,
        (source, from): (&OpenFile, u64),
        (target, to): (&OpenFile, u64),
        at: u64,
        buffer: &mut [u8],
    ) -> Result<usize> {
        let got = self.read(ctx, source, from + at, buffer)?;
        self.write(ctx, target, to + at, &buffer[..got])
    }
}
