//! How others ask a holder for something: a line each way over a socket that only the same user can open.

use crate::mounts::book;
use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::time::Duration;

/// Longest wait for a line that was begun.
const LINE: Duration = Duration::from_secs(5);

/// Have another process serve the mount.
#[derive(Debug, Serialize, Deserialize)]
pub struct Remount {
    /// Mount options that replace those in force, separated by commas.
    pub options: String,
}

/// What came of it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// Why it was not done.
    pub error: Option<String>,
}

/// Somebody who has asked, and waits.
pub struct Asker(UnixStream);

impl Asker {
    /// Answers. Whoever has gone does not need it.
    pub fn answer(mut self, error: Option<String>) {
        if let Ok(line) = serde_json::to_string(&Outcome { error }) {
            let _ = writeln!(self.0, "{line}");
        }
    }
}

/// The socket of a holder, gone when dropped.
pub struct Door {
    path: PathBuf,
}

impl Door {
    /// Listens; `tell` makes an event of what is asked.
    ///
    /// # Errors
    /// Those of the directory and the socket.
    pub fn open<E: Send + 'static>(
        dir: &Path,
        events: Sender<E>,
        tell: fn(Remount, Asker) -> E,
    ) -> anyhow::Result<Door> {
        let path = book::holder_socket(dir)?;
        let parent = path.parent().context("no directory for the holder's socket")?;
        crate::files::make_dir(parent)?;
        std::fs::set_permissions(parent, PermissionsExt::from_mode(0o700))?;
        // Left behind by a holder that was killed.
        let _ = std::fs::remove_file(&path);
        let named = || format!("cannot listen at socket={}", path.display());
        let listener = UnixListener::bind(&path).with_context(named)?;
        let thread = std::thread::Builder::new().name("weft-asked".into());
        thread.spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if let Ok(asked) = read_line(&stream)
                    && events.send(tell(asked, Asker(stream))).is_err()
                {
                    return;
                }
            }
        })?;
        Ok(Door { path })
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        // Left behind, it leads to nobody.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn read_line<T: for<'a> Deserialize<'a>>(stream: &UnixStream) -> anyhow::Result<T> {
    stream.set_read_timeout(Some(LINE))?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}

/// Asks the holder of the mount on `dir`, and waits for its answer.
///
/// # Errors
/// When the mount has no holder, what the holder says, and when it says nothing for `patience`.
pub fn ask(dir: &Path, remount: &Remount, patience: Duration) -> anyhow::Result<()> {
    let path = book::holder_socket(dir)?;
    let named = || format!("the mount on dir={} has no holder", dir.display());
    let mut stream = UnixStream::connect(&path).with_context(named)?;
    stream.set_read_timeout(Some(patience))?;
    writeln!(stream, "{}", serde_json::to_string(remount)?)?;
    let mut line = String::new();
    let named = || format!("the holder of dir={} does not answer", dir.display());
    BufReader::new(&stream).read_line(&mut line).with_context(named)?;
    let outcome: Outcome = serde_json::from_str(&line).with_context(named)?;
    match outcome.error {
        None => Ok(()),
        Some(error) => bail!("{error}"),
    }
}
