//! The whole cluster in one process from one seed, with faults, against a reference file system.
//!
//! **Purpose.** Finds what breaks when messages get lost, servers are killed in the middle of anything,
//! clients die, disks fill up and the power fails; and finds it again from the number of the seed.
//!
//! **Callers.** The `weft-sim` program for many seeds, the tests of this crate for some.
//!
//! **Invariants.**
//! - One seed, one history: the servers and clients are the real ones, but time and chance
//!   ([`weft_model::Env`]), messages ([`weft_rpc::Transport`]) and disks ([`weft_store::Kv`],
//!   [`weft_store::ObjectStore`]) are the [`World`]'s, and only one thread runs at a time.
//! - Every operation that returns agrees with a reference file system ([`reference`]).
//! - When all is quiet again, nothing is left over ([`check`]).
//!
//! **Absent by design.** Several threads in one client; sockets (`weft-rpc` has tests of its own);
//! the stores on disk (`weft-store` has). Two operations on one file at the same instant, except in the
//! contests ([`contest`]): the reference would have to guess who was first.
//!
//! **Start here.** [`run`](run::run), then [`world`] for how time passes, then [`wire`] for what can
//! happen to a message.

pub mod actor;
pub mod check;
pub mod cluster;
pub mod contest;
pub mod disk;
pub mod kept;
pub mod plan;
pub mod power;
pub mod process;
pub mod reference;
pub mod run;
pub mod wire;
pub mod world;

pub use plan::Plan;
pub use run::{Outcome, run};
pub use world::World;
