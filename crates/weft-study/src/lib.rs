//! Evaluations: named studies that sweep parameters, keep every figure, and write a report.
//!
//! **Purpose.** To ask of Weft, or of a local directory, what five published evaluations asked of
//! parallel file systems, and to show the answers beside what those have printed.
//!
//! **Callers.** The command `weft eval`, which brings a [`engine::Testbed`]: clusters, mounts, tools.
//!
//! **Invariants.** Everything is in one JSON file, which is whole after every point; reports and
//! pictures are drawn from it alone. A study that was stopped goes on where it was. What was not run
//! stands in the report, with the reason.
//!
//! **Absent by design.** Starting clusters, running tools: the testbed does. Measuring: `weft-eval`
//! has the tools.
//!
//! **Start here.** [`studies`] says what is asked, [`engine::run`] goes through the points,
//! [`report::write`] tells what came of it.

pub mod chart;
pub mod compare;
pub mod engine;
pub mod plot;
pub mod point;
pub mod probe;
pub mod progress;
pub mod published;
pub mod report;
pub mod results;
pub mod studies;
