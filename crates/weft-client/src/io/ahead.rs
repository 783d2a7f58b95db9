//! Reading ahead: what of a read is here already, and what is to be fetched for those that follow.

use crate::ahead::{Advice, Ahead, Job, Limits, Look};
use crate::client::Client;
use crate::grants::Grant;
use crate::inode::{OpenFile, OpenInode};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use weft_model::{Layout, Result};
use weft_rpc::router::Patience;

/// Bytes fetched at a time, unless the client is told otherwise.
const CHUNK: u64 = 1 << 20;
/// Bytes of a file that are fetched ahead, at most.
const MAX_WINDOW: u64 = 32 << 20;
/// Reads of so many chunks keep all targets busy by themselves.
const LARGE: u64 = 4;
/// A grant with less time left is renewed, and asked for no more often than this.
const SOON: Duration = Duration::from_millis(500);
/// What is here and was not read for so long is dropped.
const UNUSED: Duration = Duration::from_secs(3);

/// What came of a look at what is here.
pub(crate) enum Served {
    /// So many bytes from the start; the rest has to be read.
    Part(usize),
    /// All there is: the file ends behind them.
    All(usize),
}

impl Client {
    /// Takes what is here of a read, waiting for what is on its way, and has more fetched if it belongs to a
    /// stream.
    pub(crate) fn serve_ahead(
        &self,
        file: &OpenFile,
        offset: u64,
        buf: &mut [u8],
        patience: &Patience<'_>,
    ) -> Result<Served> {
        let len = buf.len() as u64;
        if self.config.max_ahead == 0 || len == 0 || len >= LARGE * self.chunk() {
            return Ok(Served::Part(0));
        }
        self.note_stream(file, offset..offset + len);
        let mut got = 0;
        while got < buf.len() {
            let rest = offset + got as u64..offset + len;
            let look = || match self.look_ahead(&file.inode, &rest) {
                None => Some(None),
                Some(Look::Coming) => None,
                Some(look) => Some(Some(look)),
            };
            match self.acquire(patience, look)? {
                None => return Ok(Served::All(got)),
                Some(Look::Here { data, range }) => {
                    let count = range.end - range.start;
                    buf[got..got + count].copy_from_slice(&data[range]);
                    got += count;
                }
                Some(Look::Nothing | Look::Coming) => break,
            }
        }
        self.metrics.count_ahead(got);
        Ok(Served::Part(got))
    }

    /// A reader has asked the targets itself, from `start` on, and got so many bytes.
    pub(crate) fn note_wait(&self, inode: &OpenInode, start: Duration, got: usize) {
        if self.config.max_ahead > 0 {
            let took = self.env().monotonic().saturating_sub(start);
            inode.ahead().pace.waited(got as u64, took);
        }
    }

    /// `None`: the file ends before this.
    fn look_ahead(&self, inode: &OpenInode, range: &Range<u64>) -> Option<Look> {
        let mut ahead = inode.ahead();
        match ahead.covered(|grant| self.grant_left(grant)) {
            None => Some(Look::Nothing),
            Some((size, _)) if range.start >= size => None,
            Some(_) => Some(ahead.chunks.look(range, self.env().monotonic())),
        }
    }

    fn note_stream(&self, file: &OpenFile, read: Range<u64>) {
        let now = self.env().monotonic();
        let mut ahead = file.inode.ahead();
        let advice = ahead.advice(file.handle);
        if advice == Advice::Random {
            return;
        }
        ahead.pace.read(read.end - read.start, now);
        let start = read.end;
        let told = advice == Advice::Sequential;
        if !ahead.streams.step(read, told) || !(told || ahead.pace.pays()) {
            return;
        }
        let covered = ahead.covered(|grant| self.grant_left(grant));
        if covered.is_none_or(|(_, left)| left < SOON) && ahead.ask(now, SOON) {
            self.ahead.jobs.add(Job::Cover(file.inode.clone()));
        }
        if let Some((end, _)) = covered {
            let least = round(&file.layout(), start).max(2 * self.chunk());
            let window = ahead.pace.window().max(least).min(MAX_WINDOW);
            let wanted = ahead.streams.wanted(Limits { chunk: self.chunk(), window, end });
            self.queue_ahead(&file.inode, &mut ahead, wanted);
        }
    }

    pub(super) fn queue_ahead(
        &self,
        inode: &Arc<OpenInode>,
        ahead: &mut Ahead,
        wanted: Vec<Range<u64>>,
    ) {
        let (now, most) = (self.env().monotonic(), self.config.max_ahead as u64);
        for range in wanted {
            let bytes = range.end - range.start;
            if ahead.chunks.bytes() + bytes > MAX_WINDOW {
                return;
            }
            let Some(share) = self.ahead.room.share(bytes, most) else { return };
            if let Some(number) = ahead.chunks.queue(&range, share, now) {
                self.ahead.jobs.add(Job::Fetch(inode.clone(), range.start, number));
            }
        }
    }

    /// Fetches a range that was queued, if it is still wanted. Whoever waits for it learns of a failure by
    /// reading it.
    pub(crate) fn fetch_ahead(
        &self,
        inode: &OpenInode,
        start: u64,
        number: u64,
        patience: &Patience<'_>,
    ) {
        let Some(range) = self.begin_ahead(inode, start, number) else { return };
        let sent = self.env().monotonic();
        // What is written from now on drops the range; what was written before may wait in this client.
        // Bytes that the MDT keeps are in no object.
        let elsewhere = {
            let buffer = inode.buffer();
            buffer.overlaps(&range) || buffer.is_inline()
        };
        let fetched = if elsewhere { None } else { self.fetch_range(inode, &range, patience) };
        let now = self.env().monotonic();
        let mut ahead = inode.ahead();
        match fetched {
            Some(data) => {
                ahead.pace.fetched(range.end - range.start, now.saturating_sub(sent));
                ahead.chunks.arrived(start, number, data, now);
            }
            None => ahead.chunks.failed(start, number),
        }
    }

    fn begin_ahead(&self, inode: &OpenInode, start: u64, number: u64) -> Option<Range<u64>> {
        let mut ahead = inode.ahead();
        let covered = ahead.covered(|grant| self.grant_left(grant)).is_some();
        if ahead.is_changing() || !covered {
            ahead.chunks.failed(start, number);
        }
        ahead.chunks.begin(start, number)
    }

    fn fetch_range(
        &self,
        inode: &OpenInode,
        range: &Range<u64>,
        patience: &Patience<'_>,
    ) -> Option<Vec<u8>> {
        let mut data = vec![0; (range.end - range.start) as usize];
        let read = self.read_covered(inode, range.start, &mut data, patience);
        if let Err(error) = &read {
            tracing::debug!(fid = %inode.fid(), %error, "cannot read ahead");
        }
        read.is_ok().then_some(data)
    }

    /// Takes note of what an answer says of a file, asked for when so many `changes` had been made.
    pub(crate) fn cover(&self, inode: &OpenInode, size: u64, grant: Grant, changes: u64) {
        if self.config.max_ahead > 0 {
            inode.ahead().learn((size, grant), changes, |grant| self.grant_left(grant));
        }
    }

    /// Drops what was fetched and nobody reads.
    pub(crate) fn drop_unread(&self) {
        if self.ahead.room.held() > 0
            && let Some(before) = self.env().monotonic().checked_sub(UNUSED)
        {
            let held = self.inodes.select(|inode| inode.ahead().chunks.bytes() > 0);
            held.iter().for_each(|inode| inode.ahead().chunks.drop_unused(before));
        }
    }

    pub(super) fn chunk(&self) -> u64 {
        if self.config.ahead_chunk == 0 { CHUNK } else { self.config.ahead_chunk }
    }
}

/// Bytes from which on every target of the layout has some of them.
fn round(layout: &Layout, offset: u64) -> u64 {
    let component = layout.components.iter().find(|component| component.end > offset);
    component.map_or(0, |component| {
        component.geometry.stripe_unit.saturating_mul(component.targets.len() as u64)
    })
}
