//! Benchmarks: the same small workloads on any directory, by several processes at once.
//!
//! **Purpose.** To compare a mount with the local file system under it and with a mount that stores
//! nothing, in the same minute on the same machine.
//!
//! **Callers.** The binary `weft-load`, run by `scripts/bench`.
//!
//! **Invariants.** All processes begin a phase together; the rate of a phase is all operations over the
//! time from the common start to the last end. Every phase checks its own results.
//!
//! **Absent by design.** Judging: it prints figures.
//!
//! **Start here.** [`phase::Phase`].

pub mod phase;
pub mod team;
