//! The operator's side of a server process: health and figures over HTTP.
//!
//! **Purpose.** `/metrics` for Prometheus, `/healthz` for whatever watches over the process.
//!
//! **Callers.** The `weft` binary, for every process that serves targets.
//!
//! **Invariants.** Reads only; nothing can be changed here, so it needs no key. It has a thread of
//! its own: servers do not wait for it.
//!
//! **Absent by design.** Commands, which travel over `weft-rpc` with proof of the cluster's key.
//!
//! **Start here.** [`Health`], then [`http::HttpServer`].

pub mod health;
pub mod http;

pub use health::Health;
pub use http::HttpServer;
