//! What a mount is told.

use std::time::Duration;
use weft_rpc::ClusterKey;

/// How long an operation waits for a server that does not answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Policy {
    /// For as long as it takes; a signal ends the wait.
    #[default]
    Hard,
    /// Up to this long, then `TimedOut`.
    Soft(Duration),
}

/// What a mount is told.
#[derive(Clone, Debug, Default)]
pub struct ClientConfig {
    /// Addresses of the managers, `host:port` or `unix:/path`; empty when this process serves the
    /// manager's target itself.
    pub managers: Vec<String>,
    /// Knowledge of the cluster's key; not needed over a Unix socket between processes of one user.
    pub key: Option<ClusterKey>,
    /// Name of this host, for the list of clients.
    pub host: String,
    /// Where the file system is mounted, for the list of clients.
    pub mountpoint: String,
    /// How long to wait for servers.
    pub policy: Policy,
    /// Name of the volume; empty for the first.
    pub volume: String,
    /// The client takes grants: whoever mounts calls [`Client::start_caching`] and keeps what it is told.
    ///
    /// [`Client::start_caching`]: crate::Client::start_caching
    pub caches: bool,
    /// The client takes write delegations: small files go to the MDT then. Only with `caches`.
    pub delegations: bool,
    /// It writes behind what it writes to delegated files. Only with `delegations`.
    pub writes_behind: bool,
    /// Bytes that may wait to be written behind in all files. The OSTs must have room for some times
    /// as much, or nothing is written behind.
    pub max_pending: usize,
    /// Bytes that may be fetched ahead of readers, in all files; 0 for none. Only with `caches`.
    pub max_ahead: usize,
    /// Bytes fetched ahead at a time; 0 for 1 MiB.
    pub ahead_chunk: u64,
    /// Whoever waits for a lock asks for it again and again, instead of having the MDT tell when it is free.
    /// For where time does not pass by itself.
    pub polls_locks: bool,
    /// Path within the volume that becomes the root; empty for all of it.
    pub subtree: Vec<u8>,
}
