//! The `weft` binary: servers, mounts, development clusters, and every command.
//!
//! **Purpose.** Puts the roles together: opens targets, wires registry, router and servers, mounts;
//! and the command line over it.
//!
//! **Callers.** People, scripts, systemd, mount(8) (as `mount.weft`).
//!
//! **Invariants.** Results go to standard output, everything else to standard error. Exit codes: 0
//! done, 1 failed, 2 usage, 3 partly done, 4 unhealthy. A command ends only processes and mounts
//! that it can tell for its own.
//!
//! **Absent by design.** What targets and clients do: that is in their crates.
//!
//! **Start here.** `cli.rs` for the commands, `node/mod.rs` for a server process, `commands/dev/`
//! for clusters in one directory.

mod cli;
mod cluster;
mod commands;
mod files;
mod keys;
mod logging;
mod mounts;
mod node;
mod outcome;
mod output;
mod process;
mod signals;
mod units;
mod version;
mod xattr;

use std::process::ExitCode;

fn main() -> ExitCode {
    outcome::finish(cli::run())
}
