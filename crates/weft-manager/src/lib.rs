//! Keeps the cluster map, and the agent by which servers take part in it.
//!
//! **Purpose.** One book per cluster: which nodes and targets there are and in which state, pools,
//! who owns which FIDs, which clients are mounted. Servers report by heartbeat and get the map back.
//!
//! **Callers.** The `weft` binary and the simulation put a [`Manager`] into the registry of one
//! process, and a [`NodeAgent`] into every process that serves targets.
//!
//! **Invariants.**
//! - A map that has been shown to anybody is on stable storage, and so are client identities and
//!   FID sequences that have been given out: neither comes twice, whatever crashes.
//! - The epoch grows by one with each change of nodes, addresses, targets, states, pools or
//!   sequences, and never for figures of space.
//! - A target belongs to one node at a time; another may take it over only when the first has been
//!   silent for the node timeout or has said that it stops.
//! - Decisions are pure functions ([`decide`]); what they need of time is passed in.
//!
//! **Absent by design.** Election: alone, the book is the embedded store. Sessions, locks and
//! leases: metadata servers have them. Taking part in file operations: the cluster works on while
//! the manager is away, only joining and changing waits.
//!
//! **Start here.** [`Manager`], then [`decide`], then [`agent`].

pub mod agent;
mod book;
pub mod decide;
mod manager;
mod ops;
mod worker;

pub use agent::{NodeAgent, Served};
pub use manager::{Manager, Settings};
pub use worker::Worker;
