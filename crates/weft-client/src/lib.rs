//! The file system as a library: what every door (FUSE, preload, gateways, tools) stands on.
//!
//! **Purpose.** Names, files, locks and attributes with POSIX meaning, over the metadata and object
//! storage targets of a cluster: finds the MDT of an inode, splits transfers over the objects of a
//! file, keeps the client's sessions alive and brings them back after a server's restart.
//!
//! **Callers.** `weft-fuse` and other doors, the evaluation programs, the `weft` command.
//!
//! **Invariants.** An operation runs to its end on the thread of its caller; threads of the client's own
//! keep its sessions alive, hear recalls, and write and read what nobody waits for ([`jobs`]). Data whose
//! checksum does not match is never returned. What one client has written (the call has returned), a later
//! read on any client sees. Nothing assumes a single MDT.
//!
//! **Absent by design.** Caching of names, attributes or data that was read (doors do that, under the grants
//! that are passed on to them; here is only what readers will want next: [`ahead`]), permission checks (the
//! MDS makes them), following of symbolic links (doors do that).
//!
//! **Start here.** [`client`] for the mount, [`session`] for the way to an MDT, [`io`] for the way of
//! data, [`namespace`] for names.

mod ahead;
mod behind;
pub mod client;
pub mod config;
pub mod ctx;
pub mod device;
pub mod flags;
mod grants;
pub mod inode;
pub mod io;
mod jobs;
pub mod journal;
mod keepalive;
mod lease;
pub mod lock;
pub mod metrics;
pub mod namespace;
pub mod recalls;
mod resume;
mod room;
pub mod session;
mod spread;
mod unanswered;
mod wait;

pub use ahead::Advice;
pub use client::Client;
pub use config::{ClientConfig, Policy};
pub use ctx::Ctx;
pub use device::Device;
pub use flags::OpenFlags;
pub use grants::Grant;
pub use inode::{OpenFile, OpenInode};
pub use io::allocate::AllocateMode;
pub use io::seek::Whence;
pub use journal::{Journal, Legacy, Reopened};
pub use keepalive::Rounds;
pub use lock::{LockKind, LockRange};
pub use metrics::{Metrics, Op};
pub use namespace::dir::{DirEntry, DirHandle};
pub use namespace::entry::{Found, Lookup};
pub use namespace::layout::LayoutOf;
pub use namespace::open::{CreateArgs, Created};
pub use namespace::statfs::FsStat;
pub use recalls::{Keeping, Recalled};
pub use weft_rpc::{Choice, Choices};

#[cfg(test)]
mod tests;
