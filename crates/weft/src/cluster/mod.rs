//! The way from a command to its cluster.

mod admin;
mod device;
pub mod figures;
mod find;

pub use admin::Admin;
pub use device::Device;
pub use find::{ClusterArgs, Contact};
