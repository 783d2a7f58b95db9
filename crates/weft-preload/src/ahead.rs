//! Data read ahead for one open file. It counts while a grant says that the file is as it was.

use weft_model::DataVersion;

/// Bytes read ahead at first, and at most.
const WINDOW: (usize, usize) = (128 << 10, 1 << 20);
/// Requests from this size on go straight through.
const LARGE: usize = 128 << 10;

/// What was read ahead, and how the file is read.
#[derive(Default)]
pub struct Ahead {
    data: Vec<u8>,
    start: u64,
    version: Option<DataVersion>,
    /// Where the last read ended.
    end: u64,
    window: usize,
}

impl Ahead {
    /// Copies what is there of a read, if all of it is: up to the end of the file.
    pub fn copy(&mut self, version: DataVersion, offset: u64, out: &mut [u8]) -> Option<usize> {
        let len = out.len().min(version.size.saturating_sub(offset) as usize);
        if len == 0 {
            return Some(0);
        }
        if self.version != Some(version) || offset < self.start {
            return None;
        }
        let at = (offset - self.start) as usize;
        out[..len].copy_from_slice(self.data.get(at..at.checked_add(len)?)?);
        self.end = offset + len as u64;
        Some(len)
    }

    /// How much to read at `offset` for a request of `len` bytes: more than that if the file is read in
    /// order, or so small that it may be read as a whole.
    pub fn plan(&mut self, size: u64, offset: u64, len: usize) -> Option<usize> {
        let in_order = offset == self.end && offset > 0;
        let again = self.end > 0 && size <= WINDOW.1 as u64;
        self.end = offset + len as u64;
        if len >= LARGE || !(in_order || again) {
            self.window = 0;
            return None;
        }
        self.window = (self.window * 2).clamp(WINDOW.0, WINDOW.1);
        Some(self.window)
    }

    /// Where a small file that is read here and there is read from.
    pub fn from(&self, size: u64, offset: u64) -> u64 {
        if size <= WINDOW.1 as u64 { 0 } else { offset }
    }

    /// Has the buffer filled. `read` tells how much there was.
    ///
    /// # Errors
    /// That of `read`.
    pub fn fill<E>(
        &mut self,
        version: DataVersion,
        start: u64,
        len: usize,
        read: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<(), E> {
        let mut data = std::mem::take(&mut self.data);
        self.version = None;
        data.resize(len, 0);
        let got = read(&mut data)?;
        data.truncate(got);
        (self.data, self.start, self.version) = (data, start, Some(version));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_model::Timespec;

    fn version(size: u64, change: u64) -> DataVersion {
        let time = Timespec::default();
        DataVersion { size, mtime: time, ctime: time, change }
    }

    fn fill(ahead: &mut Ahead, version: DataVersion, start: u64, len: usize) {
        let all = |data: &mut [u8]| {
            let len = data.len().min((version.size - start) as usize);
            (0..len).for_each(|at| data[at] = (start as usize + at) as u8);
            Ok::<usize, ()>(len)
        };
        ahead.fill(version, start, len, all).unwrap();
    }

    #[test]
    fn what_was_read_ahead_serves_while_the_file_is_the_same() {
        let (mut ahead, now) = (Ahead::default(), version(300_000, 1));
        fill(&mut ahead, now, 4096, 128 << 10);
        let mut out = [0; 8];
        assert_eq!(ahead.copy(now, 5000, &mut out), Some(8));
        assert_eq!(out[0], 5000u64 as u8);
        assert_eq!(ahead.copy(now, 0, &mut out), None);
        assert_eq!(ahead.copy(now, 4096 + (128 << 10) - 4, &mut out), None);
        assert_eq!(ahead.copy(version(300_000, 2), 5000, &mut out), None);
        assert_eq!(ahead.copy(now, 300_000, &mut out), Some(0));
    }

    #[test]
    fn the_end_of_the_file_ends_a_read() {
        let (mut ahead, now) = (Ahead::default(), version(100, 1));
        fill(&mut ahead, now, 0, 1000);
        let mut out = [0; 64];
        assert_eq!(ahead.copy(now, 90, &mut out), Some(10));
    }

    #[test]
    fn windows_grow_while_a_large_file_is_read_in_order() {
        let (mut ahead, size) = (Ahead::default(), 1 << 30);
        assert_eq!(ahead.plan(size, 0, 4096), None);
        assert_eq!(ahead.plan(size, 4096, 4096), Some(128 << 10));
        assert_eq!(ahead.plan(size, 8192, 4096), Some(256 << 10));
        assert_eq!(ahead.plan(size, 1 << 20, 4096), None);
        assert_eq!(ahead.plan(size, (1 << 20) + 4096, 1 << 20), None);
        assert_eq!(ahead.from(100, 50), 0);
        assert_eq!(ahead.from(size, 50), 50);
    }
}
