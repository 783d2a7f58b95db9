//! The way from a command to its cluster.

mod admin;
pub mod figures;
mod find;

pub use admin::Admin;
pub use find::{ClusterArgs, Contact};
pub use weft_client::Device;
