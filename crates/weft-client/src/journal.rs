//! What is noted for a process that carries on this client's work after its death.
//!
//! Whoever mounts may give a [`Journal`] that outlives the process (a mount whose descriptor another
//! process holds). What was open and locked is in it from before it is answered until after it is closed;
//! what operations under way have chosen ([`Choices`]), until they are answered. Design:
//! `docs/design/0009-mount-holder.md`.

use crate::client::Client;
use crate::flags::OpenFlags;
use crate::lock::LockRange;
use weft_model::{ClientId, ErrorKind, Fid, FsError};
use weft_rpc::{Choice, Choices};

/// Outlives the process.
pub trait Journal: Choices {
    /// A handle is open. Repeating it changes nothing.
    fn opened(&self, handle: u64, fid: Fid, flags: OpenFlags);
    /// It is closed.
    fn closed(&self, handle: u64);
    /// These are all locks held on a file.
    fn locked(&self, fid: Fid, held: &[LockRange]);
    /// Whether written data of a file waits in this process.
    fn waits(&self, fid: Fid, waits: bool);
}

/// An open file of an earlier process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reopened {
    /// Number of the handle.
    pub handle: u64,
    /// The file.
    pub fid: Fid,
    /// How it was opened.
    pub flags: OpenFlags,
}

/// What an earlier process has left, read from its journal.
#[derive(Clone, Debug, Default)]
pub struct Legacy {
    /// As which client it was known.
    pub client: ClientId,
    /// The root directory of the mount.
    pub root: Fid,
    /// What it had open.
    pub opens: Vec<Reopened>,
    /// What it had locked.
    pub locks: Vec<(Fid, LockRange)>,
    /// Files of which written data waited in it.
    pub lost: Vec<Fid>,
    /// Handles that may be open without anybody knowing.
    pub unknown: Vec<u64>,
    /// Numbers of requests of operations under way.
    pub numbers: Vec<weft_model::Xid>,
    /// How many processes there were before this one.
    pub processes: u64,
}

/// Sequences of requests, and handles, that one process may use: more than it can in its life.
const PER_PROCESS: u64 = 1 << 32;

impl Legacy {
    /// Sequence before the first of this process's requests. They wrap after 65,535 processes.
    pub(crate) const fn base(&self) -> u64 {
        (self.processes % (1 << 16)) * PER_PROCESS
    }
}

impl Client {
    /// Number of a new handle: the one that an earlier process has chosen in the same operation, if any.
    pub(crate) fn new_handle(&self) -> u64 {
        self.choose(Choice::HANDLE, || self.next_handle())
    }

    /// Where an append to a delegated file goes, which ends at `end`.
    pub(crate) fn place_of_append(&self, end: u64) -> u64 {
        self.choose(Choice::PLACE, || end)
    }

    fn choose(&self, choice: Choice, fresh: impl FnOnce() -> u64) -> u64 {
        let Some(journal) = &self.journal else { return fresh() };
        journal.made(choice).unwrap_or_else(|| {
            let value = fresh();
            journal.make(choice, value);
            value
        })
    }

    /// Notes something, if anything is noted.
    pub(crate) fn tell_journal(&self, note: impl FnOnce(&dyn Journal)) {
        if let Some(journal) = &self.journal {
            note(&**journal);
        }
    }

    /// An operation that had noted numbers of requests was answered: they may be used again.
    pub fn end_operation(&self, numbers: impl Iterator<Item = weft_model::Xid>) {
        numbers.for_each(|xid| self.router.give_back(xid));
    }
}

/// What the next fsync or close of a file is told whose data was lost with its process.
pub(crate) fn lost_with_process(fid: Fid) -> FsError {
    FsError::new(ErrorKind::Io, "write back")
        .on(format_args!("fid={fid}"))
        .because("the mount's process died before written data was on the OSTs")
}
