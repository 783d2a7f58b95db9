//! The descriptor of `/dev/fuse`: one open file per connection with the kernel.
#![allow(unsafe_code)] // ioctl(2) takes a raw pointer

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use zerocopy::IntoBytes;

use super::abi::{BackingMap, OutHeader};
use super::errno::Errno;

const DEV_FUSE: &str = "/dev/fuse";
const IOC_MAGIC: u32 = 229;
const IOC_CLONE: libc::Ioctl = libc::_IOR::<u32>(IOC_MAGIC, 0);
const IOC_BACKING_OPEN: libc::Ioctl = libc::_IOW::<BackingMap>(IOC_MAGIC, 1);
const IOC_BACKING_CLOSE: libc::Ioctl = libc::_IOW::<u32>(IOC_MAGIC, 2);

/// An open `/dev/fuse`, bound to a mount or about to be. Closing the last descriptor of a
/// connection aborts it: all its callers get errors.
#[derive(Debug)]
pub struct Device {
    file: File,
}

impl Device {
    /// Opens a fresh device, to be mounted.
    ///
    /// # Errors
    /// Those of `open(2)`, foremost `ENOENT` (no FUSE in this kernel) and `EACCES`.
    pub fn open() -> io::Result<Device> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).custom_flags(libc::O_CLOEXEC).open(DEV_FUSE)?;
        Ok(Device { file })
    }

    /// Takes over a descriptor opened elsewhere: by `fusermount3`, or by a process that keeps the
    /// connection alive across restarts of the daemon.
    pub fn from_fd(fd: OwnedFd) -> Device {
        Device { file: fd.into() }
    }

    /// A second device on the same connection: requests read from it must be answered on it.
    ///
    /// # Errors
    /// Those of `open(2)` and of the ioctl `FUSE_DEV_IOC_CLONE`.
    pub fn clone_channel(&self) -> io::Result<Device> {
        let clone = Device::open()?;
        let mut source = self.file.as_raw_fd() as u32;
        clone.ioctl(IOC_CLONE, &mut source)?;
        Ok(clone)
    }

    /// Registers an open file for passthrough and answers its backing id, to be given to
    /// [`Opened::passthrough`](super::Opened::passthrough). The kernel keeps its own reference.
    ///
    /// # Errors
    /// `EPERM` without `CAP_SYS_ADMIN`, `EOPNOTSUPP` unless the feature `PASSTHROUGH` was
    /// negotiated, `ELOOP` if the file's own file system is stacked too deeply.
    pub fn backing_open(&self, file: BorrowedFd<'_>) -> io::Result<i32> {
        let mut map = BackingMap { fd: file.as_raw_fd(), ..BackingMap::default() };
        self.ioctl(IOC_BACKING_OPEN, &mut map)
    }

    /// Unregisters a backing file; files opened with it keep it until they are closed.
    ///
    /// # Errors
    /// `ENOENT` for an unknown id, otherwise as [`Device::backing_open`].
    pub fn backing_close(&self, mut backing_id: i32) -> io::Result<()> {
        self.ioctl(IOC_BACKING_CLOSE, &mut backing_id).map(drop)
    }

    /// Reads one request, waiting for it. The buffer must hold the largest one.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        (&self.file).read(buffer)
    }

    /// Answers a request: with `error`, or with `body`.
    pub(crate) fn reply(&self, unique: u64, error: Option<Errno>, body: &[u8]) -> io::Result<()> {
        self.send(unique, error.map_or(0, |errno| -errno.code()), &[body])
    }

    /// Sends a notification of at most three parts: a reply to nothing with its code for an error.
    pub(crate) fn notify(&self, code: i32, parts: &[&[u8]]) -> io::Result<()> {
        self.send(0, code, parts)
    }

    fn send(&self, unique: u64, error: i32, parts: &[&[u8]]) -> io::Result<()> {
        let body: usize = parts.iter().map(|part| part.len()).sum();
        let header = OutHeader { len: (size_of::<OutHeader>() + body) as u32, error, unique };
        let mut slices = [IoSlice::new(header.as_bytes()); 4];
        for (slice, part) in slices[1..].iter_mut().zip(parts) {
            *slice = IoSlice::new(part);
        }
        // The kernel takes a message whole or not at all.
        (&self.file).write_vectored(&slices[..=parts.len()]).map(drop)
    }

    fn ioctl<T>(&self, request: libc::Ioctl, argument: &mut T) -> io::Result<i32> {
        // SAFETY: the descriptor is open, and all three ioctls read exactly the structure their
        // number encodes, which `argument` is a valid pointer to.
        let result = unsafe { libc::ioctl(self.file.as_raw_fd(), request, argument as *mut T) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
