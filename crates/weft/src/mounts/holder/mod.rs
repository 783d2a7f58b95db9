//! The process that holds a mount: it keeps the kernel's descriptor and the journal, and starts whoever
//! serves the mount, again if need be. Design: `docs/design/0009-mount-holder.md`.
//!
//! It does no I/O on the mount and talks to no server; it reads nothing of the journal but its version.

mod control;
mod held;
mod link;
mod tries;

pub use control::{Remount, ask};
pub use held::Held;

use self::control::{Asker, Door};
use self::link::{Word, hear, say};
use self::tries::Tries;
use crate::outcome::Outcome;
use crate::process::ProcessId;
use crate::signals;
use anyhow::{Context, bail};
use rustix::process::Signal;
use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use weft_fuse::journal;

/// Longest wait for a process to bring everything to the servers, and for another to serve.
pub const REMOUNT_PATIENCE: Duration = Duration::from_secs(120);
/// Longest wait for a program to tell which version of the journal it knows.
const VERSION_PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks at what is due.
const TICK: Duration = Duration::from_millis(500);

/// What to mount, as the command line has it.
pub struct Spec {
    /// The directory.
    pub dir: PathBuf,
    /// Arguments of whoever serves it, without options.
    pub args: Vec<OsString>,
    /// Mount options, separated by commas.
    pub options: String,
}

enum Event {
    Said(Word, Vec<OwnedFd>),
    Ended(ExitStatus),
    Signal,
    Asked(Remount, Asker),
}

/// Somebody waits for another process to serve the mount.
struct Wanted {
    by: Asker,
    options: String,
    /// Everything is with the servers.
    settled: bool,
    until: Instant,
}

struct Holder {
    spec: Spec,
    /// Where the program was when this process was started; there may be another one by now.
    program: PathBuf,
    journal: OwnedFd,
    device: Option<OwnedFd>,
    events: Sender<Event>,
    /// Who serves, and the link to it.
    server: Option<(ProcessId, UnixStream)>,
    serves: bool,
    wanted: Option<Wanted>,
    tries: Tries,
    stopping: bool,
}

/// Mounts, and holds the mount until it is unmounted or a signal comes.
///
/// # Errors
/// When it cannot be mounted, or does not end in an orderly way.
pub fn hold(spec: Spec) -> anyhow::Result<Outcome> {
    let (events, receiver) = channel();
    watch_signals(events.clone())?;
    let _door = Door::open(&spec.dir, events.clone(), Event::Asked)?;
    let mut holder = Holder {
        program: crate::process::own_program(),
        journal: journal::create().context("cannot make a journal")?,
        device: None,
        events,
        server: None,
        serves: false,
        wanted: None,
        tries: Tries::default(),
        stopping: false,
        spec,
    };
    holder.start()?;
    let outcome = holder.run(&receiver);
    super::book::forget(&holder.spec.dir)?;
    outcome
}

fn watch_signals(events: Sender<Event>) -> anyhow::Result<()> {
    let watched = signals::Events::watch_all()?;
    let thread = std::thread::Builder::new().name("weft-stop".into());
    thread.spawn(move || {
        loop {
            watched.next();
            if events.send(Event::Signal).is_err() {
                return;
            }
        }
    })?;
    Ok(())
}

impl Holder {
    fn run(&mut self, events: &Receiver<Event>) -> anyhow::Result<Outcome> {
        loop {
            let wait = self.tries.due().map_or(TICK, |due| due.min(TICK));
            match events.recv_timeout(wait) {
                Ok(Event::Said(word, fds)) => self.said(word, fds),
                Ok(Event::Asked(remount, by)) => self.asked(remount, by),
                Ok(Event::Signal) => self.stop()?,
                Ok(Event::Ended(status)) => {
                    if let Some(outcome) = self.ended(status) {
                        return outcome;
                    }
                }
                // We have a sender ourselves, so it never closes.
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            if self.server.is_none() {
                if self.stopping {
                    bail!("stopped while nobody served the mount; it is gone");
                }
                self.try_again();
            }
            self.give_up_late();
        }
    }

    /// Starts whoever serves the mount.
    fn start(&mut self) -> anyhow::Result<()> {
        let (ours, theirs) = UnixStream::pair()?;
        // What was on disk when this process was started serves where nothing else can.
        let own = Path::new("/proc/self/exe");
        let program = if self.tries.is_odd() { own } else { &self.program };
        let mut command = Command::new(program);
        command.args(&self.spec.args).arg("--held");
        if !self.spec.options.is_empty() {
            command.arg("-o").arg(&self.spec.options);
        }
        let again = self.device.is_some();
        let stdout = if again { Stdio::null() } else { Stdio::inherit() };
        let child = command.stdin(OwnedFd::from(theirs)).stdout(stdout).spawn();
        let child = child.with_context(|| format!("cannot start {}", program.display()))?;
        // A process that ends at once is waited for by the thread, and takes nothing.
        let said = match &self.device {
            None => say(&ours, Word::Mount, &[self.journal.as_fd()]),
            Some(device) => say(&ours, Word::CarryOn, &[self.journal.as_fd(), device.as_fd()]),
        };
        if let Err(error) = said {
            tracing::warn!(%error, "the mount's process has ended at once");
        }
        let id = ProcessId::of(child.id()).unwrap_or(ProcessId { pid: child.id(), started: 0 });
        self.serves = false;
        self.server = Some((id, ours.try_clone()?));
        let events = self.events.clone();
        let thread = std::thread::Builder::new().name("weft-served".into());
        thread.spawn(move || watch(child, &ours, &events))?;
        Ok(())
    }

    fn said(&mut self, word: Word, mut fds: Vec<OwnedFd>) {
        match word {
            Word::Serving => {
                self.serves = true;
                self.tries.succeeded();
                self.device = self.device.take().or_else(|| fds.pop());
                if let Some(wanted) = self.wanted.take_if(|wanted| wanted.settled) {
                    wanted.by.answer(None);
                }
            }
            Word::Settled => {
                let Some(wanted) = &mut self.wanted else { return };
                self.spec.options = std::mem::take(&mut wanted.options);
                wanted.settled = true;
                if let Some((server, _)) = &self.server {
                    // What it has under way its successor is asked for again.
                    server.signal(Signal::KILL);
                }
            }
            Word::NotSettled => self.refuse("the servers have not taken all that was written"),
            word => tracing::warn!(?word, "unexpected from the mount's process"),
        }
    }

    /// Somebody wants another process. What can be refused is, while this one serves.
    fn asked(&mut self, Remount { options }: Remount, by: Asker) {
        let all = match super::options::replace(&self.spec.options, &options) {
            Ok(all) => all,
            Err(error) => return by.answer(Some(error)),
        };
        let refusal = if self.wanted.is_some() {
            Some("another remount is under way".to_string())
        } else if !self.serves || self.device.is_none() || self.stopping {
            Some(
                "the mount's process is just being started or stopped, or cannot be followed"
                    .into(),
            )
        } else {
            self.check_version().err().map(|error| format!("{error:#}"))
        };
        if let Some(refusal) = refusal {
            return by.answer(Some(refusal));
        }
        let until = Instant::now() + REMOUNT_PATIENCE;
        self.wanted = Some(Wanted { by, options: all, settled: false, until });
        if let Some((_, link)) = &self.server
            && let Err(error) = say(link, Word::Settle, &[])
        {
            self.refuse(&format!("the mount's process does not hear: {error}"));
        }
    }

    /// Whether the program on disk knows the journal as it is.
    fn check_version(&self) -> anyhow::Result<()> {
        let program = self.program.display();
        let is = journal::version(self.journal.as_fd())?;
        let mut command = Command::new(&self.program);
        command.args(["remount", "--state-version"]).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("cannot run {program}"))?;
        if !crate::process::wait(&mut child, VERSION_PATIENCE)? {
            child.kill()?;
        }
        let knows = String::from_utf8_lossy(&child.wait_with_output()?.stdout).trim().to_string();
        if knows != is.to_string() {
            bail!("{program} knows version {knows:?} of the mount's state, which has {is}");
        }
        Ok(())
    }

    fn refuse(&mut self, why: &str) {
        if let Some(wanted) = self.wanted.take() {
            wanted.by.answer(Some(why.to_string()));
        }
    }

    fn give_up_late(&mut self) {
        if self.wanted.as_ref().is_some_and(|wanted| Instant::now() >= wanted.until) {
            self.refuse("not done in time");
        }
    }

    fn stop(&mut self) -> anyhow::Result<()> {
        self.stopping = true;
        match &self.server {
            Some((server, _)) => server.signal(Signal::TERM),
            None => super::unmount(&self.spec.dir, true)?,
        }
        Ok(())
    }

    /// Whoever served has ended. The outcome, if the mount has, too.
    fn ended(&mut self, status: ExitStatus) -> Option<anyhow::Result<Outcome>> {
        self.server = None;
        if status.success() {
            return Some(Ok(Outcome::Done));
        }
        if self.stopping {
            return Some(Err(anyhow::anyhow!("the mount's process has not ended well: {status}")));
        }
        if self.device.is_none() {
            return Some(Err(anyhow::anyhow!("the mount's process has ended: {status}")));
        }
        let orderly = self.wanted.as_ref().is_some_and(|wanted| wanted.settled);
        if !orderly {
            tracing::warn!(%status, dir = %self.spec.dir.display(), "the mount's process has died");
            self.refuse("the mount's process has died; another one carries on");
        }
        self.tries.failed(self.serves);
        None
    }

    fn try_again(&mut self) {
        if self.tries.due().is_some_and(|due| due.is_zero()) {
            self.tries.begin();
            if let Err(error) = self.start() {
                tracing::error!(error = format!("{error:#}"), "cannot serve the mount");
                self.tries.failed(false);
            }
        }
    }
}

/// Passes on what a process says, then its end.
fn watch(mut child: Child, link: &UnixStream, events: &Sender<Event>) {
    while let Ok(Some((word, fds))) = hear(link) {
        // Nobody listens when this process is ending.
        let _ = events.send(Event::Said(word, fds));
    }
    if let Ok(status) = child.wait() {
        let _ = events.send(Event::Ended(status));
    }
}
