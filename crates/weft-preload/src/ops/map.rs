//! Files in memory: a private copy.
//!
//! There is no page cache to map, so a mapping is a copy of the file as of the call. A private mapping may be
//! that by POSIX; of a shared one that can be written others would see nothing, so it is refused.

use super::data::{self, At};
use crate::description::Description;
use crate::path::Errno;
use crate::process::Process;
use crate::real;
use libc::c_void;

/// What mmap(2) is asked for.
pub struct Wish {
    /// Where.
    pub at: *mut c_void,
    /// Bytes.
    pub len: usize,
    /// Access.
    pub access: i32,
    /// How.
    pub flags: i32,
    /// From which offset of the file on.
    pub offset: i64,
}

/// Maps a copy.
///
/// # Errors
/// As mmap(2), and `ENODEV` for a shared mapping that can be written.
pub fn map(
    process: &Process,
    description: &Description,
    wish: &Wish,
) -> Result<*mut c_void, Errno> {
    let shared = wish.flags & libc::MAP_TYPE != libc::MAP_PRIVATE;
    if shared && wish.access & libc::PROT_WRITE != 0 {
        return Err(Errno(libc::ENODEV));
    }
    if description.flags() & libc::O_ACCMODE == libc::O_WRONLY {
        return Err(Errno(libc::EACCES));
    }
    if wish.len == 0 || wish.offset < 0 || wish.offset % 4096 != 0 {
        return Err(Errno(libc::EINVAL));
    }
    let flags = wish.flags & !libc::MAP_TYPE | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let open = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: as safe as the caller's wish, with memory instead of a file.
    let at = unsafe { real::mmap64(wish.at, wish.len, open, flags, -1, 0) };
    if at == libc::MAP_FAILED {
        return Err(Errno(crate::guard::errno()));
    }
    // SAFETY: just mapped, and nobody else knows of it, unless the caller has said where.
    let memory = unsafe { std::slice::from_raw_parts_mut(at.cast::<u8>(), wish.len) };
    let filled = fill(process, description, wish.offset, memory);
    // SAFETY: the mapping is ours until it is handed out.
    unsafe {
        if let Err(error) = filled {
            libc::munmap(at, wish.len);
            return Err(error);
        }
        if libc::mprotect(at, wish.len, wish.access) != 0 {
            return Err(Errno(crate::guard::errno()));
        }
    }
    Ok(at)
}

fn fill(
    process: &Process,
    description: &Description,
    offset: i64,
    memory: &mut [u8],
) -> Result<(), Errno> {
    let mut done = 0;
    while done < memory.len() {
        let place = At::Place(offset + done as i64);
        match data::read(process, description, place, &mut memory[done..])? {
            0 => break,
            got => done += got,
        }
    }
    // A read may leave anything beyond what it returns.
    memory[done..].fill(0);
    Ok(())
}
