//! Opening and closing: create, open, tmpfile, close, flush.

use super::entry::{Found, Known};
use crate::client::Client;
use crate::ctx::Ctx;
use crate::flags::OpenFlags;
use crate::grants::Asked;
use crate::inode::{OpenFile, OpenInode};
use crate::io::report::is_refusal_of_data;
use crate::metrics::Op;
use weft_model::layout::LayoutSpec;
use weft_model::{ErrorKind, Fid, FsError, Result, SetAttr};
use weft_rpc::pb::mds;
use weft_rpc::router::Patience;

/// How to create.
#[derive(Clone, Copy, Debug, Default)]
pub struct CreateArgs<'a> {
    /// Permission bits; the umask is the caller's.
    pub mode: u32,
    /// How to open.
    pub flags: OpenFlags,
    /// Fail when the name exists.
    pub exclusive: bool,
    /// The layout, where the directory's is not wanted.
    pub layout: Option<&'a LayoutSpec>,
}

/// What was created or found.
#[derive(Clone, Debug)]
pub struct Created {
    /// Its attributes.
    pub attr: Found,
    /// It is open.
    pub file: OpenFile,
    /// False: it existed.
    pub created: bool,
}

impl Client {
    /// Opens a file, creating it if there is none: one request.
    ///
    /// # Errors
    /// `Exists` when exclusive, `IsDir`, `NotDir`, `Access`, `NoSpace`, and those of the MDT.
    pub fn create(
        &self,
        ctx: &Ctx<'_>,
        parent: Fid,
        name: &[u8],
        args: &CreateArgs<'_>,
    ) -> Result<Created> {
        self.timed(Op::Create, || {
            let handle = self.new_handle();
            let change = self.making(parent, name);
            let asked = *change.asked();
            let request = |cred| mds::Create {
                cred,
                parent: parent.0,
                name: name.to_vec(),
                mode: args.mode,
                umask: ctx.umask,
                flags: args.flags.to_wire(),
                exclusive: args.exclusive,
                handle,
                layout: args.layout.map(Into::into),
            };
            let opened = self.ask_and_keep(ctx, parent, request, |reply: mds::CreateReply| {
                let known = Known::required(reply.entry)?;
                let file = self.attach(&known, &asked, handle, args.flags);
                Ok((known, file, reply.created))
            });
            let (known, file, created) = self.note_unanswered(parent, handle, opened)?;
            let attr = if !created && args.flags.has(OpenFlags::TRUNCATE) {
                self.cut_at_open(ctx, &file)?
            } else {
                let own = file.inode.unreported();
                let attr = self.settle(&known, Some(&own), &self.patience(ctx))?;
                self.made(change, &known, attr)
            };
            Ok(Created { attr, file, created })
        })
    }

    /// Makes a file without a name and opens it; [`Client::link`] may give it one. `mode` are
    /// permission bits; the umask is the caller's.
    ///
    /// # Errors
    /// `NotDir`, `Access`, `NoSpace`, and those of the MDT.
    pub fn tmpfile(
        &self,
        ctx: &Ctx<'_>,
        parent: Fid,
        mode: u32,
        flags: OpenFlags,
    ) -> Result<Created> {
        self.timed(Op::Create, || {
            let handle = self.new_handle();
            let asked = self.asking();
            let request = |cred| mds::Tmpfile {
                cred,
                parent: parent.0,
                mode,
                umask: ctx.umask,
                flags: flags.to_wire(),
                handle,
            };
            let opened = self.ask_and_keep(ctx, parent, request, |reply: mds::CreateReply| {
                let known = Known::required(reply.entry)?;
                let file = self.attach(&known, &asked, handle, flags);
                let attr = self.found(&known, known.attr, &asked, None);
                Ok(Created { attr, file, created: true })
            });
            self.note_unanswered(parent, handle, opened)
        })
    }

    /// Opens a regular file.
    ///
    /// # Errors
    /// `Access`, `IsDir`, `Stale`, and those of the MDT.
    pub fn open(&self, ctx: &Ctx<'_>, fid: Fid, flags: OpenFlags) -> Result<OpenFile> {
        Ok(self.open_found(ctx, fid, flags)?.file)
    }

    /// The same with the file's attributes, as the MDT has them.
    ///
    /// # Errors
    /// As [`Client::open`].
    pub fn open_found(&self, ctx: &Ctx<'_>, fid: Fid, flags: OpenFlags) -> Result<Created> {
        self.timed(Op::Open, || {
            self.tell_deferred(fid, &self.patience(ctx))?;
            let handle = self.new_handle();
            let asked = self.asking();
            let request = |cred| mds::Open { cred, fid: fid.0, flags: flags.to_wire(), handle };
            let opened = self.ask_and_keep(ctx, fid, request, |entry: mds::Entry| {
                let known = Known::try_from(entry)?;
                let found = self.found(&known, known.attr, &asked, None);
                Ok((found, self.attach(&known, &asked, handle, flags)))
            });
            let (found, file) = self.note_unanswered(fid, handle, opened)?;
            let attr = match flags.has(OpenFlags::TRUNCATE) {
                true => self.cut_at_open(ctx, &file)?,
                false => found,
            };
            Ok(Created { attr, file, created: false })
        })
    }

    /// `TRUNCATE`: the permission came with the handle, the cut is a request of its own.
    fn cut_at_open(&self, ctx: &Ctx<'_>, file: &OpenFile) -> Result<Found> {
        let cut = SetAttr { size: Some(0), ..SetAttr::default() };
        let outcome = self.change_attr(ctx, file.fid(), &cut, Some(file));
        if outcome.is_err()
            && let Err(error) = self.close(ctx, file, None)
        {
            tracing::debug!(fid = %file.fid(), %error, "cannot close what could not be cut");
        }
        outcome
    }

    pub(crate) fn attach(
        &self,
        known: &Known,
        asked: &Asked,
        handle: u64,
        flags: OpenFlags,
    ) -> OpenFile {
        let inode = self.inodes.attach(known, handle, flags, || self.env().now());
        // What waits in this client is newer than what the MDT tells.
        if let Some(bytes) = known.bytes(asked).filter(|_| inode.buffer().is_clean()) {
            inode.state().bytes = Some(bytes);
        }
        if known.delegated {
            inode.delegate(|| self.grants.is_recalled(known.attr.fid, asked));
        }
        self.tell_journal(|journal| journal.opened(handle, known.attr.fid, flags));
        OpenFile { handle, flags, inode }
    }

    /// Closes a handle and reports what was written through any handle of the file. Locks of
    /// `flock_owner` made with flock(2) go with it. The handle is gone also after an error.
    ///
    /// # Errors
    /// `BadHandle` when it is closed already, and those of the targets.
    pub fn close(&self, ctx: &Ctx<'_>, file: &OpenFile, flock_owner: Option<u64>) -> Result<()> {
        self.timed(Op::Close, || {
            self.close_handle(&file.inode, file.handle, flock_owner, &self.patience(ctx))
        })
    }

    pub(crate) fn close_handle(
        &self,
        inode: &OpenInode,
        handle: u64,
        flock_owner: Option<u64>,
        patience: &Patience<'_>,
    ) -> Result<()> {
        if !inode.handles().contains_key(&handle) {
            return Err(
                FsError::new(ErrorKind::BadHandle, "close").on(format_args!("fid={}", inode.fid()))
            );
        }
        let flock_owner = flock_owner.filter(|&owner| inode.locks().has_owner(owner, true));
        let close = |written| {
            let request = mds::Close { fid: inode.fid().0, handle, written, flock_owner };
            let keep = |(), answer: Result<_>| {
                if !answer.as_ref().is_err_and(is_refusal_of_data) {
                    self.forget_handle(inode, handle, flock_owner);
                }
                answer.map(drop)
            };
            self.keeping(inode.fid(), request, patience, || Ok(()), keep)
        };
        let writes = inode.handles().get(&handle).is_some_and(|f| f.has(OpenFlags::WRITE));
        let mut outcome = Ok(());
        // What is written behind goes while the MDT knows that this client may write the file.
        if writes {
            outcome = self.report_by(inode, patience, close);
        }
        if inode.handles().contains_key(&handle) {
            let sent = inode.unreported();
            outcome = outcome.and(close(self.to_report(inode, &sent, patience)));
            drop(self.reported(inode, &sent));
        }
        // Also where the session could not be had: nobody can use the handle any more.
        self.forget_handle(inode, handle, flock_owner);
        outcome
    }

    /// Forgets a handle, and with the last one what could not be stored.
    pub(crate) fn forget_handle(&self, inode: &OpenInode, handle: u64, flock_owner: Option<u64>) {
        self.grants.note_report();
        self.inodes.detach(inode, handle);
        self.tell_journal(|journal| journal.closed(handle));
        if let Some(owner) = flock_owner {
            let mut held = inode.locks();
            held.remove_owner(owner, true);
            self.tell_journal(|journal| journal.locked(inode.fid(), held.ranges()));
        }
    }

    /// What close(2) of one of several descriptors has to do: locks of `owner` made with fcntl(2)
    /// go. What was written behind and could not be stored so far is told.
    ///
    /// # Errors
    /// Those of the MDT, and of earlier writes.
    pub fn flush(&self, ctx: &Ctx<'_>, file: &OpenFile, owner: u64) -> Result<()> {
        let released = self.release_owner(ctx, file, owner);
        released.and(self.check_written(&file.inode))
    }
}
