//! Listing directories.

use crate::caller;
use crate::description::Description;
use crate::live::Handle;
use crate::path::Errno;
use crate::process::Process;
use std::collections::VecDeque;
use weft_client::DirEntry;

/// Entries fetched at a time.
const BATCH: usize = 512;

/// The entries after a position, some of them; none at the end.
///
/// # Errors
/// `ENOTDIR`, and those of the servers.
pub fn entries(
    process: &Process,
    description: &Description,
    position: u64,
) -> Result<VecDeque<DirEntry>, Errno> {
    let (live, handle) = description.bound(process)?;
    let Handle::Dir(dir) = &*handle else { return Err(Errno(libc::ENOTDIR)) };
    let mut entries = VecDeque::new();
    live.client.readdir_some(&caller::ctx(), dir, position, false, &mut |entry| {
        entries.push_back(entry.clone());
        entries.len() < BATCH
    })?;
    Ok(entries)
}

/// As getdents64(2) and readdir(3) have it. Nothing if the name is too long for one.
pub fn dirent(entry: &DirEntry) -> Option<libc::dirent64> {
    // SAFETY: a structure of numbers, for which zeros are a value.
    let mut out: libc::dirent64 = unsafe { std::mem::zeroed() };
    if entry.name.len() >= out.d_name.len() {
        return None;
    }
    out.d_ino = entry.fid.0;
    out.d_off = entry.position as i64;
    out.d_type = entry.kind as u8;
    out.d_reclen = record_len(entry.name.len()) as u16;
    for (to, &from) in out.d_name.iter_mut().zip(&entry.name) {
        *to = from as libc::c_char;
    }
    Some(out)
}

/// Bytes of a record with a name of this length: a multiple of eight.
fn record_len(name: usize) -> usize {
    (std::mem::offset_of!(libc::dirent64, d_name) + name + 1).next_multiple_of(8)
}

/// Fills a buffer with entries from the offset on, as getdents64(2). How many bytes.
///
/// # Errors
/// `EINVAL` if not one has room, and those of the servers.
pub fn fill(process: &Process, description: &Description, buf: &mut [u8]) -> Result<usize, Errno> {
    description.with_offset(|position| {
        let mut used = 0;
        for entry in entries(process, description, *position)? {
            let Some(record) = dirent(&entry) else { continue };
            let len = record.d_reclen as usize;
            let Some(room) = buf.get_mut(used..used + len) else {
                return if used > 0 { Ok(used) } else { Err(Errno(libc::EINVAL)) };
            };
            // SAFETY: the record is plain data and not shorter than what is copied.
            let bytes = unsafe { std::slice::from_raw_parts((&raw const record).cast(), len) };
            room.copy_from_slice(bytes);
            used += len;
            *position = entry.position;
        }
        Ok(used)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_model::{Fid, FileType};

    #[test]
    fn records_are_as_the_kernel_has_them() {
        let entry = |name: Vec<u8>| DirEntry {
            name,
            fid: Fid(7),
            kind: FileType::Symlink,
            position: 9,
            attr: None,
        };
        let record = dirent(&entry(b"abc".to_vec())).unwrap();
        assert_eq!((record.d_ino, record.d_off, record.d_type), (7, 9, libc::DT_LNK));
        assert_eq!((record.d_reclen, record.d_name[2], record.d_name[3]), (24, b'c' as i8 as _, 0));
        assert!(dirent(&entry(vec![b'x'; 256])).is_none());
        assert_eq!(dirent(&entry(vec![b'x'; 255])).unwrap().d_reclen, 280);
    }
}
