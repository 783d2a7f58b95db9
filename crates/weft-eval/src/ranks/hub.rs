//! The middle of the star: hears all ranks, and tells all.

use super::link::{Kind, Link};
use crate::record::Sample;
use serde_json::Value;
use std::io::{self, ErrorKind};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Longest wait for ranks to clean up after one of them has failed.
const FAREWELL: Duration = Duration::from_secs(60);

/// What ranks tell the driver while they work.
#[derive(Debug)]
pub enum News {
    /// A figure.
    Sample(Sample),
    /// A sentence for the reader of the record.
    Note(String),
}

/// What a rank has said; `Err` when it says no more.
type Heard = (usize, io::Result<(Kind, Vec<u8>)>);

/// Where all ranks are.
struct Hub<'a> {
    links: &'a [Link],
    parts: Vec<Option<Vec<u8>>>,
    done: Vec<bool>,
}

/// Serves the ranks at the other ends of `links` until all have done their work.
///
/// # Errors
/// The first failure of a rank, with its number, when the others have stopped.
pub fn serve(links: &[Link], news: &mut dyn FnMut(News)) -> io::Result<()> {
    // Each rank has one frame under way at most, and its end.
    let (tell, heard) = mpsc::sync_channel::<Heard>(2 * links.len());
    for (rank, link) in links.iter().enumerate() {
        let (reader, tell) = (link.again()?, tell.clone());
        std::thread::Builder::new().name(format!("hub {rank}")).spawn(move || {
            loop {
                let frame = reader.receive();
                let over = !matches!(frame, Ok((kind, _)) if kind != Kind::Done);
                if tell.send((rank, frame)).is_err() || over {
                    return;
                }
            }
        })?;
    }
    drop(tell);
    let (parts, done) = (vec![None; links.len()], vec![false; links.len()]);
    let mut hub = Hub { links, parts, done };
    while let Ok((rank, frame)) = heard.recv() {
        if let Err(error) = hub.take(rank, frame, news) {
            hub.stop(&error, &heard);
            return Err(error);
        }
        if hub.done.iter().all(|done| *done) {
            return Ok(());
        }
    }
    Err(io::Error::other("no rank is left"))
}

impl Hub<'_> {
    fn take(
        &mut self,
        rank: usize,
        frame: io::Result<(Kind, Vec<u8>)>,
        news: &mut dyn FnMut(News),
    ) -> io::Result<()> {
        let named = |what: &str| io::Error::other(format!("rank {rank}: {what}"));
        let (kind, bytes) = frame.map_err(|error| {
            self.done[rank] = true;
            match error.kind() {
                ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset => named("it has died"),
                _ => named(&error.to_string()),
            }
        })?;
        match kind {
            Kind::Sample => news(News::Sample(serde_json::from_slice(&bytes)?)),
            Kind::Note => news(News::Note(String::from_utf8_lossy(&bytes).into_owned())),
            Kind::Done => self.done[rank] = true,
            Kind::Exchange => {
                self.parts[rank] = Some(bytes);
                if self.parts.iter().all(Option::is_some) {
                    self.answer()?;
                }
            }
            Kind::First => self.tell(Kind::First, b""),
            Kind::Abort => return Err(named(&String::from_utf8_lossy(&bytes))),
            Kind::Job => return Err(named("it does not keep to the protocol")),
        }
        Ok(())
    }

    /// All have given: everybody gets everything, a JSON array of what each gave.
    fn answer(&mut self) -> io::Result<()> {
        let mut all: Vec<Value> = Vec::with_capacity(self.parts.len());
        for part in self.parts.iter_mut().filter_map(Option::take) {
            all.push(serde_json::from_slice(&part)?);
        }
        self.tell(Kind::Exchange, &serde_json::to_vec(&all)?);
        Ok(())
    }

    fn tell(&self, kind: Kind, bytes: &[u8]) {
        for link in self.links {
            // One that cannot be told is found dead by its reader.
            let _ = link.send(kind, bytes);
        }
    }

    /// Tells all, and waits until they have cleaned up, which is when they close their links.
    fn stop(&mut self, why: &io::Error, heard: &mpsc::Receiver<Heard>) {
        self.tell(Kind::Abort, why.to_string().as_bytes());
        let deadline = Instant::now() + FAREWELL;
        while !self.done.iter().all(|done| *done) {
            let left = deadline.saturating_duration_since(Instant::now());
            match heard.recv_timeout(left) {
                Ok((rank, Ok((Kind::Done, _)) | Err(_))) => self.done[rank] = true,
                Ok(_) => {}
                Err(_) => break,
            }
        }
        self.links.iter().for_each(Link::shut);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranks::Comm;

    const PATIENCE: Duration = Duration::from_secs(10);

    fn ranks(count: u32, work: impl Fn(&Comm) -> io::Result<()> + Sync) -> io::Result<()> {
        let pairs: Vec<(Link, Link)> = (0..count).map(|_| Link::pair(PATIENCE).unwrap()).collect();
        let (hubs, theirs): (Vec<Link>, Vec<Link>) = pairs.into_iter().unzip();
        let hosts = vec!["here".to_string(); count as usize];
        std::thread::scope(|scope| {
            for (rank, link) in (0..).zip(theirs) {
                let (hosts, work) = (hosts.clone(), &work);
                scope.spawn(move || {
                    let comm = Comm::new(rank, hosts, link, PATIENCE).unwrap();
                    let result = work(&comm);
                    // One that is killed says nothing.
                    if !matches!(&result, Err(error) if error.kind() == ErrorKind::BrokenPipe) {
                        comm.end(&result);
                    }
                });
            }
            serve(&hubs, &mut |_| {})
        })
    }

    #[test]
    fn everybody_gets_what_all_gave() {
        ranks(4, |comm| {
            for round in 0..50 {
                let all = comm.exchange(&(comm.rank() + round))?;
                assert_eq!(all, (0..4).map(|rank| rank + round).collect::<Vec<_>>());
            }
            comm.barrier()
        })
        .unwrap();
    }

    #[test]
    fn one_failure_stops_all() {
        let error = ranks(3, |comm| {
            if comm.rank() == 1 {
                return Err(io::Error::other("no space"));
            }
            loop {
                comm.check()?;
                std::thread::yield_now();
            }
        })
        .unwrap_err();
        assert_eq!(error.to_string(), "rank 1: no space");
    }

    #[test]
    fn a_death_stops_all() {
        let error = ranks(3, |comm| match comm.rank() {
            2 => Err(ErrorKind::BrokenPipe.into()),
            _ => comm.barrier(),
        });
        assert_eq!(error.unwrap_err().to_string(), "rank 2: it has died");
    }
}
