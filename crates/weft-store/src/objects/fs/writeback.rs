//! Starting to write a stream to the disk while it still comes in, so that a sync finds little left
//! to do. This changes nothing about what is durable: it only has the kernel begin early.

use std::fs::File;
use std::sync::Arc;

/// Bytes that have to come in one after the other to count as a stream; also what is sent at a time.
const STRETCH: u64 = 4 << 20;

/// The end of an object, as far as it was written in order and not sent to the disk yet.
#[derive(Default)]
pub struct Stream {
    start: u64,
    end: u64,
}

/// A part of a file to send to the disk.
pub struct Stretch {
    pub file: Arc<File>,
    pub start: u64,
    pub end: u64,
}

impl Stream {
    /// Takes note of a write into `file`. What is to be sent to the disk now, if anything.
    pub fn extend(&mut self, file: &Arc<File>, offset: u64, end: u64) -> Option<Stretch> {
        if offset != self.end {
            self.start = offset;
        }
        self.end = end;
        if end - self.start < STRETCH {
            return None;
        }
        let start = std::mem::replace(&mut self.start, end);
        Some(Stretch { file: file.clone(), start, end })
    }
}

impl Stretch {
    /// All of a file.
    pub fn whole(file: &Arc<File>) -> Stretch {
        Stretch { file: file.clone(), start: 0, end: 0 }
    }

    /// Has the kernel begin to write it, without waiting for the end. What goes wrong is told by the
    /// sync that follows.
    ///
    /// Its marks must be durable, so that no block reaches the disk before its mark.
    pub fn begin(&self) {
        native::begin(&self.file, self.start, self.end - self.start);
    }
}

mod native {
    #![allow(unsafe_code)] // `sync_file_range` is not in std.

    use super::File;
    use std::os::fd::AsRawFd;

    /// A length of 0 means "to the end".
    pub fn begin(file: &File, offset: u64, len: u64) {
        let (fd, offset, len) = (file.as_raw_fd(), offset as i64, len as i64);
        // SAFETY: plain system call on a descriptor that is open for the time of the borrow.
        unsafe { libc::sync_file_range(fd, offset, len, libc::SYNC_FILE_RANGE_WRITE) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_streams_are_sent_ahead() {
        let file = Arc::new(tempfile::tempfile().unwrap());
        let mut stream = Stream::default();
        let mut write = |offset, end| {
            let stretch = stream.extend(&file, offset, end);
            stretch.map(|stretch| (stretch.start, stretch.end))
        };
        let half = STRETCH / 2;
        assert_eq!(write(0, half), None);
        assert_eq!(write(half, STRETCH), Some((0, STRETCH)));
        assert_eq!(write(STRETCH, STRETCH + half), None);
        assert_eq!(write(8 * STRETCH, 8 * STRETCH + half), None);
        assert_eq!(write(half, STRETCH), None);
        assert_eq!(write(STRETCH, 3 * STRETCH), Some((half, 3 * STRETCH)));
    }
}
