//! From a request to its operation.

use crate::opens::flags;
use crate::record::SavedReply;
use crate::sessions::Live;
use crate::txn::Txn;
use crate::{Mds, check, keys, ops, room, truncate};
use prost::Message as _;
use std::sync::Arc;
use weft_model::{ClientId, ErrorKind, Fid, FsError, Result, Xid};
use weft_rpc::pb::{self, Empty, mds};
use weft_rpc::{Bulk, CallInfo, Reply, Request, Role, Service};

impl Service for Mds {
    fn serve(&self, info: &CallInfo, request: &Request, _bulk: Bulk<'_>) -> Result<Reply> {
        if let Request::OpenSession(open) = request {
            return ops::session::open(self, info, open).map(Reply::OpenSession);
        }
        if let Request::Reclaim(reclaim) = request {
            return ops::session::reclaim(self, info, reclaim).map(Reply::Reclaim);
        }
        // Also for a session that has not come back after a restart, or was closed by this request before.
        if let Request::CloseSession(_) = request {
            return ops::session::close(self, info).map(Reply::CloseSession);
        }
        // Servers and operators read without a session; whatever changes something needs one.
        let live = match info.role {
            Role::Client => Some(self.sessions.present(info.client, self.env.monotonic())?),
            _ if request.is_modifying() => {
                return Err(FsError::new(ErrorKind::Denied, request.name())
                    .because("only a client with a session may do this"));
            }
            _ => None,
        };
        match live {
            Some(live) if request.is_modifying() => self.modify(info, &live, request),
            _ => self.read(info, request),
        }
    }

    fn disconnected(&self, client: ClientId) {
        tracing::debug!(%client, target_id = %self.target, "client disconnected");
    }
}

/// A modifying request and who makes it.
struct Asked<'a> {
    info: &'a CallInfo,
    live: &'a Live,
    request: &'a Request,
}

/// A plan for each modifying request that is one transaction.
macro_rules! transact {
    ($mds:expr, $asked:expr, $variant:ident, |$txn:ident| $plan:expr) => {
        $mds.once($asked, Reply::$variant, |$txn: &mut Txn<'_>| $plan)
    };
}

impl Mds {
    fn read(&self, info: &CallInfo, request: &Request) -> Result<Reply> {
        use Request as Q;
        match request {
            Q::RenewSession(_) => ops::session::renew(self, info).map(Reply::RenewSession),
            Q::AwaitRecalls(r) => {
                ops::session::await_recalls(self, info, r).map(Reply::AwaitRecalls)
            }
            Q::Lookup(r) => ops::lookup::run(self, info, r).map(Reply::Lookup),
            Q::GetAttr(r) => ops::getattr::run(self, info, r).map(Reply::GetAttr),
            Q::Access(r) => ops::access::run(self, r).map(Reply::Access),
            Q::Readlink(r) => ops::readlink::run(self, r).map(Reply::Readlink),
            Q::Readdir(r) => ops::readdir::run(self, info, r).map(Reply::Readdir),
            Q::GetXattr(r) => ops::xattr::get(self, r).map(Reply::GetXattr),
            Q::ListXattr(r) => ops::xattr::list(self, r).map(Reply::ListXattr),
            Q::Lock(r) => ops::lock::lock(self, info, r).map(Reply::Lock),
            Q::TestLock(r) => ops::lock::test(self, info, r).map(Reply::TestLock),
            Q::AwaitLock(r) => ops::lock::wait(self, info, r).map(Reply::AwaitLock),
            Q::CancelLock(r) => ops::lock::cancel(self, info, r).map(Reply::CancelLock),
            Q::GetLayout(r) => ops::layout::get(self, r).map(Reply::GetLayout),
            Q::FidToPath(r) => ops::path::run(self, r).map(Reply::FidToPath),
            Q::MdtStatfs(_) => ops::statfs::run(self).map(Reply::MdtStatfs),
            Q::ReadInline(r) => ops::read_inline::run(self, info, r).map(Reply::ReadInline),
            // Doing it twice is harmless.
            Q::MoveOut(r) => ops::move_out::run(self, info, r).map(Reply::MoveOut),
            Q::SyncTarget(_) => ops::fsync::sync_target(self).map(Reply::SyncTarget),
            Q::CheckObjects(r) => check::run(self, r).map(Reply::CheckObjects),
            Q::ScrubTarget(r) => ops::scrub::run(self, r).map(Reply::ScrubTarget),
            other => Err(FsError::new(ErrorKind::NotImplemented, other.name())
                .on(format_args!("target={}", self.target))),
        }
    }

    fn modify(&self, info: &CallInfo, live: &Arc<Live>, request: &Request) -> Result<Reply> {
        use Request as Q;
        if let Some(saved) = self.saved_reply(info.xid, live)? {
            self.open_again(info, request, &saved)?;
            return Ok(saved);
        }
        if let Some(bytes) = room::wanted(request) {
            self.room.admit(bytes)?;
        }
        let asked = &Asked { info, live, request };
        match request {
            Q::Create(r) => {
                transact!(self, asked, Create, |t| ops::create::plan(t, self, info, r))
            }
            Q::Mknod(r) => {
                transact!(self, asked, Mknod, |t| ops::mknod::plan(t, self, info, r))
            }
            Q::Mkdir(r) => transact!(self, asked, Mkdir, |t| ops::mkdir::plan(t, info, r)),
            Q::Symlink(r) => {
                transact!(self, asked, Symlink, |t| ops::symlink::plan(t, info, r))
            }
            Q::Tmpfile(r) => {
                transact!(self, asked, Tmpfile, |t| ops::tmpfile::plan(t, self, info, r))
            }
            Q::Link(r) => transact!(self, asked, Link, |t| ops::link::plan(t, info, r)),
            Q::Unlink(r) => transact!(self, asked, Unlink, |t| ops::unlink::plan(t, r)),
            Q::Rmdir(r) => transact!(self, asked, Rmdir, |t| ops::rmdir::plan(t, r)),
            Q::Rename(r) => transact!(self, asked, Rename, |t| ops::rename::plan(t, r)),
            Q::Open(r) => {
                let opened = transact!(self, asked, Open, |t| ops::open::plan(t, info, r));
                opened.and_then(|reply| self.with_data(info, r, reply))
            }
            Q::Append(r) => {
                transact!(self, asked, Append, |t| ops::append::plan(t, self, info, r))
            }
            Q::SetXattr(r) => transact!(self, asked, SetXattr, |t| ops::xattr::set(t, r)),
            Q::RemoveXattr(r) => {
                transact!(self, asked, RemoveXattr, |t| ops::xattr::remove(t, r))
            }
            Q::SetLayout(r) => {
                transact!(self, asked, SetLayout, |t| ops::layout::set(t, self, r))
            }
            Q::Fsync(r) => ops::fsync::run(self, info, r).map(Reply::Fsync),
            Q::SetAttr(r) if r.size.is_some() => truncate::run(self, info, r).map(Reply::SetAttr),
            Q::SetAttr(r) => {
                let observed = ops::written::observe(self, Fid(r.fid), &r.written)?;
                transact!(self, asked, SetAttr, |t| {
                    ops::setattr::plan(t, self, info, r, observed)
                })
            }
            Q::Close(r) => self.close(info, r),
            Q::UpdateWritten(r) => {
                let observed = ops::written::observe(self, Fid(r.fid), &r.written)?;
                let told = transact!(self, asked, UpdateWritten, |t| {
                    ops::written::plan(t, self, info, r, observed)
                });
                if told.is_ok() && r.returned {
                    self.committer.grants.return_delegation(Fid(r.fid), info.client);
                }
                told
            }
            other => Err(FsError::new(ErrorKind::NotImplemented, other.name())
                .on(format_args!("target={}", self.target))),
        }
    }

    fn close(&self, info: &CallInfo, request: &mds::Close) -> Result<Reply> {
        let mut named = None;
        if request.fid == 0 {
            // The answer to its open has not arrived: the client knows the handle only.
            let opens = self.committer.with_planner(|p| p.opens.get(info.client, request.handle));
            let fid = opens.map_or(0, |open| open.fid.0);
            named = Some(mds::Close { fid, ..request.clone() });
        }
        let request = named.as_ref().unwrap_or(request);
        let observed = ops::written::observe(self, Fid(request.fid), &request.written)?;
        // Where nothing was written, only the writer's mark goes; a crash may bring it back, and it is
        // looked through then. So that need not be waited for. Repeating either is harmless.
        let now = self.env.now();
        let plan = |txn: &mut Txn<'_>| ops::close::plan(txn, self, info, request, observed);
        match request.written.as_ref().is_some_and(ops::written::is_news) {
            false => self.committer.transact_lazily(info.client, now, plan)?,
            true => self.committer.transact(info.client, now, plan)?,
        };
        let fid = Fid(request.fid);
        self.committer.with_planner(|planner| {
            if !planner.opens.has(info.client, fid) {
                self.committer.grants.return_delegation(fid, info.client);
            }
        });
        if let Some(owner) = request.flock_owner {
            let unlock = mds::Lock {
                fid: request.fid,
                owner,
                flock: true,
                kind: 2,
                end: u64::MAX,
                ..mds::Lock::default()
            };
            ops::lock::lock(self, info, &unlock)?;
        }
        Ok(Reply::Close(Empty {}))
    }

    /// Carries out a plan as one transaction, with its answer if the request may come again.
    fn once<R>(
        &self,
        &Asked { info, live, request }: &Asked<'_>,
        wrap: fn(R) -> Reply,
        mut plan: impl FnMut(&mut Txn<'_>) -> Result<R>,
    ) -> Result<Reply> {
        let now = self.env.now();
        let mut plan = |txn: &mut Txn<'_>| {
            live.check_not_ended()?;
            plan(txn)
        };
        if info.xid == Xid::NONE {
            return self.committer.transact(info.client, now, |txn| {
                let mut reply = wrap(plan(txn)?);
                self.grant(txn, info.client, request, &mut reply);
                Ok(reply)
            });
        }
        let (reply, saved) = self.committer.transact(info.client, now, |txn| {
            let mut reply = wrap(plan(txn)?);
            let mut body = Vec::with_capacity(160);
            reply.encode(&mut body);
            let sequence = info.xid.sequence();
            let saved = SavedReply { sequence, number: reply.number() as u32, body };
            // What has changed memory only (an append's place) is forgotten by a restart, and its answer
            // with it; then it can be carried out again.
            if !txn.is_read_only() {
                let key = keys::reply(info.client, info.xid.slot());
                txn.put_raw(key, Some(saved.encode_to_vec()));
            }
            // Saved without: when it is sent again, what it granted may have been recalled.
            self.grant(txn, info.client, request, &mut reply);
            Ok((reply, saved))
        })?;
        live.save(info.xid.slot(), saved);
        Ok(reply)
    }

    /// Grants what a reply tells, to whoever has asked for the change it tells of.
    fn grant(&self, txn: &mut Txn<'_>, client: ClientId, request: &Request, reply: &mut Reply) {
        use Request as Q;
        if let (Q::Unlink(mds::Unlink { parent, .. }), Reply::Unlink(removed))
        | (Q::Rmdir(mds::Rmdir { parent, .. }), Reply::Rmdir(removed)) = (request, &mut *reply)
        {
            (removed.parent, removed.parent_grant_ms) = self.grant_parent(txn, client, *parent);
            return;
        }
        let (entry, parent) = match (request, reply) {
            (Q::Create(r), Reply::Create(made)) => (made.entry.as_mut(), Some(r.parent)),
            (Q::Tmpfile(_), Reply::Tmpfile(made)) => (made.entry.as_mut(), None),
            (Q::Mknod(r), Reply::Mknod(entry)) => (Some(entry), Some(r.parent)),
            (Q::Mkdir(r), Reply::Mkdir(entry)) => (Some(entry), Some(r.parent)),
            (Q::Symlink(r), Reply::Symlink(entry)) => (Some(entry), Some(r.parent)),
            (Q::Link(r), Reply::Link(entry)) => (Some(entry), Some(r.parent)),
            (Q::Open(_), Reply::Open(entry)) | (Q::SetAttr(_), Reply::SetAttr(entry)) => {
                (Some(entry), None)
            }
            _ => return,
        };
        let Some(entry) = entry else { return };
        let grants = &self.committer.grants;
        if let Some(attr) = entry.attr.as_ref().filter(|_| !entry.written_elsewhere) {
            let fid = Fid(attr.fid);
            entry.grant_ms = grants.grant_planned(fid, client);
            let opens = &txn.planner.opens;
            // Before all have come back after a restart, nobody knows who has it open.
            entry.delegated = !txn.planner.recovering
                && opens.writes(client, fid)
                && opens.has_alone(client, fid)
                && grants.delegate(fid, client);
        }
        if let Some(parent) = parent {
            (entry.parent, entry.name_grant_ms) = self.grant_parent(txn, client, parent);
        }
    }

    /// Grants a directory to whoever has changed it, and what it is like now.
    fn grant_parent(
        &self,
        txn: &mut Txn<'_>,
        client: ClientId,
        dir: u64,
    ) -> (Option<pb::Attr>, u32) {
        let granted = self.committer.grants.grant_planned(Fid(dir), client);
        let inode = txn.inode(Fid(dir)).ok().filter(|_| granted > 0);
        (inode.map(|inode| (&inode.attr(Fid(dir))).into()), granted)
    }

    /// Adds the bytes of a small file to the answer of who opens it for reading. What it was granted, it was
    /// granted before they are read here: if they change, it is told.
    fn with_data(&self, info: &CallInfo, request: &mds::Open, mut reply: Reply) -> Result<Reply> {
        if let Reply::Open(entry) = &mut reply
            && entry.place() == mds::Place::Inline
            && request.flags & flags::READ != 0
        {
            let wanted = mds::ReadInline { fid: request.fid };
            match ops::read_inline::run(self, info, &wanted) {
                Ok(read) => entry.data = read.data,
                // Who reads will be told.
                Err(error) => tracing::warn!(%error, "small file opened without its data"),
            }
        }
        Ok(reply)
    }

    /// A file that was opened by a request whose answer was lost in a restart: the client could not
    /// reclaim what it did not know of.
    fn open_again(&self, info: &CallInfo, request: &Request, saved: &Reply) -> Result<()> {
        use Request as Q;
        let (handle, flags, entry) = match (request, saved) {
            (Q::Create(r), Reply::Create(made)) => (r.handle, r.flags, made.entry.as_ref()),
            (Q::Tmpfile(r), Reply::Tmpfile(made)) => (r.handle, r.flags, made.entry.as_ref()),
            (Q::Open(r), Reply::Open(entry)) => (r.handle, r.flags, Some(entry)),
            _ => return Ok(()),
        };
        let fid = entry.and_then(|entry| entry.attr.as_ref()).map_or(0, |attr| attr.fid);
        let open = mds::OpenHandle { fid, handle, flags };
        let now = self.env.now();
        self.committer
            .transact(info.client, now, |txn| ops::session::take_back(txn, info.client, &open))
    }

    fn saved_reply(&self, xid: Xid, live: &Live) -> Result<Option<Reply>> {
        if xid == Xid::NONE {
            return Ok(None);
        }
        let Some(saved) = live.saved(xid)? else { return Ok(None) };
        Reply::decode(saved.number as u16, &saved.body).map(Some)
    }
}
