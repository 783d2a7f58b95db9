//! Logging of errors that no application has caused.

use parking_lot::Mutex;
use std::time::{Duration, Instant};
use weft_model::{ErrorKind, Fid, FsError};

/// Shortest time between two lines: a lost server fails every request, and one line tells it all.
const PAUSE: Duration = Duration::from_secs(1);

/// Writes unexpected errors to the log, within bounds.
#[derive(Default)]
pub(super) struct Complaints(Mutex<Last>);

#[derive(Default)]
struct Last {
    at: Option<Instant>,
    suppressed: u64,
}

impl Complaints {
    /// Logs the error of an operation on an inode if it is the system's fault.
    pub(super) fn note(&self, op: &'static str, fid: Fid, error: &FsError) {
        if !is_unexpected(error.kind) {
            tracing::trace!(op, %fid, %error, "refused");
            return;
        }
        let mut last = self.0.lock();
        if last.at.is_some_and(|at| at.elapsed() < PAUSE) {
            last.suppressed += 1;
            return;
        }
        let suppressed = last.suppressed;
        *last = Last { at: Some(Instant::now()), suppressed: 0 };
        tracing::warn!(op, %fid, %error, suppressed, "operation failed");
    }
}

/// Whether an error tells of a fault, not of what the caller may not or cannot do. Kinds from 200 on
/// are those that have no error number of their own.
fn is_unexpected(kind: ErrorKind) -> bool {
    kind as u16 >= 200 || matches!(kind, ErrorKind::Io | ErrorKind::NoMemory | ErrorKind::TimedOut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_faults_are_unexpected() {
        assert!(is_unexpected(ErrorKind::Checksum) && is_unexpected(ErrorKind::Disconnected));
        assert!(!is_unexpected(ErrorKind::NotFound) && !is_unexpected(ErrorKind::NoSpace));
    }

    #[test]
    fn a_flood_is_counted() {
        let complaints = Complaints::default();
        (0..5).for_each(|_| complaints.note("read", Fid::ROOT, &ErrorKind::Checksum.into()));
        assert_eq!(complaints.0.lock().suppressed, 4);
    }
}
