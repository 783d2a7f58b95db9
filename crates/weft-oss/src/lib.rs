//! Serves object storage targets: file data with its checksums.
//!
//! **Purpose.** Between requests and a [`weft_store::ObjectStore`]: bounds what is under way, says
//! how far checksums are to be trusted, names target and object in every error.
//!
//! **Callers.** The `weft` binary and the simulation put an [`Oss`] for each OST into a
//! [`weft_rpc::registry::Registry`]; clients and metadata servers ask it from there.
//!
//! **Invariants.**
//! - What is written over a connection is checked before it is stored; within one process the
//!   writer's checksums are taken as they are. What is read carries its stored checksums and is
//!   checked by whoever asked.
//! - An answered write survives `kill -9`; one with `sync`, or followed by a sync, a power cut.
//! - A server holds nothing that a restart would lose: every request says it all, and may be
//!   carried out twice.
//! - No request waits without a deadline.
//!
//! **Absent by design.** Files, sizes, layouts, leases: clients and metadata servers know them.
//! Who may truncate and destroy: the registry lets only servers ask for it. Housekeeping: the store
//! does its own.
//!
//! **Start here.** [`Oss`], then `ops/write.rs`.

mod admission;
mod damage;
mod ops;
mod oss;
mod space;

pub use oss::{Oss, Settings};
