//! `weft preload HOST[:PORT][/subtree] PREFIX -- COMMAND...`

use crate::cluster::Device;
use crate::mounts;
use crate::outcome::Outcome;
use anyhow::{Context, bail};
use clap::Args;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The library's file.
const LIBRARY: &str = "libweft_preload.so";
/// Where it lies as seen from the directory of this program.
const PLACES: [&str; 3] = [".", "../lib", "../lib/weft"];
/// The variable that it reads: `PREFIX=SOURCE[?OPTIONS]`, several separated by `;`.
const VARIABLE: &str = "WEFT_PRELOAD";
/// The variable that the dynamic linker reads.
const LINKER: &str = "LD_PRELOAD";

/// Run a command that sees a file system below a path, without a mount.
///
/// The command and what it starts reach the file system by themselves, faster than through a mount and without
/// any right to mount. See docs/semantics.md for what does not work this way.
#[derive(Args)]
#[command(after_help = "\
Options (-o, separated by commas), as of weft mount:
  hard                wait for servers for as long as it takes (default)
  soft, timeo=30s     fail with ETIMEDOUT after that time
  key=FILE            the cluster's key, or that of clients
  nocache             keep no names, attributes or data
  nowritebehind       writes are answered when the servers have them
  volume=NAME         another than the first volume")]
pub struct Preload {
    /// Managers and what to show: HOST[:PORT][,HOST[:PORT]...][:][/SUBTREE], or unix:/SOCKET.
    device: Device,
    /// The path where it is seen, absolute. Best one where nothing is on this machine.
    prefix: PathBuf,
    /// The command and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
    /// Options, separated by commas.
    #[arg(short, value_name = "LIST", action = clap::ArgAction::Append, value_delimiter = ',')]
    options: Vec<String>,
    /// The cluster's key, as `-o key=FILE`.
    #[arg(long, env = "WEFT_KEY")]
    key: Option<PathBuf>,
}

impl Preload {
    /// Becomes the command. Comes back only if that fails.
    ///
    /// # Errors
    /// When the library or the command cannot be found.
    pub fn run(self) -> anyhow::Result<Outcome> {
        let library = find_library()?;
        let mut options = self.options;
        if let Some(key) = &self.key {
            options.push(format!("key={}", std::path::absolute(key)?.display()));
        }
        let prefix = mounts::resolve(&self.prefix)?;
        let mut entry = format!("{}={}", prefix.display(), self.device);
        if !options.is_empty() {
            entry = format!("{entry}?{}", options.join(","));
        }
        let Some((program, arguments)) = self.command.split_first() else {
            bail!("no command");
        };
        let mut command = Command::new(program);
        command.args(arguments);
        command.env(VARIABLE, after(VARIABLE, ";", entry.into()));
        command.env(LINKER, after(LINKER, ":", library.into()));
        let error = command.exec();
        Err(error).with_context(|| format!("cannot run {}", program.to_string_lossy()))
    }
}

/// What a variable has, and one thing more.
fn after(variable: &str, separator: &str, more: OsString) -> OsString {
    match std::env::var_os(variable).filter(|value| !value.is_empty()) {
        Some(mut value) => {
            value.push(separator);
            value.push(more);
            value
        }
        None => more,
    }
}

fn find_library() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe().context("cannot find this program's file")?;
    let beside = program.parent().unwrap_or(Path::new("/"));
    let found = PLACES.iter().map(|place| beside.join(place).join(LIBRARY)).find(|p| p.exists());
    let found = found.with_context(|| {
        format!("{LIBRARY} is neither beside {} nor in ../lib", program.display())
    })?;
    Ok(found.canonicalize()?)
}
