//! Processes: telling them apart for sure, ending them, starting them in the background.

use anyhow::{Context, bail};
use rustix::process::{Pid, Resource, Rlimit, Signal};
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Between two looks whether a process has ended.
const POLL: Duration = Duration::from_millis(20);
/// What a background process says on standard output when it can be used.
pub const READY: &str = "ready";
/// Lines of a log shown when a background process does not start.
const LOG_TAIL: usize = 8;

/// A process, told apart from a later one with the same number by when it started.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ProcessId {
    /// Its number.
    pub pid: u32,
    /// Clock ticks from the machine's start to its own.
    pub started: u64,
}

impl ProcessId {
    /// This process.
    pub fn own() -> ProcessId {
        ProcessId::of(std::process::id())
            .unwrap_or(ProcessId { pid: std::process::id(), started: 0 })
    }

    /// The process that has the number now; none when there is none or it is a zombie.
    pub fn of(pid: u32) -> Option<ProcessId> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The second field is the name in brackets and may hold anything.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        // A zombie whose other threads have not ended yet still has its files and ports.
        let threads: u64 = fields.get(17)?.parse().ok()?;
        if matches!(*fields.first()?, "Z" | "X") && threads <= 1 {
            return None;
        }
        Some(ProcessId { pid, started: fields.get(19)?.parse().ok()? })
    }

    /// Whether it runs.
    pub fn is_alive(self) -> bool {
        ProcessId::of(self.pid) == Some(self)
    }

    /// Asks it to end (`SIGTERM`) and waits. Whether it has ended.
    pub fn stop(self, patience: Duration) -> bool {
        self.signal(Signal::TERM);
        self.wait(patience)
    }

    /// Ends it at once (`SIGKILL`).
    pub fn kill(self) {
        self.signal(Signal::KILL);
        self.wait(Duration::from_secs(5));
    }

    /// Waits for its end. Whether it has ended.
    pub fn wait(self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        while self.is_alive() {
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(POLL);
        }
        true
    }

    /// Sends it a signal, if it is alive.
    pub fn signal(self, signal: Signal) {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid.filter(|_| self.is_alive()) {
            // It may have ended just now, which is what was wanted.
            let _ = rustix::process::kill_process(pid, signal);
        }
    }
}

/// Waits for a child's end. Whether it has ended.
///
/// # Errors
/// Those of the system.
pub fn wait(child: &mut Child, patience: Duration) -> std::io::Result<bool> {
    let deadline = Instant::now() + patience;
    while child.try_wait()?.is_none() {
        if Instant::now() >= deadline {
            return Ok(false);
        }
        std::thread::sleep(POLL);
    }
    Ok(true)
}

/// Starts this program once more in the background and waits until it is ready.
///
/// # Errors
/// When it ends or says nothing within `patience`; with the last lines of its log.
pub fn start_in_background(
    args: &[OsString],
    log: &Path,
    patience: Duration,
) -> anyhow::Result<()> {
    let log_file = OpenOptions::new().create(true).append(true).mode(0o640).open(log);
    let log_file = log_file.with_context(|| format!("cannot open log file={}", log.display()))?;
    let from = log_file.metadata().map_or(0, |meta| meta.len());
    let mut child = Command::new(own_program())
        .arg0("weft")
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log_file)
        .spawn()
        .context("cannot start a process in the background")?;
    let Err(why) = wait_until_ready(&mut child, patience) else { return Ok(()) };
    let _ = child.kill();
    let _ = child.wait();
    bail!("{why}; log={}{}", log.display(), tail(log, from));
}

/// This program, under its name if it still has it: it may have been replaced since it was started.
pub fn own_program() -> PathBuf {
    let path = std::env::current_exe().ok().filter(|path| path.exists());
    path.unwrap_or_else(|| "/proc/self/exe".into())
}

fn wait_until_ready(child: &mut Child, patience: Duration) -> Result<(), String> {
    let Some(stdout) = child.stdout.take() else { return Err("it has no standard output".into()) };
    let (said, heard) = mpsc::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let _ = BufReader::new(stdout).read_line(&mut line);
        let _ = said.send(line);
    });
    match heard.recv_timeout(patience) {
        Ok(line) if line.trim_end() == READY => Ok(()),
        Ok(_) => Err("the background process has ended before it was ready".into()),
        Err(_) => Err(format!("the background process was not ready within {patience:?}")),
    }
}

/// The last lines of a log from offset `from` on, each on a line of its own.
fn tail(log: &Path, from: u64) -> String {
    let mut text = String::new();
    let read = File::open(log)
        .and_then(|mut file| file.seek(SeekFrom::Start(from)).map(|_| file))
        .and_then(|mut file| file.read_to_string(&mut text));
    if read.is_err() {
        return String::new();
    }
    let lines: Vec<&str> = text.lines().collect();
    let last = &lines[lines.len().saturating_sub(LOG_TAIL)..];
    last.iter().map(|line| format!("\n  {line}")).collect()
}

/// Tells whoever started this process that it can be used: on standard output, and systemd.
pub fn say_ready() {
    // Nobody listens when it was started by hand and its output goes nowhere.
    let _ = crate::output::put(&format!("{READY}\n"));
    if let Some(socket) = std::env::var_os("NOTIFY_SOCKET")
        && let Err(error) = notify_systemd(&socket)
    {
        tracing::warn!(%error, socket = ?socket, "cannot tell systemd that the service is ready");
    }
}

/// The protocol of sd_notify(3).
fn notify_systemd(socket: &OsStr) -> std::io::Result<()> {
    let address = match socket.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(socket)?,
    };
    UnixDatagram::unbound()?.send_to_addr(b"READY=1", &address).map(drop)
}

/// Makes this process independent of the terminal it was started from.
pub fn leave_terminal() {
    if let Err(error) = rustix::process::setsid() {
        tracing::debug!(%error, "cannot leave the terminal's session");
    }
}

/// Raises the limit of open files as far as it may go: every connection and object needs one.
pub fn raise_file_limit() {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(error) = rustix::process::setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, current = ?limit.current, "cannot raise the limit of open files");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_itself_and_not_its_successor() {
        let own = ProcessId::own();
        assert!(own.started > 0 && own.is_alive());
        assert!(!ProcessId { started: own.started + 1, ..own }.is_alive());
    }

    #[test]
    fn stops_only_what_it_means() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let id = ProcessId::of(child.id()).unwrap();
        assert!(ProcessId { started: id.started + 1, ..id }.stop(Duration::ZERO));
        assert!(id.is_alive());
        assert!(id.stop(Duration::from_secs(5)));
        child.wait().unwrap();
    }
}
