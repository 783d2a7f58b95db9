//! The store of the simulation and of tests: a map that knows what a power cut would take.

use super::{Batch, Kv, KvStats, Op, VerifyReport, Visit};
use parking_lot::{Mutex, RwLock};
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::path::Path;
use weft_model::{ErrorKind, FsError, Result};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// A [`Kv`] in memory.
///
/// [`MemKv::crash_power`] forgets some of what was not synced, always a suffix of the batches, as
/// a log does. `checkpoint` is not supported.
#[derive(Default)]
pub struct MemKv {
    state: RwLock<State>,
    /// What the next writes and syncs fail with.
    fault: Mutex<Option<ErrorKind>>,
}

#[derive(Default)]
struct State {
    map: Map,
    /// The map as it was at the last sync.
    durable: Map,
    /// Batches written since.
    unsynced: Vec<Batch>,
    lsn: u64,
    synced: u64,
    poisoned: bool,
}

impl MemKv {
    /// An empty store.
    pub fn new() -> MemKv {
        MemKv::default()
    }

    /// What `kill -9` and a new start leave: all that was written.
    pub fn crash_process(&self) {
        self.state.write().poisoned = false;
    }

    /// What a power cut and a new start leave: all that was synced, and of the batches written
    /// since the first `keep(n)`, where `n` is their number.
    pub fn crash_power(&self, keep: impl FnOnce(usize) -> usize) {
        let mut state = self.state.write();
        let batches = std::mem::take(&mut state.unsynced);
        let kept = keep(batches.len()).min(batches.len());
        state.map = std::mem::take(&mut state.durable);
        for batch in &batches[..kept] {
            apply(&mut state.map, batch);
        }
        state.durable = state.map.clone();
        state.lsn = state.synced + kept as u64;
        state.synced = state.lsn;
        state.poisoned = false;
    }

    /// Makes writes and syncs fail with `fault` until told otherwise; all but `NoSpace` poison.
    pub fn set_fault(&self, fault: Option<ErrorKind>) {
        *self.fault.lock() = fault;
    }

    fn admit(&self, state: &mut State, op: &'static str) -> Result<()> {
        if state.poisoned {
            return Err(FsError::new(ErrorKind::Poisoned, op));
        }
        match *self.fault.lock() {
            None => Ok(()),
            Some(kind) => {
                state.poisoned = kind != ErrorKind::NoSpace;
                Err(FsError::new(kind, op).because("injected fault"))
            }
        }
    }
}

fn apply(map: &mut Map, batch: &Batch) {
    for op in batch.iter() {
        match op {
            Op::Put { key, value } => {
                map.insert(key.to_vec(), value.to_vec());
            }
            Op::Delete { key } => {
                map.remove(key);
            }
            Op::DeleteRange { from, until } if from < until => {
                let range = (Bound::Included(from), Bound::Excluded(until));
                let doomed: Vec<_> =
                    map.range::<[u8], _>(range).map(|(key, _)| key.clone()).collect();
                doomed.iter().for_each(|key| drop(map.remove(key)));
            }
            Op::DeleteRange { .. } => {}
        }
    }
}

impl Kv for MemKv {
    fn get_with(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        match self.state.read_recursive().map.get(key) {
            Some(value) => {
                read(value);
                Ok(true)
            }
            None => Ok(false),
        }
    }

    fn scan(&self, from: &[u8], until: &[u8], visit: &mut Visit<'_>) -> Result<()> {
        if !until.is_empty() && until <= from {
            return Ok(());
        }
        let end = if until.is_empty() { Bound::Unbounded } else { Bound::Excluded(until) };
        let state = self.state.read_recursive();
        for (key, value) in state.map.range::<[u8], _>((Bound::Included(from), end)) {
            if visit(key, value).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn write(&self, batch: &Batch) -> Result<u64> {
        let mut state = self.state.write();
        self.admit(&mut state, "write batch")?;
        if !batch.is_empty() {
            apply(&mut state.map, batch);
            state.unsynced.push(batch.clone());
            state.lsn += 1;
        }
        Ok(state.lsn)
    }

    fn sync(&self) -> Result<u64> {
        let mut state = self.state.write();
        self.admit(&mut state, "sync log")?;
        for batch in std::mem::take(&mut state.unsynced) {
            apply(&mut state.durable, &batch);
        }
        state.synced = state.lsn;
        Ok(state.synced)
    }

    fn checkpoint(&self, _dir: &Path) -> Result<()> {
        Err(FsError::new(ErrorKind::NotSupported, "checkpoint").because("store is in memory"))
    }

    fn verify(
        &self,
        from: &[u8],
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<VerifyReport> {
        let state = self.state.read();
        let mut report = VerifyReport::default();
        for (key, value) in state.map.range(from.to_vec()..) {
            report.keys += 1;
            report.bytes += (key.len() + value.len()) as u64;
            if progress(report.bytes).is_break() {
                report.next = Some([&key[..], &[0]].concat());
                break;
            }
        }
        Ok(report)
    }

    fn stats(&self) -> KvStats {
        let state = self.state.read();
        KvStats {
            keys: state.map.len() as u64,
            written_lsn: state.lsn,
            synced_lsn: state.synced,
            poisoned: state.poisoned,
            ..KvStats::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(kv: &MemKv, key: &[u8]) -> u64 {
        kv.write(Batch::new().put(key, b"x")).unwrap()
    }

    #[test]
    fn a_power_cut_takes_a_suffix_of_the_unsynced() {
        let kv = MemKv::new();
        put(&kv, b"a");
        let synced = kv.sync().unwrap();
        assert!(put(&kv, b"b") > synced && put(&kv, b"c") > synced);
        kv.crash_process();
        assert!(kv.get(b"c").unwrap().is_some());
        kv.crash_power(|unsynced| unsynced - 1);
        assert!(kv.get(b"a").unwrap().is_some() && kv.get(b"b").unwrap().is_some());
        assert!(kv.get(b"c").unwrap().is_none());
        kv.crash_power(|unsynced| unsynced);
        assert!(kv.get(b"b").unwrap().is_some());
    }

    #[test]
    fn faults_poison_but_a_full_disk_does_not() {
        let kv = MemKv::new();
        kv.set_fault(Some(ErrorKind::NoSpace));
        assert_eq!(kv.write(Batch::new().delete(b"a")).unwrap_err().kind, ErrorKind::NoSpace);
        kv.set_fault(Some(ErrorKind::Io));
        assert_eq!(kv.sync().unwrap_err().kind, ErrorKind::Io);
        kv.set_fault(None);
        assert_eq!(kv.sync().unwrap_err().kind, ErrorKind::Poisoned);
        kv.crash_process();
        assert!(kv.sync().is_ok());
    }
}
