//! Names and attributes: one module per operation or group of like operations.

pub mod attr;
pub(crate) mod deferred;
pub mod dir;
pub mod entry;
pub(crate) mod kept;
pub mod layout;
pub mod make;
pub mod open;
pub mod remove;
pub mod statfs;
pub mod walk;
pub mod xattr;
