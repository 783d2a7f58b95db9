//! Open files of all sessions, in memory. Clients reclaim theirs after a restart.

use std::collections::HashMap;
use weft_model::{ClientId, Fid};

/// Open flags, as they travel in `Open.flags`.
pub mod flags {
    /// Reads are allowed.
    pub const READ: u32 = 1;
    /// Writes are allowed.
    pub const WRITE: u32 = 2;
    /// Writes go to the end.
    pub const APPEND: u32 = 4;
    /// Cut to nothing on opening.
    pub const TRUNCATE: u32 = 8;
    /// Opened to be executed.
    pub const EXEC: u32 = 16;
    /// A directory.
    pub const DIRECTORY: u32 = 32;
}

/// One open file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenFile {
    /// The file.
    pub fid: Fid,
    /// How it was opened.
    pub flags: u32,
}

/// Open files by session and handle.
#[derive(Debug, Default)]
pub struct OpenTable {
    handles: HashMap<ClientId, HashMap<u64, OpenFile>>,
    counts: HashMap<Fid, usize>,
    by_client: HashMap<(ClientId, Fid), Counts>,
}

/// Opens of a file by one session.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    all: usize,
    writing: usize,
}

impl OpenTable {
    /// Notes an open. Repeating it changes nothing.
    pub fn open(&mut self, client: ClientId, handle: u64, file: OpenFile) {
        let former = self.handles.entry(client).or_default().insert(handle, file);
        if let Some(former) = former {
            self.uncount(client, former);
        }
        *self.counts.entry(file.fid).or_insert(0) += 1;
        let counts = self.by_client.entry((client, file.fid)).or_default();
        counts.all += 1;
        counts.writing += usize::from(file.flags & flags::WRITE != 0);
    }

    /// Forgets an open; `None` when it is not known (any more).
    pub fn close(&mut self, client: ClientId, handle: u64) -> Option<OpenFile> {
        let of_client = self.handles.get_mut(&client)?;
        let file = of_client.remove(&handle)?;
        if of_client.is_empty() {
            self.handles.remove(&client);
        }
        self.uncount(client, file);
        Some(file)
    }

    fn uncount(&mut self, client: ClientId, file: OpenFile) {
        if let Some(count) = self.counts.get_mut(&file.fid) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&file.fid);
            }
        }
        if let Some(counts) = self.by_client.get_mut(&(client, file.fid)) {
            counts.all -= 1;
            counts.writing -= usize::from(file.flags & flags::WRITE != 0);
            if counts.all == 0 {
                self.by_client.remove(&(client, file.fid));
            }
        }
    }

    /// An open file of a session.
    pub fn get(&self, client: ClientId, handle: u64) -> Option<OpenFile> {
        self.handles.get(&client)?.get(&handle).copied()
    }

    /// Whether anybody has the file open.
    pub fn is_open(&self, fid: Fid) -> bool {
        self.counts.contains_key(&fid)
    }

    /// Whether the session still has the file open for writing.
    pub fn writes(&self, client: ClientId, fid: Fid) -> bool {
        self.of(client, fid).writing > 0
    }

    /// Whether the session has the file open, and nobody else.
    pub fn has_alone(&self, client: ClientId, fid: Fid) -> bool {
        let own = self.of(client, fid).all;
        own > 0 && self.counts.get(&fid) == Some(&own)
    }

    /// Whether the session has the file open.
    pub fn has(&self, client: ClientId, fid: Fid) -> bool {
        self.of(client, fid).all > 0
    }

    fn of(&self, client: ClientId, fid: Fid) -> Counts {
        self.by_client.get(&(client, fid)).copied().unwrap_or_default()
    }

    /// Handles of a session, in ascending order.
    pub fn of_client(&self, client: ClientId) -> Vec<u64> {
        let of_client = self.handles.get(&client);
        let mut handles: Vec<u64> = of_client.into_iter().flat_map(|h| h.keys().copied()).collect();
        handles.sort_unstable();
        handles
    }

    /// Number of open files.
    pub fn len(&self) -> usize {
        self.handles.values().map(HashMap::len).sum()
    }

    /// Whether nothing is open.
    pub fn is_empty(&self) -> bool {
        self.handles.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_opens_and_writers() {
        let (fid, client) = (Fid::ROOT, ClientId(1));
        let mut table = OpenTable::default();
        let writing = OpenFile { fid, flags: flags::WRITE };
        table.open(client, 1, writing);
        table.open(client, 1, writing);
        table.open(client, 2, OpenFile { fid, flags: flags::READ });
        assert_eq!((table.len(), table.writes(client, fid)), (2, true));
        assert!(table.has_alone(client, fid));
        table.open(ClientId(2), 1, OpenFile { fid, flags: flags::READ });
        assert!(!table.has_alone(client, fid) && !table.has_alone(ClientId(3), fid));
        table.close(ClientId(2), 1);
        assert!(table.has_alone(client, fid) && !table.has(ClientId(2), fid));
        assert_eq!(table.close(client, 1), Some(writing));
        assert!(table.is_open(fid) && !table.writes(client, fid));
        assert_eq!(table.close(client, 1), None);
        table.close(client, 2);
        assert!(table.is_empty() && !table.is_open(fid));
    }
}
