//! One object: its two open files, and the operations on them. Whoever calls holds the object's
//! lock, has set the marks, and has an [`super::intents::Intent`] on record.
//!
//! Checksums are written before data. When a write then fails for lack of space, the room for the
//! checksums is there, and [`Files::settle`] can make them fit whatever data has arrived.

use crate::files;
use crate::objects::sums::{self, BLOCK_LEN, ZEROS, block_count};
use crate::objects::{Check, Seek};
use std::fs::File;
use std::io::ErrorKind as IoKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weft_model::checksum::{BLOCK, crc32c, piece_count, pieces};
use weft_model::{ErrorKind, FsError, ObjectId, Result};

/// Checksums handled at a time: a page of them covers 4 MiB of data.
const SUMS_AT_ONCE: usize = 1024;
/// Blocks read at a time where whole objects are walked.
const WALK_BLOCKS: u64 = 256;

/// The data and the checksums of an object.
#[derive(Debug)]
pub struct Files {
    /// Which object.
    pub id: ObjectId,
    /// The bytes.
    pub data: Arc<File>,
    /// The checksums.
    pub sums: Arc<File>,
    /// Bytes of the object.
    pub size: u64,
}

fn io(op: &'static str, id: ObjectId) -> impl Fn(std::io::Error) -> FsError {
    move |error| FsError::from_io(op, &error).on(format!("object={id}"))
}

impl Files {
    /// Opens the object whose data is at `path`, making it when asked. None when it is missing.
    ///
    /// The second value tells whether it was made. Checksums behind the end, left by a crash, are
    /// cut off: whoever extends the object later relies on holes there.
    pub fn open(id: ObjectId, path: &Path, create: bool) -> Result<Option<(Files, bool)>> {
        let mut options = File::options();
        options.read(true).write(true);
        let (data, made) = match options.open(path) {
            Ok(file) => (file, false),
            Err(error) if error.kind() == IoKind::NotFound && create => {
                (options.create(true).open(path).map_err(io("create object", id))?, true)
            }
            Err(error) if error.kind() == IoKind::NotFound => return Ok(None),
            Err(error) => return Err(io("open object", id)(error)),
        };
        let sums_path = sums_path(path);
        let sums = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(made)
            .open(&sums_path)
            .map_err(|error| files::fail("open checksums", &sums_path, &error))?;
        let size = if made { 0 } else { data.metadata().map_err(io("stat object", id))?.len() };
        let files = Files { id, data: Arc::new(data), sums: Arc::new(sums), size };
        if !made {
            files.cut_sums()?;
        }
        Ok(Some((files, made)))
    }

    /// Writes `data` at `offset`; see [`crate::objects::ObjectStore::write`].
    pub fn write(&mut self, offset: u64, piece_sums: &[u32], data: &[u8]) -> Result<()> {
        let mut stored = [0u8; SUMS_AT_ONCE * 4];
        let mut ranges = pieces(offset, data.len());
        let first_block = offset / BLOCK;
        let chunks = piece_sums.chunks(SUMS_AT_ONCE);
        // The edges of all chunks are checked before anything changes: only the first and the
        // last piece can be partial, and both are looked at here.
        let edges = self.edges(offset, piece_sums, data)?;
        for (number, chunk) in chunks.enumerate() {
            for (slot, &sum) in stored.chunks_exact_mut(4).zip(chunk) {
                let range = ranges.next().unwrap_or_default();
                let merged = if range.len() == BLOCK_LEN {
                    sum
                } else if range.start == 0 {
                    edges.0
                } else {
                    edges.1
                };
                slot.copy_from_slice(&sums::encode(merged).to_le_bytes());
            }
            let at = first_block + (number * SUMS_AT_ONCE) as u64;
            let bytes = &stored[..chunk.len() * 4];
            self.sums.write_all_at(bytes, at * 4).map_err(io("write checksums", self.id))?;
        }
        self.data.write_all_at(data, offset).map_err(io("write object", self.id))?;
        self.size = self.size.max(offset + data.len() as u64);
        Ok(())
    }

    /// Checksums that the blocks of the first and of the last piece will have, where these
    /// pieces do not fill their blocks.
    fn edges(&self, offset: u64, piece_sums: &[u32], data: &[u8]) -> Result<(u32, u32)> {
        let end = offset + data.len() as u64;
        let head = pieces(offset, data.len()).next().unwrap_or_default();
        let tail_start = (end / BLOCK * BLOCK).saturating_sub(offset) as usize;
        let mut edges = (0, 0);
        if head.len() < BLOCK_LEN {
            edges.0 = self.merged(offset, piece_sums[0], &data[head.clone()])?;
        }
        if !end.is_multiple_of(BLOCK) && tail_start >= head.end && tail_start < data.len() {
            let sum = piece_sums[piece_sums.len() - 1];
            edges.1 = self.merged(offset + tail_start as u64, sum, &data[tail_start..])?;
        }
        Ok(edges)
    }

    /// Checksum of the block at `offset` once `piece` is written into it.
    fn merged(&self, offset: u64, sum: u32, piece: &[u8]) -> Result<u32> {
        if crc32c(piece) != sum {
            return Err(sums::damaged("write", self.id, offset).because("data came damaged"));
        }
        let (block, at) = (offset / BLOCK, (offset % BLOCK) as usize);
        let mut bytes = [0; BLOCK_LEN];
        let exists = self.bytes_of(block);
        if exists > 0 && (at > 0 || piece.len() < exists) {
            self.read_block("write", block, &mut bytes)?;
        }
        bytes[at..at + piece.len()].copy_from_slice(piece);
        Ok(crc32c(&bytes))
    }

    /// Reads at `offset`; see [`crate::objects::ObjectStore::read`].
    pub fn read(
        &self,
        offset: u64,
        buffer: &mut [u8],
        out: &mut Vec<u32>,
        check: Check,
    ) -> Result<usize> {
        out.clear();
        let len = self.size.saturating_sub(offset).min(buffer.len() as u64) as usize;
        let buffer = &mut buffer[..len];
        self.data.read_exact_at(buffer, offset).map_err(io("read object", self.id))?;
        let mut stored = [0u32; SUMS_AT_ONCE];
        let mut block = offset / BLOCK;
        let end = block + piece_count(offset, len as u64) as u64;
        let mut next = SUMS_AT_ONCE;
        for range in pieces(offset, len) {
            if next == SUMS_AT_ONCE {
                let count = (end - block).min(SUMS_AT_ONCE as u64) as usize;
                self.load_sums(block, &mut stored[..count])?;
                next = 0;
            }
            let sum = self.piece_sum(block, stored[next], &buffer[range.clone()], offset, check);
            out.push(sum?);
            (block, next) = (block + 1, next + 1);
        }
        Ok(len)
    }

    /// Checksum to return for a piece of `block`. That of a whole block comes from rest; of
    /// another the block is checked here and the piece computed.
    fn piece_sum(
        &self,
        block: u64,
        stored: u32,
        piece: &[u8],
        offset: u64,
        check: Check,
    ) -> Result<u32> {
        let damaged = || sums::damaged("read", self.id, block * BLOCK);
        if piece.len() == BLOCK_LEN {
            return match sums::decode(stored) {
                Some(sum) if check == Check::Trust => Ok(sum),
                _ => {
                    let sum = crc32c(piece);
                    if sums::holds(stored, sum) { Ok(sum) } else { Err(damaged()) }
                }
            };
        }
        let at = offset.saturating_sub(block * BLOCK) as usize;
        if at == 0 && piece.len() == self.bytes_of(block) {
            let whole = sums::padded(piece);
            return if sums::holds(stored, whole) { Ok(crc32c(piece)) } else { Err(damaged()) };
        }
        let mut bytes = [0; BLOCK_LEN];
        self.read_block("read", block, &mut bytes)?;
        Ok(crc32c(&bytes[at..at + piece.len()]))
    }

    /// Cuts or extends the object.
    pub fn truncate(&mut self, size: u64) -> Result<()> {
        let edge = (size < self.size && !size.is_multiple_of(BLOCK)).then_some(size / BLOCK);
        let mut kept = None;
        if let Some(block) = edge {
            let mut bytes = [0; BLOCK_LEN];
            self.read_block("truncate", block, &mut bytes)?;
            kept = Some(sums::padded(&bytes[..(size % BLOCK) as usize]));
        }
        self.data.set_len(size).map_err(io("truncate object", self.id))?;
        let cut = size < self.size;
        self.size = size;
        if let (Some(block), Some(sum)) = (edge, kept) {
            self.store_sum(block, sums::encode(sum))?;
        }
        if cut { self.cut_sums() } else { Ok(()) }
    }

    /// Makes `[offset, end)` a hole; `end` is not behind the end of the object, except that the
    /// rest of the last block may be included.
    pub fn punch(&mut self, offset: u64, end: u64) -> Result<()> {
        let first_whole = block_count(offset);
        let behind = if end >= self.size { block_count(self.size) } else { end / BLOCK };
        let head = (!offset.is_multiple_of(BLOCK)).then_some(offset / BLOCK);
        let tail = (behind * BLOCK < end).then_some(behind).filter(|&block| Some(block) != head);
        let mut edges = [(0, 0); 2];
        for (edge, block) in edges.iter_mut().zip([head, tail]) {
            if let Some(block) = block {
                let mut bytes = [0; BLOCK_LEN];
                self.read_block("punch", block, &mut bytes)?;
                let start = offset.saturating_sub(block * BLOCK) as usize;
                let stop = (end - block * BLOCK).min(BLOCK) as usize;
                bytes[start..stop].fill(0);
                *edge = (block, sums::encode(crc32c(&bytes)));
            }
        }
        native::punch(&self.data, offset, end - offset).map_err(io("punch object", self.id))?;
        if behind > first_whole {
            native::punch(&self.sums, first_whole * 4, (behind - first_whole) * 4)
                .map_err(io("punch checksums", self.id))?;
        }
        for (block, sum) in edges.into_iter().filter(|edge| edge.1 != 0) {
            self.store_sum(block, sum)?;
        }
        Ok(())
    }

    /// Gives `[offset, offset + len)` space, extending the object unless `keep_size`.
    pub fn allocate(&mut self, offset: u64, len: u64, keep_size: bool) -> Result<()> {
        native::allocate(&self.data, offset, len, keep_size)
            .map_err(io("allocate object", self.id))?;
        if !keep_size {
            self.size = self.size.max(offset + len);
        }
        Ok(())
    }

    /// The next data or hole from `offset` on.
    pub fn seek(&self, offset: u64, what: Seek) -> Result<u64> {
        if offset >= self.size {
            return Err(FsError::new(ErrorKind::NoSuchOffset, "seek"));
        }
        native::seek(&self.data, offset, what).map_err(io("seek object", self.id))
    }

    /// Makes the checksums of the blocks of `[offset, end)` fit the data, whatever it is, and
    /// returns how many did not. Checksums that fit are left alone.
    pub fn settle(&mut self, offset: u64, end: u64) -> Result<u64> {
        self.size = self.data.metadata().map_err(io("stat object", self.id))?.len();
        self.cut_sums()?;
        let mut changed = 0;
        self.walk(
            offset / BLOCK,
            block_count(end.min(self.size)),
            &mut |files, block, stored, sum| {
                if sums::holds(stored, sum) {
                    return Ok(());
                }
                changed += 1;
                files.store_sum(block, sums::encode(sum))
            },
        )?;
        Ok(changed)
    }

    /// Undoes what a failed write has added behind `size`, and settles the rest.
    pub fn back_out(&mut self, size: u64, offset: u64, end: u64) -> Result<()> {
        let grown = self.data.metadata().map_err(io("stat object", self.id))?.len() > size;
        if grown {
            self.data.set_len(size).map_err(io("truncate object", self.id))?;
        }
        self.settle(offset, end).map(drop)
    }

    /// Checks up to 1 MiB of blocks from `block` on, adds the offsets of the bad ones to
    /// `damaged`, and returns the first block not looked at, and the bytes read.
    pub fn check(&self, block: u64, damaged: &mut Vec<u64>) -> Result<(u64, u64)> {
        let end = block_count(self.size).min(block + WALK_BLOCKS);
        self.walk(block, end, &mut |_, block, stored, sum| {
            if !sums::holds(stored, sum) {
                damaged.push(block * BLOCK);
            }
            Ok(())
        })?;
        Ok((end, (end * BLOCK).min(self.size).saturating_sub(block * BLOCK)))
    }

    /// Visits blocks with their stored and their actual checksum.
    fn walk(
        &self,
        from: u64,
        end: u64,
        visit: &mut dyn FnMut(&Files, u64, u32, u32) -> Result<()>,
    ) -> Result<()> {
        let mut buffer = vec![0; WALK_BLOCKS as usize * BLOCK_LEN];
        let mut stored = [0u32; SUMS_AT_ONCE];
        let mut block = from;
        while block < end {
            let offset = block * BLOCK;
            let blocks = (end - block).min(WALK_BLOCKS) as usize;
            let len = (self.size - offset).min((blocks * BLOCK_LEN) as u64) as usize;
            self.data
                .read_exact_at(&mut buffer[..len], offset)
                .map_err(io("read object", self.id))?;
            self.load_sums(block, &mut stored[..blocks])?;
            for (bytes, &stored) in buffer[..len].chunks(BLOCK_LEN).zip(&stored) {
                visit(self, block, stored, sums::padded(bytes))?;
                block += 1;
            }
        }
        Ok(())
    }

    /// Bytes of `block` before the end of the object.
    fn bytes_of(&self, block: u64) -> usize {
        self.size.saturating_sub(block * BLOCK).min(BLOCK) as usize
    }

    /// Reads what exists of a block into zeroed `bytes` and checks it.
    fn read_block(&self, op: &'static str, block: u64, bytes: &mut [u8; BLOCK_LEN]) -> Result<()> {
        let exists = self.bytes_of(block);
        self.data
            .read_exact_at(&mut bytes[..exists], block * BLOCK)
            .map_err(io("read object", self.id))?;
        let mut stored = [0];
        self.load_sums(block, &mut stored)?;
        if sums::holds(stored[0], crc32c(bytes)) {
            Ok(())
        } else {
            Err(sums::damaged(op, self.id, block * BLOCK))
        }
    }

    /// Reads stored checksums; those behind the end of their file are 0.
    fn load_sums(&self, block: u64, out: &mut [u32]) -> Result<()> {
        let mut bytes = [0u8; SUMS_AT_ONCE * 4];
        let bytes = &mut bytes[..out.len() * 4];
        let mut done = 0;
        while done < bytes.len() {
            match self.sums.read_at(&mut bytes[done..], block * 4 + done as u64) {
                Ok(0) => break,
                Ok(read) => done += read,
                Err(error) if error.kind() == IoKind::Interrupted => {}
                Err(error) => return Err(io("read checksums", self.id)(error)),
            }
        }
        for (value, raw) in out.iter_mut().zip(bytes.chunks_exact(4)) {
            *value = u32::from_le_bytes([raw[0], raw[1], raw[2], raw[3]]);
        }
        Ok(())
    }

    fn store_sum(&self, block: u64, stored: u32) -> Result<()> {
        let bytes = stored.to_le_bytes();
        self.sums.write_all_at(&bytes, block * 4).map_err(io("write checksums", self.id))
    }

    /// Cuts off checksums of blocks behind the end.
    fn cut_sums(&self) -> Result<()> {
        let wanted = block_count(self.size) * 4;
        let len = self.sums.metadata().map_err(io("stat checksums", self.id))?.len();
        if len > wanted {
            self.sums.set_len(wanted).map_err(io("truncate checksums", self.id))?;
        }
        Ok(())
    }
}

/// Where the checksums of the data at `path` are.
pub fn sums_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".crc");
    PathBuf::from(name)
}

mod native {
    #![allow(unsafe_code)] // `fallocate` and `lseek` for holes are not in std.

    use super::{File, Seek, ZEROS};
    use std::io::{Error, Result};
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::FileExt;

    fn fallocate(file: &File, mode: i32, offset: u64, len: u64) -> Result<()> {
        loop {
            let (fd, offset, len) = (file.as_raw_fd(), offset as i64, len as i64);
            // SAFETY: plain system call on a descriptor that is open for the time of the borrow.
            if unsafe { libc::fallocate(fd, mode, offset, len) } == 0 {
                return Ok(());
            }
            let error = Error::last_os_error();
            if error.kind() != std::io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }

    pub fn allocate(file: &File, offset: u64, len: u64, keep_size: bool) -> Result<()> {
        fallocate(file, if keep_size { libc::FALLOC_FL_KEEP_SIZE } else { 0 }, offset, len)
    }

    /// Where there are no holes, zeros are written instead, never behind the end.
    pub fn punch(file: &File, offset: u64, len: u64) -> Result<()> {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        match fallocate(file, mode, offset, len) {
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
                let end = file.metadata()?.len().min(offset + len);
                let mut at = offset;
                while at < end {
                    let step = (end - at).min(ZEROS.len() as u64);
                    file.write_all_at(&ZEROS[..step as usize], at)?;
                    at += step;
                }
                Ok(())
            }
            result => result,
        }
    }

    pub fn seek(file: &File, offset: u64, what: Seek) -> Result<u64> {
        let whence = match what {
            Seek::Data => libc::SEEK_DATA,
            Seek::Hole => libc::SEEK_HOLE,
        };
        // SAFETY: plain system call; nobody uses the file position that it moves.
        let result = unsafe { libc::lseek(file.as_raw_fd(), offset as i64, whence) };
        if result >= 0 { Ok(result as u64) } else { Err(Error::last_os_error()) }
    }
}
