//! Small files, whose bytes the MDT keeps: they go there with reports, and come with the reply of open.

use super::behind::is_passing;
use super::report::is_refusal_of_data;
use crate::client::Client;
use crate::grants::Grant;
use crate::inode::buffer::Extents;
use crate::inode::bytes::Bytes;
use crate::inode::{OpenFile, OpenInode};
use std::sync::Arc;
use std::time::Duration;
use weft_model::{ErrorKind, Result, checksum};
use weft_rpc::pb::mds::{self, Place};
use weft_rpc::router::Patience;

impl Client {
    /// Sends a report with everything that is unreported and, of a file that the MDT keeps, everything
    /// that waits; what waits of other files goes to the OSTs first. `send` is called again when the MDT
    /// does not take the data.
    ///
    /// # Errors
    /// Those of `send`; when patience ended.
    pub(crate) fn report_by<T>(
        &self,
        inode: &OpenInode,
        patience: &Patience<'_>,
        send: impl Fn(Option<mds::Written>) -> Result<T>,
    ) -> Result<T> {
        let _one_at_a_time = self.acquire(patience, || inode.writing_back.try_lock())?;
        loop {
            if let Some(sent) = self.try_inline(inode, patience, &send)? {
                return Ok(sent);
            }
            self.store_waiting(inode, false, patience)?;
            if inode.buffer().is_clean() {
                let sent = inode.unreported();
                let answer = send(self.to_report(inode, &sent, patience))?;
                drop(self.reported(inode, &sent));
                return Ok(answer);
            }
        }
    }

    /// Sends what waits of a file to the MDT, if that keeps it. Nothing if there is nothing that waits, or
    /// it has to go to objects. The caller holds `writing_back`.
    pub(crate) fn try_inline<T>(
        &self,
        inode: &OpenInode,
        patience: &Patience<'_>,
        send: &impl Fn(Option<mds::Written>) -> Result<T>,
    ) -> Result<Option<T>> {
        let Some((batch, place, generation)) = self.take_inline(inode) else { return Ok(None) };
        let sent = inode.unreported();
        let mut written = sent.to_wire(None).unwrap_or_default();
        written.size_epoch = inode.state().size_epoch;
        written.data = batch.iter().map(to_extent).collect();
        (written.inline, written.fresh) = (true, place == Place::Empty);
        let answer = send(Some(written));
        let mut buffer = inode.buffer();
        match &answer {
            Ok(_) => {
                self.landed(inode, &mut buffer);
                buffer.place = Place::Inline;
                let end = batch.last_key_value().map_or(0, |(at, data)| at + data.len() as u64);
                let mut state = self.reported(inode, &sent);
                state.unreported.record_reported(end);
                // What a reply told before does not have this.
                state.bytes = None;
            }
            Err(_) => self.put_back(&mut buffer, generation),
        }
        drop(buffer);
        match answer {
            Ok(answer) => Ok(Some(answer)),
            Err(error) if is_refusal_of_data(&error) => {
                self.leave_mdt_or_lose(inode, patience).map(|()| None)
            }
            Err(error) => Err(error),
        }
    }

    fn take_inline(&self, inode: &OpenInode) -> Option<(Arc<Extents>, Place, u64)> {
        self.with_buffer(inode, |buffer| {
            let fits = buffer.is_inline() && buffer.fits_inline();
            let batch = if fits { buffer.take(usize::MAX, false) } else { Arc::default() };
            (!batch.is_empty()).then_some((batch, buffer.place, buffer.generation()))
        })
    }

    /// From now on the file's bytes are in its objects.
    ///
    /// # Errors
    /// Those of the MDT and the OSTs; nothing has changed then.
    pub(crate) fn move_out(&self, inode: &OpenInode, patience: &Patience<'_>) -> Result<()> {
        if !inode.buffer().is_inline() {
            return Ok(());
        }
        let _not_meanwhile = self.acquire(patience, || inode.writing_back.try_lock())?;
        self.move_out_alone(inode, patience)
    }

    /// The same for who holds `writing_back`: no data is on its way to the MDT.
    fn move_out_alone(&self, inode: &OpenInode, patience: &Patience<'_>) -> Result<()> {
        let (place, unsynced) = {
            let buffer = inode.buffer();
            (buffer.place, buffer.delegated && !buffer.synced)
        };
        if place == Place::Inline {
            self.ask(inode.fid(), mds::MoveOut { fid: inode.fid().0, unsynced }, patience)?;
        }
        inode.leave_mdt();
        Ok(())
    }

    /// All bytes of a file that the MDT keeps. Nothing if it does not.
    ///
    /// # Errors
    /// `Checksum`, those of the MDT.
    pub(crate) fn inline_bytes(
        &self,
        inode: &OpenInode,
        patience: &Patience<'_>,
    ) -> Result<Option<Bytes>> {
        self.write_back(inode, false, patience)?;
        if inode.buffer().place != Place::Inline {
            return Ok(None);
        }
        let now = self.env().monotonic();
        let known = inode.state().bytes.clone();
        if let Some(bytes) =
            known.filter(|bytes| self.grants.left(&bytes.grant, now) > Duration::ZERO)
        {
            return Ok(Some(bytes));
        }
        let fid = inode.fid();
        let mut damaged = None;
        // Once more where they are damaged: they may have been on the way.
        for _ in 0..2 {
            let reply = match self.ask(fid, mds::ReadInline { fid: fid.0 }, patience) {
                Err(error) if error.kind == ErrorKind::NotInline => {
                    inode.leave_mdt();
                    return Ok(None);
                }
                reply => reply?,
            };
            let told = reply.data.unwrap_or_default();
            match Bytes::verified(fid, told, reply.size, Grant::NONE) {
                Ok(bytes) => return Ok(Some(bytes)),
                Err(error) => damaged = Some(error),
            }
            self.metrics.count_checksum_error();
        }
        Err(damaged.unwrap_or_else(|| ErrorKind::Checksum.into()))
    }

    /// Reads a file that the MDT keeps. Nothing if it does not.
    pub(crate) fn read_inline(
        &self,
        file: &OpenFile,
        offset: u64,
        buf: &mut [u8],
        patience: &Patience<'_>,
    ) -> Result<Option<usize>> {
        if !file.inode.buffer().is_inline() {
            return Ok(None);
        }
        Ok(self.inline_bytes(&file.inode, patience)?.map(|bytes| bytes.read(offset, buf)))
    }

    /// Moves the file out of the MDT; if that is refused for good, what waits is lost. The caller holds
    /// `writing_back`.
    pub(crate) fn leave_mdt_or_lose(
        &self,
        inode: &OpenInode,
        patience: &Patience<'_>,
    ) -> Result<()> {
        match self.move_out_alone(inode, patience) {
            Err(error) if !is_passing(error.kind) => {
                let dropped = inode.buffer().clear();
                self.behind.count(dropped, 0);
                self.lost(inode, error)
            }
            outcome => outcome,
        }
    }
}

fn to_extent((&offset, data): (&u64, &Vec<u8>)) -> mds::Extent {
    mds::Extent { offset, data: data.clone(), sums: checksum::compute(offset, data) }
}
