//! One place of a queue of the kernel, in a ring of its own.
//!
//! The kernel writes a request into the memory registered with the place when it completes the
//! command that was last submitted, and reads the reply from there when the next one is submitted.
//! In between the memory is ours, and so it is used as if it were not shared at all.
#![allow(unsafe_code)] // submission of commands that refer to memory

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

use io_uring::{IoUring, opcode, squeue::Entry128, types};
use zerocopy::{FromBytes, IntoBytes};

use crate::kernel::abi::{InHeader, OutHeader, UringCommand, UringEntry, UringHeader, uring};
use crate::kernel::device::Device;
use crate::kernel::errno::{Errno, Result};

const PAGE: usize = 4096;
/// Where the payload is; the request's head is put together before it.
const PAYLOAD: usize = PAGE;
/// Most bytes of an operation's own head.
const OP_HEAD: usize = size_of::<[[u64; 8]; 2]>();
/// The kernel wants room for at least this many bytes of payload.
const LEAST_PAYLOAD: usize = 8192;
/// Room for replies to requests that have a payload: extended attributes are the longest.
const SLACK: usize = 17 * PAGE;
/// Where `len` is in a submission queue entry.
const SQE_LEN: usize = 24;

/// A place in a queue: takes one request at a time.
///
/// ```text
/// 0         288                        4096                        page boundary
/// | header  | unused | request's head | payload: request or reply | reply in the making |
/// ```
pub(super) struct Entry {
    ring: IoUring<Entry128>,
    /// Aligned to pages from `start` on. Large zeroed allocations are not touched before use.
    memory: Vec<u8>,
    start: usize,
    /// What the kernel is told about `memory`.
    parts: Box<[libc::iovec; 2]>,
    queue: u16,
    device: Arc<Device>,
    /// Number of the request that is here.
    commit_id: u64,
    /// Where in `memory` its reply is made.
    reply: usize,
    /// The kernel may write to `memory` at any time.
    registered: bool,
}

// SAFETY: the pointers in `parts` are into `memory`, which moves along without being moved itself.
unsafe impl Send for Entry {}

impl Entry {
    /// A place for queue `queue`, unknown to the kernel so far.
    ///
    /// # Errors
    /// Those of `io_uring_setup(2)`: `ENOSYS` and `EPERM` where it is forbidden, `EMFILE`, `ENOMEM`.
    pub(super) fn new(device: Arc<Device>, queue: u16, max_write: usize) -> io::Result<Entry> {
        let mut builder = IoUring::<Entry128>::builder();
        // The thread that will enable it is the only one to use it.
        builder.setup_r_disabled().setup_single_issuer().setup_defer_taskrun();
        let ring = builder.build(1)?;
        let payload = max_write.max(LEAST_PAYLOAD).next_multiple_of(PAGE);
        let mut memory = vec![0; PAGE + PAYLOAD + payload + SLACK];
        let start = memory.as_ptr().align_offset(PAGE);
        let base = memory[start..].as_mut_ptr();
        let part = |offset: usize, iov_len| libc::iovec {
            iov_base: base.wrapping_add(offset).cast(),
            iov_len,
        };
        let parts = Box::new([part(0, size_of::<UringHeader>()), part(PAYLOAD, payload)]);
        Ok(Entry {
            ring,
            memory,
            start,
            parts,
            queue,
            device,
            commit_id: 0,
            reply: 0,
            registered: false,
        })
    }

    /// Number of the queue it is a place in.
    pub(super) fn queue(&self) -> usize {
        self.queue.into()
    }

    /// Tells the kernel of it. The calling thread alone may use it from now on.
    ///
    /// # Errors
    /// The kernel's refusal shows at [`Entry::receive`]; here only that nothing can be submitted.
    pub(super) fn register(&mut self) -> io::Result<()> {
        self.ring.submitter().register_enable_rings()?;
        self.push(uring::REGISTER, 0)?;
        self.registered = true;
        self.submit()
    }

    /// Prepares a command; `addr` and `len` are those of `parts`.
    fn push(&mut self, command: u32, commit_id: u64) -> io::Result<()> {
        let command_args = UringCommand { commit_id, qid: self.queue, ..UringCommand::default() };
        let mut arguments = [0; 80];
        arguments[..size_of::<UringCommand>()].copy_from_slice(command_args.as_bytes());
        let fd = types::Fd(self.device.as_fd().as_raw_fd());
        let command = opcode::UringCmd80::new(fd, command).cmd(arguments);
        let mut entry = command.addr(Some(self.parts.as_ptr() as u64)).build();
        // SAFETY: an entry is the kernel's structure of 128 bytes, in which the 32 bits at this
        // place are `len`, for which the crate has no setter with this operation.
        unsafe {
            let len = (&raw mut entry).cast::<u8>().add(SQE_LEN).cast::<u32>();
            len.write(self.parts.len() as u32);
        }
        // SAFETY: the memory that the command refers to is kept for as long as the kernel knows of
        // it (see `drop`); the descriptor is kept open by `device`.
        unsafe { self.ring.submission().push(&entry) }.map_err(io::Error::other)
    }

    /// Hands over what is prepared without waiting.
    pub(super) fn submit(&mut self) -> io::Result<()> {
        loop {
            match self.ring.submit() {
                Err(error) if is_passing(&error) => {}
                submitted => return submitted.map(drop),
            }
        }
    }

    /// Whether a request is here already.
    pub(super) fn has_arrived(&mut self) -> bool {
        !self.ring.completion().is_empty()
    }

    /// Hands over what is prepared and waits for a request.
    ///
    /// # Errors
    /// What the kernel says to the command: `ENOTCONN` or `ECONNABORTED` at the end of the mount.
    pub(super) fn receive(&mut self) -> io::Result<()> {
        loop {
            if let Some(completion) = self.ring.completion().next() {
                let result = completion.result();
                self.registered = result >= 0;
                return if result < 0 {
                    Err(io::Error::from_raw_os_error(-result))
                } else {
                    Ok(())
                };
            }
            match self.ring.submit_and_wait(1) {
                Err(error) if !is_passing(&error) => return Err(error),
                _ => {}
            }
        }
    }

    /// The request that was received, as if it had been read from the device, and the room for
    /// its reply.
    ///
    /// # Errors
    /// `EINVAL` if its lengths disagree; it can be answered all the same.
    pub(super) fn request(&mut self) -> Result<(&[u8], &mut [u8])> {
        let memory = &mut self.memory[self.start..];
        let (head, _) = UringHeader::read_from_prefix(memory).map_err(|_| Errno::EINVAL)?;
        self.commit_id = head.entry.commit_id;
        self.reply = PAYLOAD;
        let request = InHeader::read_from_prefix(head.in_out.as_bytes());
        let (header, _) = request.map_err(|_| Errno::EINVAL)?;
        let payload = head.entry.payload_sz as usize;
        let all = header.len as usize;
        let op_head = all.checked_sub(size_of::<InHeader>() + payload).ok_or(Errno::EINVAL)?;
        let op_head = head.op_in.as_bytes().get(..op_head).ok_or(Errno::EINVAL)?;
        let end = PAYLOAD + payload;
        if payload > 0 {
            // The reply must not be made over the request that it answers.
            self.reply = end.next_multiple_of(PAGE).min(memory.len());
        }
        let (front, out) = memory.split_at_mut_checked(self.reply).ok_or(Errno::EINVAL)?;
        let start = end - all;
        let (first, second) = front[start..].split_at_mut(size_of::<InHeader>());
        first.copy_from_slice(header.as_bytes());
        second[..op_head.len()].copy_from_slice(op_head);
        Ok((&front[start..end], out))
    }

    /// Prepares the reply, with what was written to its room; to be handed over by the next
    /// [`Entry::submit`] or [`Entry::receive`].
    pub(super) fn answer(&mut self, result: Result<usize>) -> io::Result<()> {
        let memory = &mut self.memory[self.start..];
        let length = result.unwrap_or(0);
        if self.reply != PAYLOAD {
            memory.copy_within(self.reply..self.reply + length, PAYLOAD);
        }
        let header = OutHeader {
            len: (size_of::<OutHeader>() + length) as u32,
            error: result.err().map_or(0, |errno| -errno.code()),
            unique: self.commit_id,
        };
        memory[..size_of::<OutHeader>()].copy_from_slice(header.as_bytes());
        let entry = UringEntry {
            commit_id: self.commit_id,
            payload_sz: length as u32,
            ..UringEntry::default()
        };
        const ENTRY: usize = size_of::<UringHeader>() - size_of::<UringEntry>();
        memory[ENTRY..][..size_of::<UringEntry>()].copy_from_slice(entry.as_bytes());
        self.push(uring::COMMIT_AND_FETCH, self.commit_id)
    }
}

impl Drop for Entry {
    /// The kernel has no command to take a place back. What it still knows of is given up.
    fn drop(&mut self) {
        if self.registered {
            std::mem::forget(std::mem::take(&mut self.memory));
        }
    }
}

/// A signal, or a moment's lack of memory.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY))
}

const _: () = assert!(OP_HEAD + size_of::<InHeader>() + size_of::<UringHeader>() <= PAYLOAD);
