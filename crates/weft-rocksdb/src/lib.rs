//! A narrow, safe binding of RocksDB's C interface: what a Weft store needs, nothing else.
//!
//! **Purpose.** The crate `rocksdb` always compiles RocksDB, ten minutes on two cores, and again
//! whenever cargo unifies some build dependency's features differently. This binding uses the part of
//! `rocksdb/c.h` that has not changed from 7.8 (Debian 12) to 11: by default it links the system's
//! library, with the feature `bundled` a current RocksDB built from source, which is about twice as
//! fast (Debian's is built with assertions).
//!
//! **Callers.** `weft-store`, behind its `Kv` seam. Names follow the crate `rocksdb`.
//!
//! **Invariants.** All `unsafe` of the binding is in this crate. Every pointer handed out by RocksDB
//! is owned by one value here and freed by its `Drop`; what RocksDB keeps a reference to (the cache,
//! the environment, bounds of iterators) lives at least as long as what uses it.
//!
//! **Absent by design.** Column families, transactions, merge operators, comparators.
//!
//! **Start here.** [`DB`].
#![allow(unsafe_code)]

mod db;
mod error;
mod ffi;
mod options;

#[cfg(feature = "bundled")]
use librocksdb_sys as _;

pub use db::{DB, DBPinnableSlice, DBRawIterator, ReadOptions, WriteBatch, WriteOptions};
pub use error::{Error, ErrorKind};
pub use options::{BlockBasedOptions, Cache, DBCompressionType, DBRecoveryMode, Env, Options};
