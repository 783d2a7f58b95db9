//! The vocabulary of the file system and every decision that needs no I/O.
//!
//! **Purpose.** Names, numbers and arithmetic that clients and servers must agree on: identifiers,
//! the cluster map, layouts and where a byte of a file lives, permissions, checksums, errors, units.
//!
//! **Callers.** Every other crate.
//!
//! **Invariants.** Pure: no threads, no files, no sockets, no clock, no randomness. The only thing
//! that touches the world is the [`env::Env`] trait, which is defined here and implemented elsewhere.
//!
//! **Absent by design.** Encodings (`weft-rpc` has the messages), storage, caches.
//!
//! **Start here.** [`id`], then [`layout`], then [`error`].

pub mod acl;
pub mod attr;
pub mod checksum;
pub mod cred;
pub mod env;
pub mod error;
pub mod id;
pub mod layout;
pub mod map;
pub mod name;
pub mod placement;
pub mod throttle;
pub mod units;

pub use attr::{Attr, DataVersion, FileType, SetAttr, SetTime, Timespec};
pub use cred::Credentials;
pub use env::Env;
pub use error::{ErrorKind, FsError, Result};
pub use id::{ClientId, Epoch, Fid, NodeId, ObjectId, TargetId, TargetKind, Xid};
pub use layout::Layout;
pub use map::ClusterMap;
