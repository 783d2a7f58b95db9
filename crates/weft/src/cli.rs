//! The command line.

use crate::commands as c;
use crate::logging::{self, LogForm};
use crate::outcome::Outcome;
use crate::output::Form;
use crate::version::VERSION;
use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
use std::path::Path;

/// Name under which mount(8) calls its helper.
const MOUNT_HELPER: &str = "mount.weft";

/// Weft, a parallel file system.
#[derive(Parser)]
#[command(name = "weft", version = VERSION, propagate_version = true)]
#[command(after_help = "Exit codes: 0 done, 1 failed, 2 usage, 3 partly done, 4 unhealthy.")]
pub struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

/// Options of every command.
#[derive(Clone, Copy, Args)]
pub struct Global {
    /// Form of results.
    #[arg(long, global = true, value_enum, default_value_t, env = "WEFT_OUTPUT")]
    pub output: Form,
    /// Form of log lines; WEFT_LOG filters them (as `debug` or `weft_mds=trace`).
    #[arg(long, global = true, value_enum, default_value_t, env = "WEFT_LOG_FORM")]
    pub log: LogForm,
}

#[derive(Subcommand)]
enum Command {
    /// Run a whole cluster in one directory.
    #[command(subcommand)]
    Dev(c::dev::Command),
    /// Mount a file system.
    Mount(c::mount::Mount),
    /// Have the program on disk serve a mount.
    Remount(c::remount::Remount),
    /// Run a command that sees a file system without a mount.
    Preload(c::preload::Preload),
    /// Unmount a file system.
    Umount(c::umount::Umount),
    /// Show space or inodes of every target.
    Df(c::df::Df),
    /// Show the layout of files, and what directories hand down.
    Getstripe(c::getstripe::GetStripe),
    /// Set the layout of new files, and what directories hand down.
    Setstripe(c::setstripe::SetStripe),
    /// Show everything about files and directories.
    Stat(c::stat::Stat),
    /// Print the FIDs of paths.
    Fid(c::fid::FidOf),
    /// Print paths of FIDs.
    Path(c::path::PathOf),
    /// Show what every target does and what is wrong.
    Status(c::status::Status),
    /// Verify all stored data against its checksums.
    Scrub(c::scrub::Scrub),
    /// Format, list and drain targets.
    #[command(subcommand)]
    Target(c::target::Command),
    /// List server processes.
    #[command(subcommand)]
    Node(c::node::Command),
    /// List mounts.
    #[command(subcommand)]
    Client(c::client::Command),
    /// List and change pools of OSTs.
    #[command(subcommand)]
    Pool(c::pool::Command),
    /// Make a cluster, and keys for it.
    #[command(subcommand)]
    Cluster(c::cluster::Command),
    /// Measure file systems with the benchmarks of the field.
    #[command(subcommand)]
    Bench(Box<c::bench::Command>),
    /// Evaluate a whole system: studies, plots, reports.
    #[command(subcommand)]
    Eval(c::eval::Command),
    /// Run the servers of this node.
    Server(c::server::Server),
    /// Check configurations of nodes.
    #[command(subcommand)]
    Config(c::config::Command),
    /// Print the completions of a shell.
    Completion(c::completion::Completion),
    /// Write the manual pages.
    Man(c::man::Man),
}

impl Command {
    /// Commands that serve tell what they do; others only what goes wrong.
    const fn log_level(&self) -> &'static str {
        match self {
            Command::Server(_) | Command::Mount(_) => "info",
            Command::Dev(command) if command.serves() => "info",
            _ => "warn",
        }
    }

    fn run(self, global: Global) -> anyhow::Result<Outcome> {
        match self {
            Command::Dev(command) => command.run(global),
            Command::Mount(command) => command.run(global),
            Command::Remount(command) => command.run(),
            Command::Preload(command) => command.run(),
            Command::Umount(command) => command.run(),
            Command::Df(command) => command.run(global),
            Command::Getstripe(command) => command.run(global),
            Command::Setstripe(command) => command.run(),
            Command::Stat(command) => command.run(global),
            Command::Fid(command) => command.run(),
            Command::Path(command) => command.run(),
            Command::Status(command) => command.run(global),
            Command::Scrub(command) => command.run(global),
            Command::Target(command) => command.run(global),
            Command::Node(command) => command.run(global),
            Command::Client(command) => command.run(global),
            Command::Pool(command) => command.run(global),
            Command::Cluster(command) => command.run(),
            Command::Bench(command) => command.run(global),
            Command::Eval(command) => command.run(),
            Command::Server(command) => command.run(),
            Command::Config(command) => command.run(),
            Command::Completion(command) => command.run(),
            Command::Man(command) => command.run(),
        }
    }
}

/// Reads the command line and does what it says.
///
/// # Errors
/// Those of the command. A command line that makes no sense ends the process here.
pub fn run() -> anyhow::Result<Outcome> {
    let cli = Cli::parse_from(arguments(std::env::args_os().collect()));
    logging::start(cli.global.log, cli.command.log_level());
    cli.command.run(cli.global)
}

/// As a mount helper the program gets the arguments of `weft mount` only; benchmarks have options that
/// are not written as others are.
fn arguments(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let called = arguments.first().and_then(|name| Path::new(name).file_name());
    if called == Some(MOUNT_HELPER.as_ref()) {
        arguments[0] = "weft".into();
        arguments.insert(1, "mount".into());
    }
    if arguments.get(1).is_some_and(|word| word == "bench") {
        // Its users type options such as -+n.
        return weft_eval::iozone::config::readable(arguments);
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn mount_helpers_are_recognised() {
        let called = ["/sbin/mount.weft", "host:/", "/mnt", "-o", "rw"].map(OsString::from);
        let cli = Cli::try_parse_from(arguments(called.to_vec())).unwrap();
        assert!(matches!(cli.command, Command::Mount(_)));
    }
}
