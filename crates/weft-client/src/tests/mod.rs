//! Tests of the library against small servers in memory. Against the real ones:
//! `crates/weft/tests/client_library.rs`.

mod ahead;
mod data;
mod fake;
mod locks;
mod names;
mod sessions;
