//! Time, chance and the baton.
//!
//! Every actor (a client, a server's background work, the director) is a thread, but only the one with
//! the baton runs. It gives the baton away where it waits, be it for a message or for time to pass, and
//! the baton goes to whoever wakes first. So the moments at which actors meet are chosen by the lengths
//! of their waits, and these by the seed.

use crate::actor::{self, Unwind};
use crate::plan::Plan;
use crate::process::Hosts;
use parking_lot::{Condvar, Mutex, MutexGuard};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::fmt::{Debug, Display};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Real time without any event after which an actor must be stuck holding the baton.
const STUCK: Duration = Duration::from_secs(30);

/// What everybody shares.
pub struct World {
    state: Mutex<State>,
    ended: Condvar,
    tracing: bool,
    /// What is to go wrong, as long as [`World::faults`] says so.
    pub plan: Plan,
    /// Whether anything goes wrong at present.
    pub faults: AtomicBool,
    /// Server and client processes.
    pub hosts: Mutex<Hosts>,
}

struct State {
    now: Duration,
    rng: SmallRng,
    actors: Vec<Actor>,
    running: Option<usize>,
    threads: Vec<JoinHandle<()>>,
    digest: u64,
    events: u64,
    failure: Option<String>,
}

struct Actor {
    name: String,
    /// When it goes on; none when it has ended.
    wake: Option<Duration>,
    turn: Arc<Condvar>,
}

impl World {
    /// The beginning of time. With `tracing` every event is printed.
    pub fn new(plan: Plan, tracing: bool) -> Arc<World> {
        let state = State {
            now: Duration::ZERO,
            rng: SmallRng::seed_from_u64(plan.seed),
            actors: Vec::new(),
            running: None,
            threads: Vec::new(),
            // The offset basis of FNV-1a.
            digest: 0xcbf2_9ce4_8422_2325,
            events: 0,
            failure: None,
        };
        Arc::new(World {
            state: Mutex::new(state),
            ended: Condvar::new(),
            tracing,
            plan,
            faults: AtomicBool::new(false),
            hosts: Mutex::default(),
        })
    }

    /// Virtual time since the beginning.
    pub fn now(&self) -> Duration {
        self.state.lock().now
    }

    /// A moment for a time stamp: no two are the same.
    pub fn stamp(&self) -> Duration {
        let mut state = self.state.lock();
        state.now += Duration::from_nanos(1);
        state.now
    }

    /// A number below `bound`.
    pub fn below(&self, bound: u64) -> u64 {
        self.state.lock().rng.random_range(0..bound)
    }

    /// True once in `n` times; never when `n` is 0.
    pub fn one_in(&self, n: u64) -> bool {
        n > 0 && self.below(n) == 0
    }

    /// Whether something that goes wrong once in `n` times goes wrong now.
    pub fn fault(&self, n: u64) -> bool {
        self.faults.load(Ordering::Relaxed) && self.one_in(n)
    }

    /// Random bits.
    pub fn bits(&self) -> u64 {
        self.state.lock().rng.random()
    }

    /// A span from `from` to `to` microseconds.
    pub fn span(&self, from: u64, to: u64) -> Duration {
        Duration::from_micros(from + self.below(to - from))
    }

    /// Notes an event: it is part of the digest.
    pub fn note(&self, event: impl Display) {
        let mut state = self.state.lock();
        let actor = state.running.map_or("setup", |running| &state.actors[running].name);
        let line = format!("{:>12.6} {actor:<10} {event}", state.now.as_secs_f64());
        if self.tracing {
            println!("{line}");
        }
        for byte in line.bytes() {
            state.digest = (state.digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        state.events += 1;
    }

    /// Prints more about the event that follows.
    pub fn explain(&self, more: impl Debug) {
        if self.tracing {
            let mut more = format!("{more:?}");
            more.retain(|c| c.is_ascii_graphic());
            more.truncate(400);
            println!("{:>12} {:<10} {more}", "", "");
        }
    }

    /// Digest and number of all events so far.
    pub fn digest(&self) -> (u64, u64) {
        let state = self.state.lock();
        (state.digest, state.events)
    }

    /// Adds an actor; it begins when the baton comes to it.
    pub fn spawn(self: &Arc<World>, name: &str, act: impl FnOnce() + Send + 'static) {
        let mut state = self.state.lock();
        let (number, turn) = (state.actors.len(), Arc::new(Condvar::new()));
        let wake = Some(state.now);
        state.actors.push(Actor { name: name.into(), wake, turn });
        let world = self.clone();
        let thread = thread::Builder::new().name(format!("sim-{name}")).spawn(move || {
            world.begin(number);
            let failure = actor::play(number, act);
            world.end(number, failure);
        });
        match thread {
            Ok(thread) => state.threads.push(thread),
            Err(error) => panic!("no thread for an actor: {error}"),
        }
    }

    /// Lets the actors play until all have ended. The first failure, if there was one.
    pub fn play(&self) -> Result<(), String> {
        let mut state = self.state.lock();
        let mut seen = u64::MAX;
        state.pass_on();
        while state.running.is_some() {
            let timed_out = self.ended.wait_for(&mut state, STUCK).timed_out();
            if timed_out && state.running.is_some() && seen == state.events {
                let stuck = state.running.map_or("nobody", |running| &state.actors[running].name);
                // Its thread cannot be ended; the process has to be.
                return Err(format!("{stuck} is stuck holding the baton"));
            }
            seen = state.events;
        }
        let threads = std::mem::take(&mut state.threads);
        let failure = state.failure.take();
        drop(state);
        for thread in threads {
            let _ = thread.join();
        }
        failure.map_or(Ok(()), Err)
    }

    /// Lets `span` pass; others go on meanwhile. Outside of any actor time just passes.
    pub fn pause(&self, span: Duration) {
        let mut state = self.state.lock();
        let Some(me) = actor::current() else {
            state.now += span;
            return;
        };
        // What is being unwound runs to its end at once.
        if thread::panicking() {
            return;
        }
        state.actors[me].wake = Some(state.now + span);
        state.pass_on();
        self.wait_for_turn(state, me);
    }

    fn begin(&self, me: usize) {
        let state = self.state.lock();
        let turn = state.actors[me].turn.clone();
        let mut state = state;
        while state.running != Some(me) {
            turn.wait(&mut state);
        }
    }

    fn wait_for_turn(&self, mut state: MutexGuard<'_, State>, me: usize) {
        let turn = state.actors[me].turn.clone();
        while state.running != Some(me) {
            turn.wait(&mut state);
        }
        if state.failure.is_some() {
            drop(state);
            resume_unwind(Box::new(Unwind::Over));
        }
    }

    fn end(&self, me: usize, failure: Option<String>) {
        let mut state = self.state.lock();
        state.actors[me].wake = None;
        if let Some(failure) = failure {
            let name = state.actors[me].name.clone();
            state.failure.get_or_insert(format!("{name}: {failure}"));
        }
        state.pass_on();
        if state.running.is_none() {
            self.ended.notify_all();
        }
    }
}

impl State {
    /// Gives the baton to whoever wakes first.
    fn pass_on(&mut self) {
        let awake = self.actors.iter().enumerate();
        let next = awake.filter_map(|(number, actor)| Some((actor.wake?, number))).min();
        self.running = next.map(|(_, number)| number);
        if let Some((wake, number)) = next {
            self.now = self.now.max(wake);
            self.actors[number].turn.notify_one();
        }
    }
}
