//! The way from a command to its cluster.

mod device;

pub use device::Device;
