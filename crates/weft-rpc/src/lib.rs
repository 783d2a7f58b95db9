//! Frames, the list of messages, transports, and finding a target with the current map.
//!
//! **Purpose.** One way to ask a target for something, whether it is served by this process (a
//! function call), by another (a frame over TCP or a Unix socket), or by the simulation.
//!
//! **Callers.** Clients and servers; nobody else speaks to a socket.
//!
//! **Invariants.** Bulk data never passes through a codec. A channel carries one request at a time;
//! when a channel is opened anew, no request of its former connection is still being carried out
//! ([`server`]), so a resent write can never be overtaken by its own ghost. Every wait has a deadline.
//! Decoders bound what they allocate and never panic.
//!
//! **Absent by design.** What requests mean (the servers know), retry policy beyond finding the
//! target again (the client decides).
//!
//! **Start here.** [`message`] for the list of requests, [`service`] and [`transport`] for the seams,
//! [`router`] for the way there.

pub mod auth;
pub mod buffer;
pub mod call;
pub mod channel;
pub mod choices;
pub mod convert;
pub mod env;
pub mod frame;
pub mod message;
pub mod metrics;
pub mod pool;
pub mod registry;
pub mod router;
pub mod server;
pub mod service;
pub mod slots;
pub mod sockets;
pub mod stream;
pub mod transport;
pub mod waits;

pub use auth::{ClusterKey, Role};
pub use call::{Bulk, Call, CallInfo};
pub use choices::{Choice, Choices};
pub use env::SystemEnv;
pub use message::{Message, Reply, Request};
pub use metrics::Metrics;
pub use router::Router;
pub use service::Service;
pub use transport::{Transport, Wait};

/// The generated message types. The `.proto` files beside this crate document them.
#[allow(missing_docs, clippy::all)]
pub mod pb {
    include!(concat!(env!("OUT_DIR"), "/weft.rs"));
    /// Requests to the manager.
    pub mod manager {
        include!(concat!(env!("OUT_DIR"), "/weft.manager.rs"));
    }
    /// Requests to metadata targets.
    pub mod mds {
        include!(concat!(env!("OUT_DIR"), "/weft.mds.rs"));
    }
    /// Requests to object storage targets.
    pub mod oss {
        include!(concat!(env!("OUT_DIR"), "/weft.oss.rs"));
    }
}
