//! Weft for programs that cannot have a mount: `LD_PRELOAD=libweft_preload.so`.
//!
//! **Purpose.** Stands before the functions of the C library that concern files. Paths below configured prefixes
//! go to a client of this process ([`weft_client`]); all else goes on to the C library as it came.
//!
//! **Callers.** Any dynamically linked program; `weft preload` sets the environment.
//!
//! **Invariants.** A Weft file has a descriptor of the kernel that can do nothing, so numbers are the kernel's
//! and what passes this library by fails with `EBADF` ([`fds`]). The library's own calls never come back into it
//! ([`guard`]). Panics do not cross into the program. Nothing is shown that another client has changed: what is kept,
//! is kept under grants ([`cache`], [`ahead`]). A child has a session of its own, and shares only offsets ([`slab`]).
//!
//! **Absent by design.** Shared writable mappings, executing what passes no function of the C library (system
//! calls by number, static programs). What does not work is told in `docs/semantics.md`.
//!
//! **Start here.** [`path`] for where a path leads, [`process`] for the state and what becomes of it at fork, exec
//! and exit, [`description`] for open files, `interpose` for the functions, [`ops`] for what they do.

// Functions of the C library cannot be defined or called otherwise.
#![allow(unsafe_code)]
// Without the functions of the C library, which a test must not replace, much is not used.
#![cfg_attr(test, allow(dead_code))]

mod ahead;
mod cache;
mod caller;
mod config;
mod description;
mod fds;
mod guard;
mod handover;
#[cfg(not(test))]
mod interpose;
mod live;
mod ops;
mod path;
mod process;
mod real;
mod slab;
mod streams;
mod world;
