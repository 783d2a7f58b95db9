//! An MDT asked directly, over its connection, without the client library in between: what it does with
//! names. Each thread has a directory of its own.

use super::objects::told;
use super::sweep::served;
use crate::ranks::job::Server;
use crate::record::{Cpu, Sample};
use crate::usage;
use std::io::{self, ErrorKind};
use std::sync::Barrier;
use std::time::{Duration, Instant};
use weft_client::{Client, Ctx};
use weft_model::{Fid, TargetId};
use weft_rpc::Message;
use weft_rpc::pb::{self, mds};
use weft_rpc::router::Patience;

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// Handles of the client library are numbered from 1.
const FIRST_HANDLE: u64 = 1 << 62;
/// Open flags: for reading, and for writing, too, as mdtest looks at files and makes them.
const READ: u32 = 1;
const BOTH: u32 = 3;

/// What is asked for each file, named as the phases of mdtest that do it.
const PHASES: [(&str, Act); 5] = [
    ("creation", Act::Create),
    ("stat", Act::Lookup),
    ("getattr", Act::GetAttr),
    ("open", Act::Open),
    ("removal", Act::Unlink),
];

#[derive(Clone, Copy)]
enum Act {
    /// And close.
    Create,
    Lookup,
    GetAttr,
    /// By its number, and close.
    Open,
    Unlink,
}

/// A thread's part.
struct Asker<'a> {
    client: &'a Client,
    mdt: TargetId,
    name: String,
    dir: Fid,
    handle: u64,
    /// Of the files there are.
    files: Vec<u64>,
}

/// Makes `files` empty files by each of `threads` in directories that begin with `name`, looks at them,
/// opens and removes them. A sample for each kind of request, in operations per second.
///
/// # Errors
/// Those of the MDT; what was made is removed as far as it can be.
pub fn run(
    client: &Client,
    name: &str,
    (threads, files): (u32, u64),
    servers: &[Server],
) -> io::Result<Vec<Sample>> {
    let mdt = client.map().mdts().next().map(|target| target.id);
    let mdt = mdt.ok_or_else(|| io::Error::new(ErrorKind::NotFound, "the cluster has no MDT"))?;
    let mut askers = Vec::new();
    let done = (0..threads)
        .try_for_each(|thread| {
            let handle = FIRST_HANDLE + u64::from(thread) * files;
            askers.push(Asker::start(client, mdt, format!("{name}.{thread}"), handle)?);
            Ok(())
        })
        .and_then(|()| {
            let phases = PHASES.into_iter();
            phases.map(|(name, act)| phase(&mut askers, files, name, act, servers)).collect()
        });
    let removed = askers.into_iter().map(Asker::end).fold(Ok(()), io::Result::and);
    done.and_then(|samples| removed.map(|()| samples))
}

fn phase(
    askers: &mut [Asker<'_>],
    files: u64,
    name: &str,
    act: Act,
    servers: &[Server],
) -> io::Result<Sample> {
    let operations = askers.len() as u64 * files;
    let (before, barrier) = (served(servers), Barrier::new(askers.len()));
    let go = |asker: &mut Asker<'_>| {
        barrier.wait();
        let (start, cpu) = (Instant::now(), usage::thread_seconds());
        (0..files).try_for_each(|item| asker.ask_for(act, item))?;
        Ok((start.elapsed().as_secs_f64(), usage::thread_seconds() - cpu))
    };
    let parts: io::Result<Vec<(f64, f64)>> = std::thread::scope(|scope| {
        let go = &go;
        let threads: Vec<_> =
            askers.iter_mut().map(|asker| scope.spawn(move || go(asker))).collect();
        let died = |_| Err(io::Error::other("a thread has died"));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(died)).collect()
    });
    let parts = parts?;
    let seconds = parts.iter().map(|(end, _)| *end).fold(0.0, f64::max);
    let mut used = served(servers);
    used.iter_mut().for_each(|(name, cpu)| *cpu -= before[name]);
    Ok(Sample {
        phase: name.into(),
        rate: operations as f64 / seconds,
        unit: "ops/s".into(),
        operations,
        seconds,
        cpu: Cpu { load: parts.iter().map(|(_, cpu)| cpu).sum(), servers: used },
        ..Sample::default()
    })
}

impl<'a> Asker<'a> {
    fn start(client: &'a Client, mdt: TargetId, name: String, handle: u64) -> io::Result<Self> {
        let made = client.mkdir(&Ctx::root(), client.root(), name.as_bytes(), 0o755);
        let dir = made.map_err(told)?.fid;
        Ok(Asker { client, mdt, name, dir, handle, files: Vec::new() })
    }

    fn ask<M: Message>(&self, message: M) -> io::Result<M::Reply> {
        self.client.router().ask(self.mdt, message, &Patience::of(PATIENCE)).map_err(told)
    }

    fn ask_for(&mut self, act: Act, item: u64) -> io::Result<()> {
        let cred = Some(pb::Credentials { groups_known: true, ..Default::default() });
        let (parent, name) = (self.dir.0, item.to_string().into_bytes());
        let fid = self.files.get(item as usize).copied().unwrap_or_default();
        match act {
            Act::Create => {
                let request = mds::Create {
                    cred,
                    parent,
                    name,
                    mode: 0o644,
                    flags: BOTH,
                    exclusive: true,
                    handle: self.handle + item,
                    ..Default::default()
                };
                let attr = self.ask(request)?.entry.and_then(|entry| entry.attr);
                let missing = || io::Error::new(ErrorKind::InvalidData, "created without an inode");
                let fid = attr.ok_or_else(missing)?.fid;
                self.files.push(fid);
                self.close(fid, item)
            }
            Act::Lookup => self.ask(mds::Lookup { cred, parent, name }).map(drop),
            Act::GetAttr => self.ask(mds::GetAttr { fid, want_layout: false }).map(drop),
            Act::Open => {
                self.ask(mds::Open { cred, fid, flags: READ, handle: self.handle + item })?;
                self.close(fid, item)
            }
            Act::Unlink => self.ask(mds::Unlink { cred, parent, name }).map(drop),
        }
    }

    fn close(&self, fid: u64, item: u64) -> io::Result<()> {
        self.ask(mds::Close { fid, handle: self.handle + item, ..Default::default() }).map(drop)
    }

    /// Removes the directory, and what a failure has left in it.
    fn end(self) -> io::Result<()> {
        let (ctx, root) = (Ctx::root(), self.client.root());
        let empty = |asker: &Asker<'_>| asker.client.rmdir(&ctx, root, asker.name.as_bytes());
        if empty(&self).is_ok() {
            return Ok(());
        }
        for item in 0..self.files.len() {
            // Those that are gone need not be removed.
            let _ = self.client.unlink(&ctx, self.dir, item.to_string().as_bytes());
        }
        empty(&self).map_err(told)
    }
}
