//! Benchmarks: the same workloads on any directory, by several processes or threads at once.
//!
//! **Purpose.** To compare a mount with the local file system under it and with a mount that stores
//! nothing, and the client library in one process with the same over a network, in the same minute on
//! the same machine.
//!
//! **Callers.** The binary `weft-load`, run by `scripts/bench`, and the command `weft bench`.
//!
//! **Invariants.** All members begin a phase together; the rate of a phase is all operations over the
//! time from the common start to the last end. Every phase checks its own results.
//!
//! **Absent by design.** Judging: it prints figures. Starting clusters: callers do.
//!
//! **Start here.** [`workload::Phase`] is what is done, [`target::Target`] where, [`team::Team`] and
//! [`crew::Crew`] by whom, [`contest::Contest`] how often, [`report::Report`] what came of it.

pub mod contest;
pub mod crew;
pub mod record;
pub mod report;
pub mod target;
pub mod team;
pub mod usage;
pub mod workload;
