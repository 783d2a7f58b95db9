//! What the library has done and how long it took.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use weft_model::{Env, Result};

macro_rules! operations {
    ($($name:ident = $text:literal,)*) => {
        /// An operation of the library.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[allow(missing_docs)]
        pub enum Op { $($name,)* }

        impl Op {
            /// Every operation.
            pub const ALL: &'static [Op] = &[$(Op::$name,)*];

            /// Its name, as metrics show it.
            pub const fn name(self) -> &'static str {
                match self { $(Op::$name => $text,)* }
            }
        }

        const COUNT: usize = [$(Op::$name,)*].len();
    };
}

operations! {
    Lookup = "lookup",
    GetAttr = "getattr",
    SetAttr = "setattr",
    Access = "access",
    Readlink = "readlink",
    Mknod = "mknod",
    Mkdir = "mkdir",
    Symlink = "symlink",
    Link = "link",
    Unlink = "unlink",
    Rmdir = "rmdir",
    Rename = "rename",
    Create = "create",
    Open = "open",
    Close = "close",
    Readdir = "readdir",
    Xattr = "xattr",
    Layout = "layout",
    Statfs = "statfs",
    Read = "read",
    Write = "write",
    Fsync = "fsync",
    Allocate = "fallocate",
    Seek = "seek",
    Lock = "lock",
    Glimpse = "glimpse",
}

/// Counters of one operation.
#[derive(Debug, Default)]
struct Counters {
    calls: AtomicU64,
    errors: AtomicU64,
    nanos: AtomicU64,
}

/// What one operation came to so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpTotal {
    /// Which.
    pub op: Op,
    /// Times called.
    pub calls: u64,
    /// Times it failed.
    pub errors: u64,
    /// Time spent in it, all threads together.
    pub time: Duration,
}

/// Counters of a mount. They only grow.
#[derive(Debug)]
pub struct Metrics {
    operations: [Counters; COUNT],
    read_bytes: AtomicU64,
    ahead_bytes: AtomicU64,
    written_bytes: AtomicU64,
    checksum_errors: AtomicU64,
    sessions_reopened: AtomicU64,
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics {
            operations: std::array::from_fn(|_| Counters::default()),
            read_bytes: AtomicU64::new(0),
            ahead_bytes: AtomicU64::new(0),
            written_bytes: AtomicU64::new(0),
            checksum_errors: AtomicU64::new(0),
            sessions_reopened: AtomicU64::new(0),
        }
    }
}

impl Metrics {
    /// Every operation's totals.
    pub fn totals(&self) -> impl Iterator<Item = OpTotal> + '_ {
        Op::ALL.iter().zip(&self.operations).map(|(&op, counters)| OpTotal {
            op,
            calls: counters.calls.load(Ordering::Relaxed),
            errors: counters.errors.load(Ordering::Relaxed),
            time: Duration::from_nanos(counters.nanos.load(Ordering::Relaxed)),
        })
    }

    /// Bytes handed to readers.
    pub fn read_bytes(&self) -> u64 {
        self.read_bytes.load(Ordering::Relaxed)
    }

    /// Bytes of them that had been read ahead.
    pub fn ahead_bytes(&self) -> u64 {
        self.ahead_bytes.load(Ordering::Relaxed)
    }

    /// Bytes taken from writers.
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes.load(Ordering::Relaxed)
    }

    /// Answers whose data did not match its checksum, including those that a second try mended.
    pub fn checksum_errors(&self) -> u64 {
        self.checksum_errors.load(Ordering::Relaxed)
    }

    /// Times a session had to be opened again.
    pub fn sessions_reopened(&self) -> u64 {
        self.sessions_reopened.load(Ordering::Relaxed)
    }

    pub(crate) fn time<T>(
        &self,
        env: &dyn Env,
        op: Op,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let start = env.monotonic();
        let result = work();
        let took = env.monotonic().saturating_sub(start);
        let counters = &self.operations[op as usize];
        counters.calls.fetch_add(1, Ordering::Relaxed);
        counters.nanos.fetch_add(took.as_nanos() as u64, Ordering::Relaxed);
        if result.is_err() {
            counters.errors.fetch_add(1, Ordering::Relaxed);
        }
        result
    }

    pub(crate) fn count_read(&self, bytes: usize) {
        self.read_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn count_ahead(&self, bytes: usize) {
        self.ahead_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn count_written(&self, bytes: usize) {
        self.written_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn count_checksum_error(&self) {
        self.checksum_errors.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_reopened(&self) {
        self.sessions_reopened.fetch_add(1, Ordering::Relaxed);
    }
}
