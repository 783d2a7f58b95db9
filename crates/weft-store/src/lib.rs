//! A formatted target on any local Linux file system. Knows no network.
//!
//! **Purpose.** A target is a directory: a [`superblock`] that says whose it is, an ordered
//! transactional key-value store ([`kv`]), and on an OST plain files with checksums ([`objects`]).
//! Only this crate touches the disks of targets.
//!
//! **Callers.** The servers open a [`Target`] and work through the two seams [`Kv`] and
//! [`ObjectStore`]; the simulation uses [`MemKv`] and [`MemObjects`] behind the same seams.
//!
//! **Invariants.**
//! - One process at a time has a target open.
//! - What is acknowledged survives `kill -9`; what is synced survives a power cut.
//! - Data whose checksum does not match is never returned as good, nor made good by a write to a
//!   part of it.
//! - After a failed sync or an I/O error on write the store refuses further writes
//!   ([`weft_model::ErrorKind::Poisoned`]) until it is opened again; a full disk does not do that.
//!
//! **Absent by design.** Files, names, sessions, versions: they are what the servers put in here.
//! Replication: a [`Batch`] has a stable byte form that a server can ship.
//!
//! **Start here.** [`Target`], then [`kv::Kv`], then [`objects::ObjectStore`];
//! `docs/design/0003-object-store.md` tells what a crash can leave behind and why that is safe.

pub mod kv;
pub mod objects;
pub mod superblock;
pub mod target;

pub mod space;

mod files;

pub use kv::{Batch, Kv, KvStats, MemKv, RocksKv};
pub use objects::{Check, FsObjects, MemObjects, ObjectStore};
pub use superblock::Superblock;
pub use target::{FormatParams, LastStop, OpenParams, Space, Target};
