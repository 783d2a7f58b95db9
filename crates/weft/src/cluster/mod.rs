//! The way from a command to its cluster.

mod admin;
mod device;
mod find;

pub use admin::Admin;
pub use device::Device;
pub use find::{ClusterArgs, Contact};
