//! A ring: commands about places go to the kernel, requests come back.
#![allow(unsafe_code)] // commands that refer to memory, setrlimit(2)

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

use io_uring::{IoUring, opcode, squeue::Entry128, types};
use zerocopy::IntoBytes;

use super::place::Place;
use crate::kernel::abi::{UringCommand, uring};
use crate::kernel::device::Device;

/// Where `len` is in a submission queue entry.
const SQE_LEN: usize = 24;

/// A ring of one thread, the one that enables it.
pub(super) struct Ring {
    ring: IoUring<Entry128>,
    queue: u16,
    device: Arc<Device>,
}

impl Ring {
    /// A ring for `places` places of a queue.
    ///
    /// # Errors
    /// Those of `io_uring_setup(2)`: `ENOSYS` and `EPERM` where it is forbidden, `EMFILE`, `ENOMEM`.
    pub(super) fn new(device: Arc<Device>, queue: u16, places: usize) -> io::Result<Ring> {
        let mut builder = IoUring::<Entry128>::builder();
        builder.setup_r_disabled().setup_single_issuer().setup_defer_taskrun();
        let ring = builder.build(places as u32)?;
        Ok(Ring { ring, queue, device })
    }

    /// Makes it the calling thread's.
    ///
    /// # Errors
    /// None are expected.
    pub(super) fn enable(&self) -> io::Result<()> {
        self.ring.submitter().register_enable_rings()
    }

    /// Tells the kernel of places, each by a command with its index for a number.
    ///
    /// # Errors
    /// That nothing can be submitted. The kernel's refusal comes from [`Ring::receive`].
    pub(super) fn register(&mut self, places: &mut [Place]) -> io::Result<()> {
        let parts: Vec<[libc::iovec; 2]> = places.iter_mut().map(Place::parts).collect();
        for (index, (place, parts)) in places.iter_mut().zip(&parts).enumerate() {
            place.is_known = true;
            self.push(uring::REGISTER, 0, parts, index as u64)?;
        }
        // The kernel has read `parts` when this returns.
        self.submit()
    }

    /// Prepares to hand over the answer in a place, and to have the next request put there.
    ///
    /// # Errors
    /// None are expected: there is room for all places.
    pub(super) fn answer(&mut self, place: &Place, number: usize) -> io::Result<()> {
        self.push(uring::COMMIT_AND_FETCH, place.commit_id(), &[], number as u64)
    }

    fn push(
        &mut self,
        command: u32,
        commit_id: u64,
        parts: &[libc::iovec],
        number: u64,
    ) -> io::Result<()> {
        let arguments = UringCommand { commit_id, qid: self.queue, ..UringCommand::default() };
        let mut bytes = [0; 80];
        bytes[..size_of::<UringCommand>()].copy_from_slice(arguments.as_bytes());
        let fd = types::Fd(self.device.as_fd().as_raw_fd());
        let command = opcode::UringCmd80::new(fd, command).cmd(bytes);
        let mut entry = command.addr(Some(parts.as_ptr() as u64)).build().user_data(number);
        // SAFETY: an entry is the kernel's structure of 128 bytes, in which the 32 bits at this
        // place are `len`, for which the crate has no setter with this operation.
        unsafe {
            let len = (&raw mut entry).cast::<u8>().add(SQE_LEN).cast::<u32>();
            len.write(parts.len() as u32);
        }
        // SAFETY: the memory that the command refers to is kept for as long as the kernel knows of
        // it (see `Place`); the descriptor is kept open by `device`.
        unsafe { self.ring.submission().push(&entry) }.map_err(io::Error::other)
    }

    /// Hands over what is prepared without waiting.
    ///
    /// # Errors
    /// Those of `io_uring_enter(2)`.
    pub(super) fn submit(&mut self) -> io::Result<()> {
        loop {
            match self.ring.submit() {
                Err(error) if is_passing(&error) => {}
                submitted => return submitted.map(drop),
            }
        }
    }

    /// Hands over what is prepared and waits for a request; answers the number of its place and the
    /// kernel's result: an error means that it has nothing to do with that place any more,
    /// `ENOTCONN` or `ECONNABORTED` at the end of the mount.
    ///
    /// # Errors
    /// Those of `io_uring_enter(2)`.
    pub(super) fn receive(&mut self) -> io::Result<(usize, io::Result<()>)> {
        loop {
            if let Some(completion) = self.ring.completion().next() {
                let (number, result) = (completion.user_data() as usize, completion.result());
                let failed = (result < 0).then(|| io::Error::from_raw_os_error(-result));
                return Ok((number, failed.map_or(Ok(()), Err)));
            }
            match self.ring.submit_and_wait(1) {
                Err(error) if !is_passing(&error) => return Err(error),
                _ => {}
            }
        }
    }
}

/// Raises this process's soft limit of open files by `more`, if the hard one allows it.
pub(super) fn allow_more_files(more: usize) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both have a pointer to a local of the right type.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 {
            limit.rlim_cur = limit.rlim_cur.saturating_add(more as u64).min(limit.rlim_max);
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}

/// A signal, or a moment's lack of memory.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY))
}
