//! One file per command.

pub mod dev;
pub mod mount;
pub mod server;
pub mod umount;
