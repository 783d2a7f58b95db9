//! The operations, on places and open files: one file per kind.

pub mod attr;
pub mod cwd;
pub mod data;
pub mod dir;
pub mod fill;
pub mod lock;
pub mod map;
pub mod names;
pub mod open;
pub mod program;
pub mod xattr;
