//! What a simulated client keeps of names and attributes, as a kernel does: until its time is over or
//! it is recalled.

use crate::actor::unwound;
use crate::process::Process;
use crate::world::World;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weft_client::{Client, Ctx, Found, Keeping, Lookup, Recalled};
use weft_model::{Attr, ErrorKind, Fid, Result, TargetId};
use weft_rpc::pb::mds::AwaitRecalls;

/// Longest pause between two requests for recalls, microseconds.
const PAUSE: u64 = 20_000;

/// A name, and what it stands for until when.
type Names = HashMap<(Fid, Vec<u8>), (Option<Fid>, Duration)>;

/// Names and attributes, each until some time.
#[derive(Default)]
pub struct Kept {
    names: Mutex<Names>,
    attrs: Mutex<HashMap<Fid, (Attr, Duration)>>,
    deaf: bool,
    over: AtomicBool,
}

impl Kept {
    /// Nothing kept. A deaf one confirms recalls without carrying them out.
    pub fn new(deaf: bool) -> Kept {
        Kept { deaf, ..Kept::default() }
    }

    /// What `name` stands for, asked for only if it is not known.
    ///
    /// # Errors
    /// `NotFound`, and those of the MDT.
    pub fn look(&self, client: &Client, now: Duration, dir: Fid, name: &[u8]) -> Result<Attr> {
        let key = (dir, name.to_vec());
        let known = self.names.lock().get(&key).copied().filter(|(_, until)| *until > now);
        match known {
            Some((None, _)) => Err(ErrorKind::NotFound.into()),
            Some((Some(fid), _)) => self.stat(client, now, fid),
            None => match client.lookup_or_absent(&Ctx::root(), dir, name)? {
                Lookup::Found(found) => {
                    let until = now + client.grant_left(&found.name_grant);
                    self.names.lock().insert(key, (Some(found.fid), until));
                    Ok(self.keep(client, now, found))
                }
                Lookup::Absent(grant) => {
                    let until = now + client.grant_left(&grant);
                    self.names.lock().insert(key, (None, until));
                    Err(ErrorKind::NotFound.into())
                }
            },
        }
    }

    fn stat(&self, client: &Client, now: Duration, fid: Fid) -> Result<Attr> {
        let known = self.attrs.lock().get(&fid).copied().filter(|(_, until)| *until > now);
        match known {
            Some((attr, _)) => Ok(attr),
            None => Ok(self.keep(client, now, client.getattr(&Ctx::root(), fid)?)),
        }
    }

    fn keep(&self, client: &Client, now: Duration, found: Found) -> Attr {
        let until = now + client.grant_left(&found.grant);
        self.attrs.lock().insert(found.fid, (found.attr, until));
        found.attr
    }

    /// This client has changed something among these inodes itself.
    pub fn forget(&self, fids: &[Fid]) {
        self.names.lock().retain(|(dir, _), _| !fids.contains(dir));
        self.attrs.lock().retain(|fid, _| !fids.contains(fid));
    }

    /// The client leaves.
    pub fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// Has the client's other work done for as long as it lives.
    pub fn attend(self: &Arc<Kept>, world: &Arc<World>, process: &Process, client: &Arc<Client>) {
        let mut last = AwaitRecalls::default();
        self.repeat(world, process, client, "recalls", move |kept, client| {
            // Asked again after the next pause.
            let _ = client.carry_out_recalls(TargetId::mdt(0), &mut last, kept);
        });
        if world.plan.delegations {
            self.repeat(world, process, client, "behind", |_, client| {
                client.write_some_behind(Duration::ZERO);
            });
        }
        if world.plan.reads_ahead {
            self.repeat(world, process, client, "ahead", |_, client| {
                while client.read_some_ahead(Duration::ZERO) {}
            });
        }
    }

    fn repeat(
        self: &Arc<Kept>,
        world: &Arc<World>,
        process: &Process,
        client: &Arc<Client>,
        what: &str,
        mut step: impl FnMut(&Kept, &Client) + Send + 'static,
    ) {
        let (kept, process, client) = (self.clone(), process.clone(), client.clone());
        world.spawn(&format!("{what}{}", process.number()), move || {
            let life = catch_unwind(AssertUnwindSafe(|| {
                while !kept.over.load(Ordering::Relaxed) {
                    step(&kept, &client);
                    process.pause(process.world.span(100, PAUSE));
                }
            }));
            match life {
                Err(cause) if unwound(&*cause) != Some(process.end()) => resume_unwind(cause),
                _ => {}
            }
        });
    }
}

impl Keeping for Kept {
    fn drop_granted(&self, recalled: &[Recalled]) {
        if !self.deaf {
            let fids: Vec<Fid> = recalled.iter().map(|recalled| recalled.fid).collect();
            self.forget(&fids);
        }
    }
}
