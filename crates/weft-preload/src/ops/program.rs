//! Programs inside, which the kernel cannot read: they are copied to a memory file and run from there.

use crate::fds;
use crate::live::Live;
use crate::path::{Errno, Spot};
use crate::process::Process;
use crate::{caller, real};
use std::os::fd::RawFd;
use weft_client::{OpenFile, OpenFlags};
use weft_model::FileType;

/// Bytes copied at a time.
const PART: usize = 1 << 20;

/// A memory file with the program that a path names. It outlives exec, so that scripts can be read there.
///
/// # Errors
/// As execve(2).
pub fn load(process: &Process, spot: &Spot) -> Result<RawFd, Errno> {
    let attr = super::attr::of_spot(spot)?;
    if attr.kind != FileType::Regular {
        return Err(Errno(libc::EACCES));
    }
    let (ctx, live) = (caller::ctx(), process.live(spot.dir.mount)?);
    const EXECUTE: u32 = 1;
    live.client.access(&ctx, attr.fid, EXECUTE)?;
    // Whoever may execute a file may not always read it, and here has to.
    let file = live.client.open(&ctx, attr.fid, OpenFlags::READ)?;
    let copied = copy(&live, &file);
    live.client.close(&ctx, &file, None)?;
    copied
}

fn copy(live: &Live, file: &OpenFile) -> Result<RawFd, Errno> {
    let memory = fds::memory("weft-program").ok_or(Errno(libc::ENOMEM))?;
    let mut buffer = vec![0; PART];
    let mut at = 0;
    loop {
        let got = live.client.read(&caller::ctx(), file, at, &mut buffer);
        let written = match got {
            Ok(0) => break,
            // SAFETY: the buffer is as long as said.
            Ok(got) => unsafe { real::write(memory, buffer.as_ptr().cast(), got) },
            Err(error) => {
                fds::close(memory);
                return Err(error.into());
            }
        };
        if written <= 0 {
            fds::close(memory);
            return Err(Errno(libc::ENOMEM));
        }
        at += written as u64;
    }
    // SAFETY: the library's own.
    unsafe { real::fcntl64(memory, libc::F_SETFD, 0) };
    Ok(memory)
}
