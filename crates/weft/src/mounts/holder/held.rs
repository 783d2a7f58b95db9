//! The side of the process that serves a mount which is held.

use super::link::{Word, hear, say};
use crate::process::ProcessId;
use crate::signals::Event;
use anyhow::{Context, bail};
use signal_hook::consts::SIGTERM;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use weft_client::Client;
use weft_fuse::journal::Journal;

/// The link to the holder, and what it has given.
pub struct Held {
    link: UnixStream,
    /// What a successor needs is noted here.
    pub journal: Arc<Journal>,
    /// The device of a mount that is to be carried on.
    pub device: Option<OwnedFd>,
    /// The holder, which lives as long as the mount.
    pub holder: ProcessId,
}

impl Held {
    /// Finds the holder at standard input.
    ///
    /// # Errors
    /// When there is none, or the journal is of another version.
    pub fn greet() -> anyhow::Result<Held> {
        let stdin = std::io::stdin().as_fd().try_clone_to_owned().context("no holder")?;
        let link = UnixStream::from(stdin);
        let heard = hear(&link).context("no holder at standard input")?;
        let Some((word, mut fds)) = heard else { bail!("the holder has gone") };
        let device = match word {
            Word::Mount => None,
            Word::CarryOn => Some(fds.pop().context("the holder has sent no device")?),
            word => bail!("the holder begins with {word:?}"),
        };
        let journal = fds.pop().context("the holder has sent no journal")?;
        let journal = Arc::new(Journal::open(journal.as_fd())?);
        let parent = rustix::process::getppid().and_then(|pid| {
            let pid = u32::try_from(pid.as_raw_nonzero().get()).ok()?;
            ProcessId::of(pid)
        });
        let holder = parent.context("the holder has gone")?;
        Ok(Held { link, journal, device, holder })
    }

    /// Tells the holder that the mount answers, and gives it the device to keep.
    ///
    /// # Errors
    /// When the holder has gone.
    pub fn serving(&self, device: Option<BorrowedFd<'_>>) -> std::io::Result<()> {
        say(&self.link, Word::Serving, device.as_slice())
    }

    /// Does what the holder says, on a thread. Without a holder the mount ends.
    ///
    /// # Errors
    /// Those of starting a thread.
    pub fn obey(self, client: Arc<Client>, events: Sender<Event>) -> std::io::Result<()> {
        let thread = std::thread::Builder::new().name("weft-held".into());
        thread.spawn(move || {
            while let Ok(Some((word, _))) = hear(&self.link) {
                if word == Word::Settle && self.settle(&client).is_err() {
                    break;
                }
            }
            tracing::warn!("the holder has gone, and with it the mount");
            // Nobody listens when the process is ending.
            let _ = events.send(Event::Signal(SIGTERM));
        })?;
        Ok(())
    }

    fn settle(&self, client: &Client) -> std::io::Result<()> {
        let word = match client.settle_all() {
            Ok(()) => Word::Settled,
            Err(error) => {
                tracing::warn!(%error, "not everything could be brought to the servers");
                Word::NotSettled
            }
        };
        say(&self.link, word, &[])
    }
}
