//! Ranks: the members of a run, which do the same work together, as those of an MPI program do.
//!
//! Every rank has one [`link`](link::Link) to the [`hub`], which is a thread of the driver. All that
//! ranks ever say to each other is one thing, [`Comm::exchange`]: everybody gives something, everybody
//! gets what all gave. A barrier is an exchange of nothing. Threads, processes, other machines and
//! ranks started by `mpirun` differ only in who makes the link ([`launch`], [`serve`], [`mpi`]).
//!
//! When a rank fails or dies, the hub tells the others, who stop between two operations.

pub mod comm;
pub mod hub;
pub mod job;
pub mod launch;
pub mod link;
pub mod mpi;
pub mod serve;

pub use comm::Comm;
pub use job::{Doors, Job, Work};
pub use launch::{Launch, Members};
