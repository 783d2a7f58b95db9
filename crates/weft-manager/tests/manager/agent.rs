//! Agents, a manager and metrics in one process, wired as a server process wires them.

use crate::common::{Clock, open};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use weft_manager::{NodeAgent, Served};
use weft_model::map::{Space, TargetState};
use weft_model::{ClientId, Epoch, ErrorKind, FsError, TargetId};
use weft_rpc::Role;
use weft_rpc::channel::Identity;
use weft_rpc::pb::NodeStats;
use weft_rpc::registry::Registry;
use weft_rpc::router::{Patience, Router};
use weft_store::MemKv;

const OST0: TargetId = TargetId::ost(0);

fn process(clock: &Arc<Clock>) -> (Arc<Registry>, Arc<Router>) {
    let registry = Arc::new(Registry::default());
    let identity =
        Identity { role: Role::Server, client: ClientId::NONE, name: "t".into(), key: None };
    let router = Router::new(identity, vec![], Some(registry.clone()), clock.clone());
    (registry, Arc::new(router))
}

fn served(uuid: &str) -> Vec<Served> {
    let space = || Ok(Space { free: 5, ..Space::default() });
    vec![Served { id: OST0, uuid: uuid.into(), space: Box::new(space) }]
}

#[test]
fn an_agent_joins_reports_and_leaves() {
    let clock = Arc::new(Clock::default());
    let (registry, router) = process(&clock);
    let manager = Arc::new(open(&Arc::new(MemKv::new()), &clock));
    registry.add(TargetId::MGT, manager.clone());
    let agent =
        |uuid: &str| NodeAgent::new("n", vec![], served(uuid), router.clone(), registry.clone());
    let first = agent("u");
    first.announce(&Patience::of(Duration::from_secs(1))).unwrap();
    assert_eq!(router.map().epoch, Epoch(2));
    assert_eq!(router.map().target(OST0).unwrap().space.free, 5);
    assert_eq!(first.beat().unwrap(), Duration::from_secs(1));
    assert_eq!(agent("v").beat().unwrap_err().kind, ErrorKind::Exists);
    first.stop();
    first.stop();
    assert!(first.is_stopping());
    assert_eq!(manager.map().target(OST0).unwrap().state, TargetState::Down);
    assert_eq!(router.map().epoch, Epoch(3));
    let text = registry.metrics().text();
    assert!(text.contains(r#"_count{target="MGT0000",op="Heartbeat"} 4"#), "{text}");
}

#[test]
fn a_target_that_cannot_tell_its_space_gets_nothing_placed() {
    let clock = Arc::new(Clock::default());
    let (registry, router) = process(&clock);
    registry.add(TargetId::MGT, Arc::new(open(&Arc::new(MemKv::new()), &clock)));
    let space = Box::new(|| Err(FsError::new(ErrorKind::Io, "statfs")));
    let targets = vec![Served { id: OST0, uuid: "u".into(), space }];
    NodeAgent::new("n", vec![], targets, router.clone(), registry).beat().unwrap();
    assert_eq!(router.map().target(OST0).unwrap().space.free, 0);
}

#[test]
fn a_metadata_server_learns_who_has_room_without_a_new_epoch() {
    let clock = Arc::new(Clock::default());
    let (registry, router) = process(&clock);
    registry.add(TargetId::MGT, Arc::new(open(&Arc::new(MemKv::new()), &clock)));
    let free = Arc::new(AtomicU64::new(5));
    let told = free.clone();
    let space = move || Ok(Space { free: told.load(Relaxed), ..Space::default() });
    let mdt = Served { id: TargetId::mdt(0), uuid: "m".into(), space: Box::new(space) };
    let agent = NodeAgent::new("n", vec![], vec![mdt], router.clone(), registry);
    agent.beat().unwrap();
    free.store(3, Relaxed);
    clock.advance(2.0);
    agent.beat().unwrap();
    let map = router.map();
    assert_eq!((map.targets[0].space.free, map.epoch), (3, Epoch(2)));
}

#[test]
fn an_agent_without_a_manager_says_so() {
    let clock = Arc::new(Clock::default());
    let (registry, router) = process(&clock);
    let agent = NodeAgent::new("n", vec![], served("u"), router, registry);
    assert_eq!(agent.beat().unwrap_err().kind, ErrorKind::TimedOut);
    let replaced = |error: &FsError| panic!("not replaced, only alone: {error}");
    let worker = Arc::new(agent).start(replaced).unwrap();
    drop(worker);
}

#[test]
fn figures_of_the_process_are_shown() {
    let clock = Arc::new(Clock::default());
    let (registry, router) = process(&clock);
    let settings = weft_manager::Settings {
        node: "n7".into(),
        metrics: Some(registry.metrics().clone()),
        ..Default::default()
    };
    let manager =
        Arc::new(weft_manager::Manager::open(Arc::new(MemKv::new()), clock, settings).unwrap());
    manager.register_figures(registry.metrics());
    registry.add(TargetId::MGT, manager.clone());
    NodeAgent::new("n", vec![], served("u"), router.clone(), registry.clone()).beat().unwrap();
    let stats = router.ask(TargetId::MGT, NodeStats {}, &Patience::FOREVER).unwrap();
    assert_eq!(stats.node, "n7");
    let epoch = stats.metrics.iter().find(|metric| metric.name == "weft_map_epoch").unwrap();
    assert_eq!(epoch.value, 2.0);
    let text = registry.metrics().text();
    assert!(text.contains("weft_targets{state=\"up\"} 1\n"), "{text}");
}

#[test]
fn a_node_that_was_replaced_hears_of_it_and_one_that_was_only_silent_does_not() {
    let clock = Arc::new(Clock::default());
    let (registry, router) = process(&clock);
    registry.add(TargetId::MGT, Arc::new(open(&Arc::new(MemKv::new()), &clock)));
    let agent = |node| {
        let agent = NodeAgent::new(node, vec![], served("u"), router.clone(), registry.clone());
        Arc::new(agent)
    };
    let (first, second) = (agent("first"), agent("second"));
    first.beat().unwrap();
    clock.advance(60.0);
    first.beat().unwrap();
    assert_eq!(second.beat().unwrap_err().kind, ErrorKind::Busy);
    clock.advance(60.0);
    second.beat().unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    let replaced = move |error: &FsError| {
        let _ = tell.send(error.to_string());
    };
    let worker = first.start(replaced).unwrap();
    let why = told.recv_timeout(Duration::from_secs(10)).unwrap();
    assert!(why.contains("OST0000"), "{why}");
    drop(worker);
}
