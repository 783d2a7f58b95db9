//! `weft mount HOST[:PORT][/subtree] DIR -o ...`, also as `mount.weft`.

use crate::cli::Global;
use crate::cluster::Device;
use crate::logging::LogForm;
use crate::mounts::holder::{self, Held};
use crate::mounts::{self, LiveMount, MountOptions, Source, wait_until_answering};
use crate::outcome::Outcome;
use crate::process;
use crate::signals::Events;
use anyhow::Context;
use clap::Args;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use weft_rpc::SystemEnv;

/// Longest wait for a mount in the background.
const READY_PATIENCE: Duration = Duration::from_secs(60);
/// Longest wait for the first answer of the mount.
const ANSWER_PATIENCE: Duration = Duration::from_secs(30);

/// Mount a file system on a directory.
#[derive(Args)]
#[command(after_help = "\
Mount options (-o, separated by commas):
  hard                wait for servers for as long as it takes (default)
  soft, timeo=30s     fail with ETIMEDOUT after that time
  key=FILE            the cluster's key, or that of clients
  ro                  refuse all changes
  allow_other, private  let other users in, or not (default: in, if root mounts)
  suid, dev, noexec   as mount(8) has them
  nocache             keep no names, attributes or data (default: under grants, coherent between clients)
  writebehind, nowritebehind  answer writes to files that nobody else has open when the mount has them,
                      or when the servers have them (default: the first, unless servers are in the
                      mount's process); fsync and other clients always see the truth
  entry_timeout=0s, attr_timeout=0s  how long the kernel may use names and attributes without a grant
  cached              data of all files goes through the page cache, coherent from close to open only
  max_request=1MiB    largest request of the kernel
  transport=auto      how the kernel's requests come: dev (/dev/fuse), uring (FUSE over io_uring, which root
                      switches on in /sys/module/fuse/parameters/enable_uring), or auto, as offered
  holder, noholder    a small process holds the mount, so that it outlives the one that serves it
                      (default: the first, in the background; not with transport=uring)
  volume=NAME         another than the first volume
  foreground          stay in the foreground
  log=FILE            where a mount in the background writes its log")]
pub struct Mount {
    /// Managers and what to mount: HOST[:PORT][,HOST[:PORT]...][:][/SUBTREE], or unix:/SOCKET.
    device: Device,
    /// The directory to mount on.
    dir: PathBuf,
    /// Mount options, separated by commas.
    #[arg(short, value_name = "LIST", action = clap::ArgAction::Append, value_delimiter = ',')]
    options: Vec<String>,
    /// The cluster's key, as `-o key=FILE`.
    #[arg(long, env = "WEFT_KEY")]
    key: Option<PathBuf>,
    /// Stay in the foreground, as `-o foreground`.
    #[arg(short, long)]
    foreground: bool,
    /// Sloppy options, verbose, no mtab: mount(8) passes them on, and they mean nothing here.
    #[arg(short = 's', short_aliases = ['v', 'n'], action = clap::ArgAction::Count, hide = true)]
    ignored: u8,
    /// A holder has started this and is at standard input.
    #[arg(long, hide = true)]
    held: bool,
    /// Leave the terminal; for whoever starts this in the background.
    #[arg(long, hide = true)]
    detached: bool,
}

impl Mount {
    /// Mounts, and serves the mount in the background or here.
    ///
    /// # Errors
    /// Those of the cluster and the kernel.
    pub fn run(self, global: Global) -> anyhow::Result<Outcome> {
        let mut options = MountOptions::parse(&self.options.join(","))?;
        options.key = options.key.or(self.key.clone());
        if self.detached {
            process::leave_terminal();
        }
        if self.held {
            return serve(&self.device, &self.dir, &options, Some(Held::greet()?));
        }
        if self.detached && options.is_held() {
            return self.hold(options.key.as_deref(), global);
        }
        if self.foreground || options.foreground || self.detached {
            return serve(&self.device, &self.dir, &options, None);
        }
        let log = options.log.clone().map_or_else(|| default_log(&self.dir), Ok)?;
        let list = self.options.join(",");
        start(&self.device, &self.dir, &list, options.key.as_deref(), &log, global.log)?;
        Ok(Outcome::Done)
    }

    /// Holds the mount, which processes with the same arguments serve.
    fn hold(&self, key: Option<&Path>, global: Global) -> anyhow::Result<Outcome> {
        let dir = mounts::resolve(&self.dir)?;
        let args = arguments(&self.device, &dir, key, global.log)?;
        holder::hold(holder::Spec { dir, args, options: self.options.join(",") })
    }
}

/// The arguments of a mount, without its options.
fn arguments(
    device: &Device,
    dir: &Path,
    key: Option<&Path>,
    form: LogForm,
) -> anyhow::Result<Vec<OsString>> {
    let mut args: Vec<OsString> = vec!["mount".into(), device.to_string().into(), dir.into()];
    args.extend(["--log".into(), form.name().into()]);
    if let Some(key) = key {
        args.extend(["--key".into(), std::path::absolute(key)?.into()]);
    }
    Ok(args)
}

/// Mounts by a process in the background; the mount answers when this returns.
///
/// # Errors
/// With the last lines of the log.
pub fn start(
    device: &Device,
    dir: &Path,
    options: &str,
    key: Option<&Path>,
    log: &Path,
    form: LogForm,
) -> anyhow::Result<()> {
    let dir = mounts::resolve(dir)?;
    let mut args = arguments(device, &dir, key, form)?;
    args.push("--detached".into());
    if !options.is_empty() {
        args.extend(["-o".into(), options.into()]);
    }
    process::start_in_background(&args, log, READY_PATIENCE)
        .with_context(|| format!("cannot mount {device} on dir={}", dir.display()))?;
    wait_until_answering(&dir, ANSWER_PATIENCE)
}

/// Serves the mount until it is unmounted or a signal comes.
fn serve(
    device: &Device,
    dir: &Path,
    options: &MountOptions,
    held: Option<Held>,
) -> anyhow::Result<Outcome> {
    process::raise_file_limit();
    let events = Events::watch()?;
    let source = Source {
        managers: device.managers.clone(),
        subtree: device.subtree.clone(),
        registry: None,
        env: Arc::new(SystemEnv::new()),
        held,
    };
    let mount = LiveMount::start(source, dir, options, &events)?;
    process::say_ready();
    // A signal or the end of the mount: either way it is over.
    tracing::info!(event = ?events.next(), "stopping");
    mount.stop();
    Ok(Outcome::Done)
}

/// `/var/log/weft` for root, else below `$XDG_STATE_HOME` or `~/.local/state`.
fn default_log(dir: &Path) -> anyhow::Result<PathBuf> {
    let logs = if rustix::process::geteuid().is_root() {
        PathBuf::from("/var/log/weft")
    } else {
        mounts::state_dir().context("no place for the log; use -o log=FILE")?
    };
    crate::files::make_dir(&logs)?;
    let dir = std::path::absolute(dir)?;
    let name = dir.to_string_lossy().trim_matches('/').replace('/', "-");
    Ok(logs.join(format!("mount-{name}.log")))
}
