//! Processes of the cluster: they are started, killed, and started again.

use crate::actor::Unwind;
use crate::world::World;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;
use weft_model::{Env, Timespec};
use weft_rpc::registry::Registry;

/// Seconds of the wall clock at the beginning.
const EPOCH: i128 = 1_700_000_000;

/// All hosts, by number.
#[derive(Default)]
pub struct Hosts(Vec<Host>);

struct Host {
    name: String,
    /// Counts starts and kills: odd while the process lives.
    incarnation: u64,
    registry: Option<Arc<Registry>>,
    /// How far its wall clock is off.
    skew: Duration,
}

/// One life of a process: its clock, and its death. Clones are the same life.
#[derive(Clone)]
pub struct Process {
    /// Where it lives.
    pub world: Arc<World>,
    /// The host.
    pub host: usize,
    incarnation: u64,
}

impl World {
    /// One more host, without a process.
    pub fn add_host(&self, name: &str) -> usize {
        let skew = self.span(0, 200_000);
        let mut hosts = self.hosts.lock();
        hosts.0.push(Host { name: name.into(), incarnation: 0, registry: None, skew });
        hosts.0.len() - 1
    }

    /// Starts a process on a host that has none.
    pub fn start(self: &Arc<World>, host: usize) -> Process {
        let mut hosts = self.hosts.lock();
        hosts.0[host].incarnation |= 1;
        let incarnation = hosts.0[host].incarnation;
        Process { world: self.clone(), host, incarnation }
    }

    /// Kills the process of a host, if there is one: nothing of it goes on.
    pub fn kill(&self, host: usize, why: &str) {
        let mut hosts = self.hosts.lock();
        let host = &mut hosts.0[host];
        if host.incarnation.is_multiple_of(2) {
            return;
        }
        host.incarnation += 1;
        let name = host.name.clone();
        let memory = host.registry.take();
        drop(hosts);
        self.note(format_args!("KILL {name}: {why}"));
        drop(memory);
    }

    /// Whether the process of this number lives.
    pub fn lives(&self, number: u64) -> bool {
        let hosts = self.hosts.lock();
        let host = hosts.0.get((number >> 32) as usize);
        host.is_some_and(|host| host.incarnation == number & u64::from(u32::MAX))
    }

    /// What the host at an address serves now, and as which process.
    pub fn serving(self: &Arc<World>, address: &str) -> Option<(Process, Arc<Registry>)> {
        let hosts = self.hosts.lock();
        let (number, host) = hosts.0.iter().enumerate().find(|(_, h)| h.name == address)?;
        let incarnation = host.incarnation;
        let process = Process { world: self.clone(), host: number, incarnation };
        Some((process, host.registry.clone()?))
    }
}

impl Process {
    /// From now on requests to this host go to `registry`.
    pub fn serve(&self, registry: Arc<Registry>) {
        self.check();
        self.world.hosts.lock().0[self.host].registry = Some(registry);
    }

    /// Whether nobody has killed it.
    pub fn is_alive(&self) -> bool {
        self.world.hosts.lock().0[self.host].incarnation == self.incarnation
    }

    /// Returns only if it is alive.
    pub fn check(&self) {
        if !self.is_alive() && !std::thread::panicking() {
            resume_unwind(Box::new(self.end()));
        }
    }

    /// A number that no other process of any host has.
    pub const fn number(&self) -> u64 {
        (self.host as u64) << 32 | self.incarnation
    }

    /// How a thread of this process ends when it is killed.
    pub const fn end(&self) -> Unwind {
        Unwind::Killed(self.host, self.incarnation)
    }

    /// Lets time pass; a process that is killed meanwhile does not return.
    pub fn pause(&self, span: Duration) {
        self.world.pause(span);
        self.check();
    }

    /// Kills itself and does not return.
    pub fn die(&self, why: &str) {
        self.world.kill(self.host, why);
        self.check();
    }
}

impl Env for Process {
    fn now(&self) -> Timespec {
        let skew = self.world.hosts.lock().0[self.host].skew;
        let since = self.world.stamp() + skew;
        Timespec::from_nanos(EPOCH * 1_000_000_000 + since.as_nanos() as i128)
    }

    fn monotonic(&self) -> Duration {
        self.world.now()
    }

    fn sleep(&self, duration: Duration) {
        self.pause(duration);
    }

    fn random(&self) -> u64 {
        self.world.bits()
    }
}
