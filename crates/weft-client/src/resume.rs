//! Carrying on the work of an earlier process: its identity, its sessions, its open files and locks.
//!
//! To the servers this is the same client. The sessions are opened again as after a restart of an MDT, with
//! all that was open and locked; then each file is opened once more under a handle that it has already, for
//! what only replies tell: its layout, its size, whether it is delegated to us.

use crate::client::Client;
use crate::config::ClientConfig;
use crate::ctx::Ctx;
use crate::flags::OpenFlags;
use crate::inode::{OpenFile, OpenInode};
use crate::journal::{Journal, Legacy, Reopened, lost_with_process};
use crate::namespace::entry::Known;
use std::sync::Arc;
use std::time::Duration;
use weft_model::{Env, ErrorKind, FsError, Result, TargetId};
use weft_rpc::pb::{manager, mds};
use weft_rpc::router::Patience;

/// Longest wait for servers to take what was written, before a process leaves its work to another.
const LAST_WRITES: Duration = Duration::from_secs(60);

impl Client {
    /// Mounts as [`Client::mount`] does, over the network; `journal` is told what a successor has to know.
    ///
    /// # Errors
    /// As [`Client::mount`].
    pub fn mount_noted(
        config: ClientConfig,
        env: Arc<dyn Env>,
        journal: Arc<dyn Journal>,
    ) -> Result<Arc<Client>> {
        let router = Client::connect(&config, None, env);
        router.set_choices(journal.clone(), 0, &[]);
        Client::assemble(config, router, Some(journal)).come(None)
    }

    /// Carries on the work of an earlier process. Locks and written data that were lost with its session
    /// are told to those who use the files.
    ///
    /// # Errors
    /// Those of the manager and the MDTs, except about single files, which are closed then.
    pub fn resume(
        config: ClientConfig,
        env: Arc<dyn Env>,
        journal: Arc<dyn Journal>,
        legacy: &Legacy,
    ) -> Result<Arc<Client>> {
        let router = Client::connect(&config, None, env);
        router.set_client(legacy.client);
        router.set_choices(journal.clone(), legacy.base(), &legacy.numbers);
        Client::assemble(config, router, Some(journal)).come(Some(legacy))
    }

    /// Takes over what an earlier process has left.
    pub(crate) fn inherit(&self, legacy: &Legacy) -> Result<()> {
        let patience = self.patience(&Ctx::root());
        let reply = self.router.ask(TargetId::MGT, manager::GetMap { have_epoch: 0 }, &patience)?;
        let map = reply.map.ok_or_else(|| {
            FsError::new(ErrorKind::Protocol, "resume").because("the reply has no cluster map")
        })?;
        self.router.set_map(map.try_into()?);
        self.skip_handles(legacy.base());
        for &Reopened { handle, fid, flags } in &legacy.opens {
            self.inodes.attach(&Known::nothing_of(fid), handle, flags, || self.env().now());
        }
        for (fid, range) in &legacy.locks {
            if let Some(inode) = self.inodes.get(*fid) {
                inode.locks().set(range);
            }
        }
        for mdt in self.map().mdts().map(|mdt| mdt.id).collect::<Vec<_>>() {
            self.resume_session(mdt, &patience)?;
        }
        for inode in self.inodes.select(|_| true) {
            self.open_once_more(&inode, &patience)?;
        }
        for inode in legacy.lost.iter().filter_map(|&fid| self.inodes.get(fid)) {
            inode.buffer().failure = Some(lost_with_process(inode.fid()));
        }
        self.close_later(&legacy.unknown);
        Ok(())
    }

    /// A file that an earlier process had open; `None` if it is gone.
    pub fn reopened(&self, open: &Reopened) -> Option<OpenFile> {
        let inode = self.inodes.get(open.fid)?;
        let known = inode.handles().contains_key(&open.handle);
        known.then_some(OpenFile { handle: open.handle, flags: open.flags, inode })
    }

    /// Learns what the MDT tells of a file that is open; forgets one that is gone.
    fn open_once_more(&self, inode: &OpenInode, patience: &Patience<'_>) -> Result<()> {
        let handles: Vec<_> =
            inode.handles().iter().map(|(&handle, &flags)| (handle, flags)).collect();
        let writes = |flags: OpenFlags| flags.has(OpenFlags::WRITE);
        let best = handles.iter().find(|(_, flags)| writes(*flags)).or(handles.first());
        let Some(&(handle, flags)) = best else { return Ok(()) };
        // What was asked for was granted then, whatever the file's mode says now.
        let cred = Some((&Ctx::root().cred).into());
        let request = mds::Open { cred, fid: inode.fid().0, flags: flags.once_more(), handle };
        let asked = self.asking();
        let keep = |(), reply: Result<mds::Entry>| {
            let known = Known::try_from(reply?)?;
            inode.learn(&known);
            inode.learn_place(&known);
            if known.delegated {
                inode.delegate(|| self.grants.is_recalled(inode.fid(), &asked));
            }
            Ok(known)
        };
        let known = match self.keeping(inode.fid(), request, patience, || Ok(()), keep) {
            Ok(known) => known,
            Err(error) if matches!(error.kind, ErrorKind::Stale | ErrorKind::NotFound) => {
                tracing::warn!(fid = %inode.fid(), %error, "an open file is gone");
                handles.iter().for_each(|&(handle, _)| self.forget_handle(inode, handle, None));
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        // Of what is on the MDT there is nothing that it does not know. It says so of a file, too, that this
        // client may have written without telling.
        let in_objects = match known.place {
            mds::Place::Objects => true,
            mds::Place::Inline => self.inline_bytes(inode, patience)?.is_none(),
            mds::Place::Empty => false,
        };
        match writes(flags) && in_objects {
            true => self.find_unreported(inode, &known, patience),
            false => Ok(()),
        }
    }

    /// What the earlier process wrote and did not report is on the OSTs.
    fn find_unreported(
        &self,
        inode: &OpenInode,
        known: &Known,
        patience: &Patience<'_>,
    ) -> Result<()> {
        let seen = self.glimpse(inode.fid(), &inode.layout(), patience)?;
        // A time stamp that was set by hand is older than the change that set it.
        let mtime = seen.mtime.filter(|&mtime| mtime > known.attr.ctime);
        if seen.size > known.attr.size || mtime.is_some() {
            let when = mtime.unwrap_or(known.attr.mtime);
            let mut state = inode.state();
            state.unreported.record_change(seen.size, when, known.size_epoch);
            state.unreported.record_blocks_changed();
        }
        Ok(())
    }

    /// Before another process carries on: brings everything to the servers. From now on each write is
    /// answered when the OSTs have it.
    ///
    /// # Errors
    /// Those of the targets; nothing is lost, and this process may go on.
    pub fn settle_all(&self) -> Result<()> {
        self.behind.write_through();
        let patience = Patience::of(LAST_WRITES);
        let mut outcome = Ok(());
        for inode in self.inodes.select(|_| true) {
            // Whoever has not seen that has written to the buffer when this was had.
            let alone = self.acquire(&patience, || inode.io.try_write()).map(drop);
            outcome = outcome.and(alone).and(self.write_back(&inode, false, &patience));
        }
        for inode in self.inodes.dirty() {
            outcome = outcome.and(self.report(&inode, &patience));
        }
        outcome
    }
}
