//! The buffer of a worker: requests come in at its front, replies are made behind.

use super::abi::{InHeader, WriteIn};

const PAGE: usize = 4096;

/// Bytes before the data of a `write` request.
const WRITE_HEAD: usize = size_of::<InHeader>() + size_of::<WriteIn>();

/// Room beyond the largest write: for the reply to it, and for an extended attribute's value
/// behind a long request.
const SLACK: usize = 17 * PAGE;

/// A recycled buffer that puts the data of `write` requests and the replies on page boundaries.
///
/// ```text
/// 0        4016        4096                        page boundary
/// | unused | request's head | rest of the request ... | reply ... |
/// ```
pub(crate) struct Buffer {
    // Large zeroed allocations are not touched before use, so an idle worker takes no memory.
    memory: Vec<u8>,
    /// Index of the first page boundary in `memory`.
    first_page: usize,
}

impl Buffer {
    /// For requests with `max_write` bytes of data and replies of that size to small requests.
    pub(crate) fn new(max_write: usize) -> Buffer {
        let memory = vec![0; PAGE + PAGE + max_write + SLACK];
        let first_page = memory.as_ptr().align_offset(PAGE);
        Buffer { memory, first_page }
    }

    /// Has memory for everything now.
    pub(crate) fn touch(&mut self) {
        self.memory.iter_mut().step_by(PAGE).for_each(|byte| *std::hint::black_box(byte) = 0);
    }

    /// Where to read a request to.
    pub(crate) fn incoming(&mut self) -> &mut [u8] {
        &mut self.memory[self.first_page + PAGE - WRITE_HEAD..]
    }

    /// The request of `length` bytes that was read, and the room for its reply.
    pub(crate) fn split(&mut self, length: usize) -> (&[u8], &mut [u8]) {
        let end = PAGE - WRITE_HEAD + length;
        let reply = end.next_multiple_of(PAGE).min(self.memory.len() - self.first_page);
        let (front, reply) = self.memory[self.first_page..].split_at_mut(reply);
        (&front[PAGE - WRITE_HEAD..end], reply)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_and_replies_are_aligned_and_large_enough() {
        const MAX: usize = 1 << 20;
        let mut buffer = Buffer::new(MAX);
        assert!(buffer.incoming().len() >= WRITE_HEAD + MAX);
        for (length, room) in [(40, MAX), (WRITE_HEAD, MAX), (500, 65536), (WRITE_HEAD + MAX, 8)] {
            let (request, reply) = buffer.split(length);
            assert_eq!(request.len(), length);
            assert_eq!((request.as_ptr() as usize + WRITE_HEAD) % PAGE, 0);
            assert_eq!(reply.as_ptr() as usize % PAGE, 0);
            assert!(reply.len() >= room, "{length}: {} bytes", reply.len());
        }
        let all = buffer.incoming().len();
        assert_eq!(buffer.split(all).0.len(), all);
    }
}
