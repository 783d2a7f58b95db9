//! Benchmarks: the tools of the field, on any directory and on the client library.
//!
//! **Purpose.** To measure storage as its buyers and builders do: [`ior`], [`mdtest`], [`iozone`] and
//! what is made of them, with the options, phases, units and tables of the tools of these names, by
//! ranks that are threads, processes, or on other machines. And to compare places with each other, in
//! the same minute on the same machine ([`contest`]).
//!
//! **Callers.** The command `weft bench`; the binary `weft-load`, run by `scripts/bench`.
//!
//! **Invariants.** All ranks begin a phase together; a rate is all that was done over the time from the
//! common start to the last end. Every figure comes with the conditions it was measured under
//! ([`record::Record`]). When a rank fails, all stop, and what they have made is removed.
//!
//! **Absent by design.** Judging: it prints figures. Starting clusters: callers do.
//!
//! **Start here.** [`record::Record`] is what comes of a run, [`driver::measure`] how one goes,
//! [`ranks`] who does the work, [`ior::rank`] what one of them does. For comparisons:
//! [`workload::Phase`], [`target::Target`], [`team::Team`] and [`crew::Crew`], [`report::Report`].

pub mod api;
mod caches;
pub mod contest;
pub mod crew;
pub mod driver;
pub mod io500;
pub mod ior;
pub mod iozone;
pub mod mdtest;
pub mod options;
pub mod ranks;
pub mod real;
pub mod record;
pub mod report;
pub mod survey;
pub mod target;
pub mod team;
pub mod text;
pub mod trees;
pub mod usage;
pub mod workload;
