//! `SetLayout` and `GetLayout`: where new data goes.

use crate::txn::Txn;
use crate::{Mds, view};
use weft_model::layout::LayoutSpec;
use weft_model::{ErrorKind, Fid, FileType, FsError, Result, cred, placement};
use weft_rpc::pb::{Empty, mds};

/// Plans setting what new entries of a directory get, or the layout of a file without data.
///
/// # Errors
/// `Perm`, `Invalid` with the rule that is broken, `Busy` for a file that has data already.
pub fn set(txn: &mut Txn<'_>, mds: &Mds, request: &mds::SetLayout) -> Result<Empty> {
    let cred = view::credentials(&request.cred)?;
    let fid = Fid(request.fid);
    let mut inode = txn.inode(fid)?.as_ref().clone();
    cred::check_owner(&cred, &inode.attr(fid))?;
    let spec: LayoutSpec = request.spec.clone().unwrap_or_default().try_into()?;
    placement::check_spec(&spec, &mds.objects.router().map())?;
    match inode.kind() {
        FileType::Directory => {
            inode.spec = (!spec.components.is_empty()).then(|| (&spec).into());
        }
        FileType::Regular if inode.touched || inode.size > 0 || !inode.writers.is_empty() => {
            return Err(FsError::new(ErrorKind::Busy, "set layout")
                .because("the file has data or is open for writing; set it on an empty file"));
        }
        FileType::Regular => {
            let parent = crate::record::Inode::default();
            let mut layout = mds.place(txn, &request.spec, &parent)?;
            layout.version = inode.layout.as_ref().map_or(1, |old| old.version + 1);
            inode.layout = Some(layout);
        }
        _ => return Err(ErrorKind::Invalid.into()),
    }
    inode.touch_ctime(txn.now);
    txn.put_inode(fid, inode);
    Ok(Empty {})
}

/// Answers with both.
///
/// # Errors
/// `Stale`.
pub fn get(mds: &Mds, request: &mds::GetLayout) -> Result<mds::GetLayoutReply> {
    let fid = Fid(request.fid);
    let inode = view::inode(&mut &mds.committer.committed, fid)?;
    Ok(mds::GetLayoutReply {
        layout: inode.layout.clone(),
        spec: inode.spec.clone(),
        attr: Some((&inode.attr(fid)).into()),
        inline: inode.inline,
    })
}
