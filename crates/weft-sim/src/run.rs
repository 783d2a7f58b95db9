//! A run: sets up a cluster, lets clients work in it while things go wrong, and looks what came of it.

use crate::actor::unwound;
use crate::cluster::{BEAT_INTERVAL, Cluster, LEASE, OSTS};
use crate::contest::Contest;
use crate::kept::Kept;
use crate::plan::{Plan, Sabotage};
use crate::process::Process;
use crate::reference::{Hand, Tree};
use crate::world::World;
use crate::{check, power};
use parking_lot::Mutex;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use weft_client::{Ctx, Rounds};
use weft_model::layout::{ComponentSpec, EOF, LayoutSpec};

/// How long things go wrong, at most.
const STORM: Duration = Duration::from_secs(300);

/// What came of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// The first thing that was wrong.
    pub failure: Option<String>,
    /// Of everything that happened.
    pub digest: u64,
    /// Number of events.
    pub events: u64,
}

/// What the actors of a run share.
pub struct Stage {
    /// Time and chance.
    pub world: Arc<World>,
    /// The servers.
    pub cluster: Arc<Cluster>,
    /// Trees that nobody is at work in.
    pub trees: Mutex<Vec<Tree>>,
    trees_made: AtomicUsize,
    contest: Mutex<Option<Arc<Contest>>>,
    /// Clients at work.
    pub(crate) working: AtomicUsize,
    /// Operations of clients that have begun.
    done: AtomicUsize,
}

/// Runs a plan. With `tracing` every event is printed.
pub fn run(plan: Plan, tracing: bool) -> Outcome {
    let world = World::new(plan, tracing);
    let stage = Arc::new(Stage {
        world: world.clone(),
        cluster: Cluster::start(&world),
        trees: Mutex::default(),
        trees_made: AtomicUsize::new(0),
        contest: Mutex::default(),
        working: AtomicUsize::new(0),
        done: AtomicUsize::new(0),
    });
    world.spawn("director", move || stage.direct());
    let failure = world.play().err();
    let (digest, events) = world.digest();
    Outcome { failure, digest, events }
}

impl Stage {
    /// A client on a new host, in the director's hands.
    pub fn hire(&self, name: &str) -> (Process, Hand) {
        let process = self.world.start(self.world.add_host(name));
        let hand = self.mount(&process);
        (process, hand)
    }

    fn mount(&self, process: &Process) -> Hand {
        let client = self.cluster.mount(process).unwrap_or_else(|error| panic!("mount: {error}"));
        let kept = Arc::new(Kept::new(self.world.plan.sabotage == Some(Sabotage::IgnoreRecalls)));
        if self.world.plan.caches {
            kept.attend(&self.world, process, &client);
        }
        Hand { world: self.world.clone(), client, number: process.number(), kept }
    }

    fn direct(self: &Arc<Stage>) {
        self.set_up();
        self.world.faults.store(true, Ordering::Relaxed);
        let plan = &self.world.plan;
        let mut clients = Vec::new();
        for index in 0..plan.clients {
            let (stage, name) = (self.clone(), format!("client{index}"));
            let host = self.world.add_host(&name);
            clients.push(host);
            self.working.fetch_add(1, Ordering::Relaxed);
            self.world.spawn(&name, move || stage.work(host));
        }
        let servers = self.cluster.hosts.iter().copied().enumerate();
        let servers = servers.filter(|&(index, _)| index != 1 || plan.kill_mds).map(|(_, h)| h);
        self.spawn_killer("killer", plan.kill_every_ms, servers.collect());
        self.spawn_killer("reaper", plan.client_dies_every_ms, clients.clone());
        // In the midst of work: later there is nothing that was not synced.
        let power_fails_after = self.world.below((plan.ops * plan.clients).max(1) as u64) as usize;
        while self.working.load(Ordering::Relaxed) > 0 {
            if plan.power && self.done.load(Ordering::Relaxed) >= power_fails_after {
                break;
            }
            // An MDS that is killed all the time never ends its recovery.
            if self.world.now() >= STORM {
                self.world.faults.store(false, Ordering::Relaxed);
            }
            self.world.pause(Duration::from_millis(5));
        }
        self.world.faults.store(false, Ordering::Relaxed);
        if plan.power {
            power::fail(self, &clients);
        } else {
            self.look();
        }
        self.cluster.stop();
    }

    /// Waits for the servers, and makes the trees and the arena.
    fn set_up(&self) {
        let (process, hand) = self.hire("setup");
        while hand.client.map().osts().count() < OSTS {
            self.world.pause(Duration::from_millis(10));
            hand.client.keep_alive(&mut Rounds::default());
        }
        // The MDS learns of the object servers with its next heartbeat.
        self.world.pause(BEAT_INTERVAL * 2);
        let (client, ctx) = (&hand.client, Ctx::root());
        hand.must("set layout", client.set_layout(&ctx, client.root(), &striped()));
        *self.contest.lock() = Some(Arc::new(Contest::new(&hand)));
        for _ in 0..=self.world.plan.clients {
            let tree = self.new_tree(&hand);
            self.trees.lock().push(tree);
        }
        hand.unmount();
        process.world.kill(process.host, "set up");
    }

    fn new_tree(&self, hand: &Hand) -> Tree {
        Tree::new(hand, self.trees_made.fetch_add(1, Ordering::Relaxed))
    }

    /// The lives of a client, one after the other, until all of its operations are done.
    fn work(&self, host: usize) {
        let mut ops = self.world.plan.ops;
        while ops > 0 && self.cluster.powered.load(Ordering::Relaxed) {
            let process = self.world.start(host);
            let life = catch_unwind(AssertUnwindSafe(|| self.live(&process, &mut ops)));
            match life {
                Ok(()) => self.world.kill(host, "done"),
                Err(cause) if unwound(&*cause) == Some(process.end()) => {}
                Err(cause) => resume_unwind(cause),
            }
            self.world.pause(self.world.span(1_000, 100_000));
        }
        self.working.fetch_sub(1, Ordering::Relaxed);
    }

    fn live(&self, process: &Process, ops: &mut usize) {
        let hand = self.mount(process);
        let mut rounds = Rounds::default();
        while *ops > 0 {
            *ops -= 1;
            self.done.fetch_add(1, Ordering::Relaxed);
            hand.client.keep_alive(&mut rounds);
            match self.world.below(100) {
                0..12 => {
                    let contest = self.contest.lock().clone();
                    contest.into_iter().for_each(|contest| contest.step(&hand));
                }
                12 => (0..self.world.below(20)).for_each(|_| {
                    process.pause(Duration::from_millis(500));
                    hand.client.keep_alive(&mut rounds);
                }),
                _ => self.work_in_a_tree(&hand),
            }
        }
        let mut trees = self.trees.lock().len();
        while trees > 0 {
            trees -= 1;
            let mut tree = self.trees.lock().remove(0);
            tree.close_all(&hand);
            self.trees.lock().push(tree);
        }
        hand.unmount();
    }

    /// Whether everything that was written in a tree is bound to be there.
    pub(crate) fn is_known(&self, tree: &Tree) -> bool {
        !self.world.plan.writes_behind || !tree.was_left_open(|number| self.world.lives(number))
    }

    /// A client that dies in a tree leaves it in an unknown state: nobody works there any more.
    fn work_in_a_tree(&self, hand: &Hand) {
        let mut trees = self.trees.lock();
        let free = trees.len();
        let taken = (free > 0).then(|| trees.swap_remove(self.world.below(free as u64) as usize));
        drop(trees);
        let known = taken.filter(|tree| self.is_known(tree));
        let mut tree = known.unwrap_or_else(|| self.new_tree(hand));
        tree.forget_dead(|number| self.world.lives(number));
        tree.step(hand);
        self.trees.lock().push(tree);
    }

    fn spawn_killer(self: &Arc<Stage>, name: &str, every_ms: u64, victims: Vec<usize>) {
        if every_ms == 0 || victims.is_empty() {
            return;
        }
        let stage = self.clone();
        self.world.spawn(name, move || {
            let world = &stage.world;
            loop {
                world.pause(world.span(1, every_ms * 2_000));
                if !world.faults.load(Ordering::Relaxed) {
                    return;
                }
                world.kill(victims[world.below(victims.len() as u64) as usize], "by chance");
            }
        });
    }

    /// All is quiet: is everything there, and nothing else?
    fn look(&self) {
        // Until the sessions of dead clients have ended.
        self.world.pause(LEASE * 3);
        let (_, hand) = self.hire("auditor");
        let trees = std::mem::take(&mut *self.trees.lock());
        for tree in trees.iter().filter(|tree| self.is_known(tree)) {
            check::tree(&hand, tree);
        }
        let contest = self.contest.lock().take();
        contest.into_iter().for_each(|contest| contest.check(&hand));
        hand.unmount();
        self.world.pause(Duration::from_secs(2));
        check::stores(&self.cluster);
    }
}

/// Small stripes, and a first component of one object: transfers cross many objects.
fn striped() -> LayoutSpec {
    let first = ComponentSpec {
        end: 16_384,
        stripe_unit: 4096,
        stripe_count: 1,
        ..ComponentSpec::default()
    };
    let rest = ComponentSpec { end: EOF, stripe_count: OSTS as i32, ..first.clone() };
    LayoutSpec { components: vec![first, rest] }
}
