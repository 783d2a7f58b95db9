//! The memory through which requests and replies go.
//!
//! The kernel writes a request to a place when it completes the command that was last submitted for
//! it, and reads the reply from there while the next one is submitted. In between the place is ours,
//! so it is used as if it were not shared at all.
#![allow(unsafe_code)] // memory that the kernel knows of

use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

use zerocopy::{FromBytes, IntoBytes};

use crate::kernel::abi::{InHeader, OutHeader, UringEntry, UringHeader};
use crate::kernel::errno::{Errno, Result};

const PAGE: usize = 4096;
/// Where the payload is; the request's head is put together before it.
const PAYLOAD: usize = PAGE;
/// The kernel wants room for at least this many bytes of payload.
const LEAST_PAYLOAD: usize = 8192;
/// Room for replies to requests that have a payload: extended attributes are the longest.
const SLACK: usize = 17 * PAGE;
/// Where the kernel reads how long a reply is.
const ENTRY: usize = size_of::<UringHeader>() - size_of::<UringEntry>();

/// The memory of all places of a queue. What is not used yet takes address space only.
struct Slab {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: it is a range of memory, whose parts are handed out once each.
unsafe impl Send for Slab {}
// SAFETY: as above.
unsafe impl Sync for Slab {}

impl Slab {
    fn new(len: usize) -> io::Result<Slab> {
        let (read_write, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
        );
        // SAFETY: asks for fresh memory.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), len, read_write, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Slab { base: NonNull::new(base.cast()).ok_or(Errno::ENOMEM)?, len })
    }
}

impl Drop for Slab {
    fn drop(&mut self) {
        // SAFETY: it is what mmap answered, and no place is left that refers to it.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
    }
}

/// A place in a queue: holds one request at a time.
///
/// ```text
/// 0         288                      4096                        page boundary
/// | header  | unused | request's head | payload: request or reply | reply in the making |
/// ```
pub(super) struct Place {
    slab: Arc<Slab>,
    start: usize,
    len: usize,
    /// Number of the request that is here.
    commit_id: u64,
    /// Where its reply is made.
    reply: usize,
    /// The kernel may write to it at any time.
    pub(super) is_known: bool,
}

impl Place {
    /// Makes `count` places for requests with at most `max_write` bytes of data.
    ///
    /// # Errors
    /// `ENOMEM` if there is not enough address space.
    pub(super) fn many(count: usize, max_write: usize) -> io::Result<Vec<Place>> {
        let len = PAYLOAD + max_write.max(LEAST_PAYLOAD).next_multiple_of(PAGE) + SLACK;
        let slab = Arc::new(Slab::new(len * count)?);
        let place = |index| {
            let (slab, start) = (slab.clone(), index * len);
            Place { slab, start, len, commit_id: 0, reply: PAYLOAD, is_known: false }
        };
        Ok((0..count).map(place).collect())
    }

    fn memory(&mut self) -> &mut [u8] {
        // SAFETY: the range is within the slab, which is kept, and of this place alone; the kernel
        // writes there only while nobody calls this (see above).
        unsafe {
            let start = self.slab.base.add(self.start);
            std::slice::from_raw_parts_mut(start.as_ptr(), self.len)
        }
    }

    /// What the kernel is told about it: where headers and where payloads go.
    pub(super) fn parts(&mut self) -> [libc::iovec; 2] {
        let (head, payload) = self.memory().split_at_mut(PAYLOAD);
        let part = |memory: &mut [u8], iov_len| libc::iovec {
            iov_base: memory.as_mut_ptr().cast(),
            iov_len,
        };
        let room = payload.len() - SLACK;
        [part(head, size_of::<UringHeader>()), part(payload, room)]
    }

    /// Number of the request that was answered last.
    pub(super) fn commit_id(&self) -> u64 {
        self.commit_id
    }

    /// The request that is here, as if it had been read from the device, and the room for its reply.
    ///
    /// # Errors
    /// `EINVAL` if its lengths disagree; it can be answered all the same.
    pub(super) fn request(&mut self) -> Result<(&[u8], &mut [u8])> {
        let (head, _) = UringHeader::read_from_prefix(self.memory()).map_err(|_| Errno::EINVAL)?;
        (self.commit_id, self.reply) = (head.entry.commit_id, PAYLOAD);
        let request = InHeader::read_from_prefix(head.in_out.as_bytes());
        let (header, _) = request.map_err(|_| Errno::EINVAL)?;
        let (all, payload) = (header.len as usize, head.entry.payload_sz as usize);
        let op_head = all.checked_sub(size_of::<InHeader>() + payload).ok_or(Errno::EINVAL)?;
        let op_head = head.op_in.as_bytes().get(..op_head).ok_or(Errno::EINVAL)?;
        let end = PAYLOAD + payload;
        if payload > 0 {
            // The reply must not be made over the request that it answers.
            self.reply = end.next_multiple_of(PAGE);
        }
        let reply = self.reply;
        let (front, out) = self.memory().split_at_mut_checked(reply).ok_or(Errno::EINVAL)?;
        let start = end - all;
        let (first, second) = front[start..].split_at_mut(size_of::<InHeader>());
        first.copy_from_slice(header.as_bytes());
        second[..op_head.len()].copy_from_slice(op_head);
        Ok((&front[start..end], out))
    }

    /// Puts the reply where the kernel will read it: an error, or so many bytes of the room for it.
    pub(super) fn answer(&mut self, result: Result<usize>) {
        let (length, unique, reply) = (result.unwrap_or(0), self.commit_id, self.reply);
        let header = OutHeader {
            len: (size_of::<OutHeader>() + length) as u32,
            error: result.err().map_or(0, |errno| -errno.code()),
            unique,
        };
        let payload_sz = length as u32;
        let entry = UringEntry { commit_id: unique, payload_sz, ..UringEntry::default() };
        let memory = self.memory();
        if reply != PAYLOAD {
            memory.copy_within(reply..reply + length, PAYLOAD);
        }
        memory[..size_of::<OutHeader>()].copy_from_slice(header.as_bytes());
        memory[ENTRY..][..size_of::<UringEntry>()].copy_from_slice(entry.as_bytes());
    }
}

impl Drop for Place {
    /// The kernel has no command to take a place back. The memory of one it knows is given up.
    fn drop(&mut self) {
        if self.is_known {
            std::mem::forget(self.slab.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a request as the kernel does.
    fn arrive(place: &mut Place, len: usize, payload: &[u8]) {
        let header = InHeader { len: len as u32, unique: 6, ..InHeader::default() };
        let mut head = UringHeader::default();
        head.in_out.as_mut_bytes()[..40].copy_from_slice(header.as_bytes());
        head.op_in.as_mut_bytes().fill(7);
        head.entry.commit_id = 6;
        head.entry.payload_sz = payload.len() as u32;
        place.memory()[..size_of::<UringHeader>()].copy_from_slice(head.as_bytes());
        place.memory()[PAYLOAD..][..payload.len()].copy_from_slice(payload);
    }

    #[test]
    fn a_request_is_put_together_and_its_reply_is_found() {
        let mut place = Place::many(3, 1 << 20).unwrap().remove(1);
        arrive(&mut place, 40 + 16 + 3, b"abc");
        let (bytes, out) = place.request().unwrap();
        assert_eq!((&bytes[40..56], &bytes[56..]), (&[7; 16][..], &b"abc"[..]));
        assert!(out.len() >= 65536);
        out[..5].copy_from_slice(b"reply");
        place.answer(Ok(5));
        assert_eq!(&place.memory()[PAYLOAD..][..5], b"reply");
        let (head, _) = UringHeader::read_from_prefix(place.memory()).unwrap();
        assert_eq!((head.entry.commit_id, head.entry.payload_sz), (6, 5));
    }

    #[test]
    fn data_that_is_asked_for_is_not_copied() {
        let mut place = Place::many(1, 1 << 20).unwrap().remove(0);
        arrive(&mut place, 80, b"");
        let (bytes, out) = place.request().unwrap();
        assert!(
            bytes.len() == 80
                && out.len() >= 1 << 20
                && (out.as_ptr() as usize).is_multiple_of(PAGE)
        );
        let at = out.as_ptr();
        assert_eq!(place.memory()[PAYLOAD..].as_ptr(), at);
    }

    #[test]
    fn lengths_that_disagree_are_refused() {
        let mut place = Place::many(1, 1 << 20).unwrap().remove(0);
        for len in [0, 39, 42, 40 + 128 + 4] {
            arrive(&mut place, len, b"abc");
            assert_eq!(place.request().err(), Some(Errno::EINVAL), "{len}");
            place.answer(Err(Errno::EINVAL));
        }
    }
}
