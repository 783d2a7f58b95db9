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
    write_counts: HashMap<(ClientId, Fid), usize>,
}

fn decrement<K: Eq + std::hash::Hash>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

impl OpenTable {
    /// Notes an open. Repeating it changes nothing.
    pub fn open(&mut self, client: ClientId, handle: u64, file: OpenFile) {
        let former = self.handles.entry(client).or_default().insert(handle, file);
        if let Some(former) = former {
            self.uncount(client, former);
        }
        *self.counts.entry(file.fid).or_insert(0) += 1;
        if file.flags & flags::WRITE != 0 {
            *self.write_counts.entry((client, file.fid)).or_insert(0) += 1;
        }
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
        decrement(&mut self.counts, &file.fid);
        if file.flags & flags::WRITE != 0 {
            decrement(&mut self.write_counts, &(client, file.fid));
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
        self.write_counts.contains_key(&(client, fid))
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
        assert_eq!(table.close(client, 1), Some(writing));
        assert!(table.is_open(fid) && !table.writes(client, fid));
        assert_eq!(table.close(client, 1), None);
        table.close(client, 2);
        assert!(table.is_empty() && !table.is_open(fid));
    }
}
