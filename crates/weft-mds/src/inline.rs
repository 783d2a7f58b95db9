//! Bytes of small files, which the target keeps itself: an object would cost more than they do.
//!
//! A file without objects that is delegated to one session may become *inline*: its bytes come with that
//! session's reports, and nobody writes to its objects before [`crate::ops::move_out`] has put them there,
//! for good. So either the record `B` or the objects count, never both, and whoever believes that a file is
//! inline is told when it is not. Design: `docs/design/0008-inline-data.md`.

use crate::record::{self, Inline, Inode};
use crate::txn::Txn;
use crate::view::View;
use crate::{Mds, keys};
use prost::Message as _;
use weft_model::layout::INLINE_MAX;
use weft_model::{ClientId, ErrorKind, Fid, FileType, FsError, Result, checksum};
use weft_rpc::pb::mds::{Extent, Place, Written};

/// While less than this part of the disk is left, bytes of files are not taken: names need the room.
const SPARED: u64 = 8;

/// Where the bytes of a file are. `marked`: sessions may have written it and not said so.
pub fn place(inode: &Inode, marked: bool) -> Place {
    match inode.kind() {
        FileType::Regular if inode.inline => Place::Inline,
        FileType::Regular if inode.touched => Place::Objects,
        // If one of them is who asks, its next report may make it so.
        FileType::Regular if marked => Place::Inline,
        FileType::Regular => Place::Empty,
        _ => Place::Objects,
    }
}

/// Takes bytes that a session reports. The sums are checked before anything is changed.
///
/// # Errors
/// `NotInline` when the file may have objects, is not delegated to the session, would become too large,
/// or the disk is rather full; `Checksum` when the bytes, or those they belong to, are damaged.
pub fn take(
    txn: &mut Txn<'_>,
    mds: &Mds,
    client: ClientId,
    (fid, inode): (Fid, &mut Inode),
    written: &Written,
) -> Result<()> {
    let extents = &written.data;
    let refused = || FsError::new(ErrorKind::NotInline, "keep data").on(format_args!("fid={fid}"));
    let fresh = written.fresh && !inode.touched && inode.kind() == FileType::Regular;
    if !(inode.inline || fresh) || !mds.committer.grants.is_delegated_to(fid, client) {
        return Err(refused());
    }
    let ends = extents.iter().map(|extent| extent.offset.checked_add(extent.data.len() as u64));
    let fits = ends.clone().all(|end| end.is_some_and(|end| end <= INLINE_MAX));
    if !fits || mds.room.admit((mds.space)().total / SPARED).is_err() {
        return Err(refused());
    }
    let mut held = load(txn, fid, inode)?;
    let len = ends.flatten().max().unwrap_or(0) as usize;
    held.data.resize(held.data.len().max(len), 0);
    for Extent { offset, data, sums } in extents {
        verify(fid, *offset, data, sums)?;
        held.data[*offset as usize..][..data.len()].copy_from_slice(data);
    }
    inode.inline = true;
    inode.size = inode.size.max(len as u64);
    put(txn, fid, inode, held);
    Ok(())
}

/// The bytes of a file, checked; none if it is not inline.
///
/// # Errors
/// `Checksum`; those of the store.
pub fn load(view: &mut impl View, fid: Fid, inode: &Inode) -> Result<Inline> {
    let key = keys::inline(fid);
    let value = if inode.inline { view.raw(&key)? } else { None };
    let held: Inline = value.map_or(Ok(Inline::default()), |value| record::decode(&key, &value))?;
    verify(fid, 0, &held.data, &held.sums)?;
    Ok(held)
}

/// Cuts the bytes of a file to `size`.
///
/// # Errors
/// Those of [`load`].
pub fn cut(txn: &mut Txn<'_>, fid: Fid, inode: &mut Inode, size: u64) -> Result<()> {
    let mut held = load(txn, fid, inode)?;
    if (held.data.len() as u64) > size {
        held.data.truncate(size as usize);
        put(txn, fid, inode, held);
    }
    Ok(())
}

/// The bytes are in the objects.
pub fn leave(txn: &mut Txn<'_>, fid: Fid, inode: &mut Inode) {
    (inode.inline, inode.touched) = (false, true);
    txn.put_raw(keys::inline(fid), None);
}

fn put(txn: &mut Txn<'_>, fid: Fid, inode: &mut Inode, mut held: Inline) {
    held.sums = checksum::compute(0, &held.data);
    inode.blocks = (held.data.len() as u64).div_ceil(512);
    txn.put_raw(keys::inline(fid), Some(held.encode_to_vec()));
}

fn verify(fid: Fid, offset: u64, data: &[u8], sums: &[u32]) -> Result<()> {
    checksum::verify(offset, data, sums).map_err(|at| {
        FsError::new(ErrorKind::Checksum, "check inline data")
            .on(format_args!("fid={fid} offset={at}"))
    })
}
