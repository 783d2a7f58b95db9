//! How a rank sees the others.

use super::link::{Kind, Link};
use crate::record::Sample;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::cell::Cell;
use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// One rank among all. Fails for good once any rank has failed.
pub struct Comm {
    rank: u32,
    hosts: Vec<String>,
    link: Link,
    heard: mpsc::Receiver<io::Result<Vec<u8>>>,
    stopped: Arc<AtomicBool>,
    /// Number of the exchange after which some rank came to the end of a phase first.
    ended: Arc<AtomicU64>,
    /// Exchanges so far.
    round: Cell<u64>,
    patience: Duration,
    /// The link goes on with another job.
    kept: bool,
}

impl Comm {
    /// Rank number `rank` of as many as there are hosts in the list of each rank's host. `patience` is
    /// the longest wait for the others.
    ///
    /// # Errors
    /// Those of the link.
    pub fn new(rank: u32, hosts: Vec<String>, link: Link, patience: Duration) -> io::Result<Comm> {
        let (tell, heard) = mpsc::sync_channel(1);
        let stopped = Arc::new(AtomicBool::new(false));
        let ended = Arc::new(AtomicU64::new(0));
        let (reader, flag, end) = (link.again()?, stopped.clone(), ended.clone());
        std::thread::Builder::new().name("rank link".into()).spawn(move || {
            listen(&reader, &tell, &flag, &end);
        })?;
        Ok(Comm {
            rank,
            hosts,
            link,
            heard,
            stopped,
            ended,
            round: Cell::new(0),
            patience,
            kept: false,
        })
    }

    /// Number of this one, from 0.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// How many there are.
    pub fn size(&self) -> u32 {
        self.hosts.len() as u32
    }

    /// Host of each.
    pub fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// How many run on the host of the first.
    pub fn per_node(&self) -> u32 {
        self.hosts.iter().filter(|host| Some(*host) == self.hosts.first()).count() as u32
    }

    /// Whether this is the first on its host.
    pub fn is_first_on_host(&self) -> bool {
        let own = &self.hosts[self.rank as usize];
        self.hosts.iter().position(|host| host == own) == Some(self.rank as usize)
    }

    /// Fails when it is over for all: asked between two operations of long phases.
    ///
    /// # Errors
    /// `ConnectionAborted`.
    pub fn check(&self) -> io::Result<()> {
        match self.stopped.load(Ordering::Relaxed) {
            true => Err(io::Error::new(ErrorKind::ConnectionAborted, "another rank has failed")),
            false => Ok(()),
        }
    }

    /// Waits until all ranks are here.
    ///
    /// # Errors
    /// When a rank has failed or does not come in time.
    pub fn barrier(&self) -> io::Result<()> {
        self.exchange(&()).map(drop)
    }

    /// Gives something to all, and gets what each has given, in the order of ranks.
    ///
    /// # Errors
    /// As [`Comm::barrier`].
    pub fn exchange<T: Serialize + DeserializeOwned>(&self, mine: &T) -> io::Result<Vec<T>> {
        self.link.send(Kind::Exchange, &serde_json::to_vec(mine)?)?;
        let late = |_| io::Error::new(ErrorKind::TimedOut, "the other ranks do not come");
        let all = self.heard.recv_timeout(self.patience).map_err(late)??;
        self.round.set(self.round.get() + 1);
        Ok(serde_json::from_slice(&all)?)
    }

    /// Tells all that this rank has come to the end of the phase that began with the last exchange.
    ///
    /// # Errors
    /// Those of the link.
    pub fn end_phase(&self) -> io::Result<()> {
        self.link.send(Kind::First, b"")
    }

    /// Whether some rank has come to the end of the phase that began with the last exchange.
    pub fn phase_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed) == self.round.get()
    }

    /// Hands a figure to the driver.
    ///
    /// # Errors
    /// Those of the link.
    pub fn report(&self, sample: &Sample) -> io::Result<()> {
        self.link.send(Kind::Sample, &serde_json::to_vec(sample)?)
    }

    /// Hands a sentence for the reader of the record to the driver.
    ///
    /// # Errors
    /// Those of the link.
    pub fn note(&self, text: &str) -> io::Result<()> {
        self.link.send(Kind::Note, text.as_bytes())
    }

    /// Tells how the work has ended.
    pub fn end(&self, result: &io::Result<()>) {
        // Where nobody hears it, it is over anyway.
        let _ = match result {
            Ok(()) => self.link.send(Kind::Done, b""),
            Err(error) => self.link.send(Kind::Abort, error.to_string().as_bytes()),
        };
    }

    /// After a failure: waits until the driver knows it and all ranks have been told. Before that others
    /// would miss what is removed now, and their failure might be taken for the first.
    pub fn await_stop(&self) {
        while let Ok(Ok(_)) = self.heard.recv_timeout(self.patience) {}
    }
}

impl Comm {
    /// After the end: the link and the next job, if the driver has one.
    pub fn next_job(mut self) -> Option<(Link, Vec<u8>)> {
        let job = self.heard.recv_timeout(self.patience).ok()?.ok()?;
        let link = self.link.again().ok()?;
        self.kept = true;
        Some((link, job))
    }
}

impl Drop for Comm {
    fn drop(&mut self) {
        if !self.kept {
            self.link.shut();
        }
    }
}

/// Hears the hub until it is over. An exchange is answered once, so one place for it is enough.
fn listen(
    link: &Link,
    tell: &mpsc::SyncSender<io::Result<Vec<u8>>>,
    stopped: &AtomicBool,
    ended: &AtomicU64,
) {
    let mut round = 0;
    loop {
        let news = match link.receive() {
            Ok((Kind::Exchange, bytes)) => {
                round += 1;
                Ok(bytes)
            }
            Ok((Kind::First, _)) => {
                ended.store(round, Ordering::Relaxed);
                continue;
            }
            Ok((Kind::Job, bytes)) => {
                // Whoever hears it goes on with the link.
                let _ = tell.send(Ok(bytes));
                return;
            }
            Ok((_, why)) => {
                let why = String::from_utf8_lossy(&why).into_owned();
                Err(io::Error::new(ErrorKind::ConnectionAborted, why))
            }
            Err(error) => Err(error),
        };
        let over = news.is_err();
        if over {
            stopped.store(true, Ordering::Relaxed);
        }
        if tell.send(news).is_err() || over {
            return;
        }
    }
}
