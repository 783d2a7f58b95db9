//! Our own binding of the FUSE kernel protocol; start with [`FileSystem`] and [`Session::mount`].
//!
//! From the outside in: [`Session`] agrees with the kernel on terms and owns the workers; a worker
//! reads a request from the [`Device`], or gets it through io_uring (`rings`), the dispatcher takes it
//! apart, calls the [`FileSystem`] and packs what it returns into the reply.

pub mod abi;
mod buffer;
mod crew;
mod deferred;
mod device;
mod directory;
mod dispatch;
mod encode;
mod errno;
mod fs;
mod interrupt;
mod letterbox;
pub mod message;
mod mount;
mod negotiate;
mod notify;
mod request;
mod rings;
mod session;
mod transport;
mod types;
mod watch;
mod workers;

pub use deferred::Deferred;
pub use device::Device;
pub use directory::{Listing, ListingPlus};
pub use errno::{Errno, Result};
pub use fs::FileSystem;
pub use mount::{Mount, MountOptions};
pub use negotiate::{Features, Offer, Terms};
pub use notify::Notifier;
pub use request::Request;
pub use session::{Config, Session};
pub use transport::Transport;
pub use types::*;
pub use workers::Threads;
