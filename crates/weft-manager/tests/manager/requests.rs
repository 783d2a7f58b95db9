//! The manager over a store in memory: what it answers, and what restarts and crashes leave.

use crate::common::{Clock, ask, beat, info, open};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::sync::Arc;
use weft_model::map::TargetState;
use weft_model::{ErrorKind, Fid, TargetId};
use weft_rpc::pb::{self, manager as mgr};
use weft_rpc::{Bulk, Message, Request, Role, Service};
use weft_store::MemKv;

const OST0: TargetId = TargetId::ost(0);
const MDT0: TargetId = TargetId::mdt(0);

fn state(manager: &weft_manager::Manager, id: TargetId) -> TargetState {
    manager.map().target(id).unwrap().state
}

#[test]
fn a_map_survives_restart_and_power_cut() {
    let (kv, clock) = (Arc::new(MemKv::new()), Arc::new(Clock::default()));
    let manager = open(&kv, &clock);
    ask(&manager, beat("a", &[MDT0, OST0])).unwrap();
    let pool = mgr::SetPool { name: "p".into(), targets: vec![0] };
    ask(&manager, pool).unwrap();
    let sequence = ask(&manager, mgr::AllocateSequence { mdt: 0 }).unwrap();
    assert_eq!(sequence.sequence, 2);
    let before = manager.map();
    drop(manager);
    for crash in [|kv: &MemKv| kv.crash_process(), |kv: &MemKv| kv.crash_power(|_| 0)] {
        crash(&kv);
        let manager = open(&kv, &clock);
        assert_eq!(manager.map(), before);
        assert_eq!(manager.map().mdt_of(Fid::ROOT), Some(MDT0));
    }
    let again = ask(&open(&kv, &clock), mgr::AllocateSequence { mdt: 0 }).unwrap();
    assert_eq!(again.sequence, 3);
}

#[test]
fn client_identities_never_come_twice() {
    let (kv, clock) = (Arc::new(MemKv::new()), Arc::new(Clock::default()));
    let mut last = 0;
    for round in 0..3 {
        let manager = open(&kv, &clock);
        for _ in 0..1500 {
            let reply = ask(&manager, mgr::RegisterClient::default()).unwrap();
            assert!(reply.client > last && reply.map.is_some());
            assert!(round > 0 || reply.client == last + 1);
            last = reply.client;
        }
        kv.crash_power(|_| 0);
    }
}

#[test]
fn clients_are_listed_until_they_leave_or_fall_silent() {
    let (kv, clock) = (Arc::new(MemKv::new()), Arc::new(Clock::default()));
    let manager = open(&kv, &clock);
    let register = |host: &str| {
        let request = mgr::RegisterClient { host: host.into(), ..Default::default() };
        ask(&manager, request).unwrap().client
    };
    let (first, second, third) = (register("x"), register("y"), register("z"));
    let hosts = |manager: &weft_manager::Manager| -> Vec<String> {
        let list = ask(manager, mgr::ListClients {}).unwrap().clients;
        list.into_iter().map(|client| client.host).collect()
    };
    ask(&manager, mgr::RenewClient { client: second, leaving: true }).unwrap();
    assert_eq!(hosts(&open(&kv, &clock)), ["x", "z"], "a restart keeps the list");
    clock.advance(200.0);
    ask(&manager, mgr::RenewClient { client: first, leaving: false }).unwrap();
    clock.advance(200.0);
    manager.tick().unwrap();
    assert_eq!(hosts(&manager), ["x"]);
    ask(&manager, mgr::RenewClient { client: third, leaving: false }).unwrap();
    assert_eq!(hosts(&manager).len(), 2);
    let unknown = ask(&manager, mgr::RenewClient { client: 5000, leaving: false }).unwrap_err();
    assert_eq!(unknown.kind, ErrorKind::NoSession);
    let other = mgr::RenewClient { client: first, leaving: true }.into_request();
    let error = manager.serve(&info(Role::Client, third), &other, Bulk::None).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Denied);
}

#[test]
fn silent_nodes_are_down_and_come_back() {
    let (kv, clock) = (Arc::new(MemKv::new()), Arc::new(Clock::default()));
    let manager = open(&kv, &clock);
    ask(&manager, beat("a", &[OST0])).unwrap();
    ask(&manager, beat("b", &[MDT0])).unwrap();
    for _ in 0..6 {
        clock.advance(1.0);
        ask(&manager, beat("b", &[MDT0])).unwrap();
        manager.tick().unwrap();
    }
    assert_eq!(
        (state(&manager, OST0), state(&manager, MDT0)),
        (TargetState::Down, TargetState::Up)
    );
    let epoch = manager.map().epoch;
    ask(&manager, beat("a", &[OST0])).unwrap();
    assert_eq!((state(&manager, OST0), manager.map().epoch.0), (TargetState::Up, epoch.0 + 1));
    ask(&manager, mgr::Heartbeat { stopping: true, ..beat("a", &[OST0]) }).unwrap();
    assert_eq!(state(&manager, OST0), TargetState::Down);
    // Given up, so another node may have it at once.
    ask(&manager, beat("b", &[MDT0, OST0])).unwrap();
    assert_eq!(manager.map().node_of(OST0).unwrap().name, "b");
    let late = ask(&manager, beat("a", &[OST0])).unwrap_err();
    assert_eq!(late.kind, ErrorKind::Busy);
}

#[test]
fn a_restarted_manager_gives_nodes_time_to_report() {
    let (kv, clock) = (Arc::new(MemKv::new()), Arc::new(Clock::default()));
    ask(&open(&kv, &clock), beat("a", &[OST0])).unwrap();
    clock.advance(1000.0);
    let manager = open(&kv, &clock);
    manager.tick().unwrap();
    assert_eq!(state(&manager, OST0), TargetState::Up);
    assert!(ask(&manager, beat("b", &[OST0])).is_err());
    clock.advance(5.1);
    manager.tick().unwrap();
    assert_eq!(state(&manager, OST0), TargetState::Down);
}

#[test]
fn maps_go_to_those_who_lack_them_and_space_to_metadata_servers() {
    let (kv, clock) = (Arc::new(MemKv::new()), Arc::new(Clock::default()));
    let manager = open(&kv, &clock);
    let reply = ask(&manager, beat("a", &[MDT0])).unwrap();
    let epoch = reply.map.unwrap().epoch;
    assert_eq!(reply.interval_ms, 1000);
    let have = |have_epoch| ask(&manager, mgr::GetMap { have_epoch }).unwrap().map;
    assert!(have(epoch).is_none() && have(0).is_some());
    ask(&manager, beat("b", &[OST0])).unwrap();
    let epoch = have(0).unwrap().epoch;
    let with_space = |node: &str, id, free| {
        let mut beat = mgr::Heartbeat { have_epoch: epoch, ..beat(node, &[id]) };
        beat.targets[0].space = Some(pb::Space { free, ..Default::default() });
        ask(&manager, beat).unwrap().map
    };
    clock.advance(3.0);
    assert!(with_space("b", OST0, 99).is_none(), "an OSS needs no space figures");
    let map = with_space("a", MDT0, 1).unwrap();
    let shown = map.targets.iter().find(|target| target.id == OST0.to_wire()).unwrap();
    assert_eq!((map.epoch, shown.space.unwrap().free), (epoch, 99));
    assert!(with_space("a", MDT0, 1).is_none(), "not each time");
}

#[test]
fn what_the_book_cannot_keep_is_not_shown() {
    let (kv, clock) = (Arc::new(MemKv::new()), Arc::new(Clock::default()));
    let manager = open(&kv, &clock);
    let before = manager.map();
    kv.set_fault(Some(ErrorKind::NoSpace));
    assert!(ask(&manager, beat("a", &[OST0])).is_err());
    assert!(ask(&manager, mgr::RegisterClient::default()).is_err());
    assert_eq!(manager.map(), before);
    kv.set_fault(None);
    ask(&manager, beat("a", &[OST0])).unwrap();
    assert_eq!(ask(&manager, mgr::RegisterClient::default()).unwrap().client, 1);
}

#[test]
fn a_book_of_another_cluster_or_format_is_refused() {
    use weft_store::{Batch, Kv};
    let (kv, clock) = (Arc::new(MemKv::new()), Arc::new(Clock::default()));
    drop(open(&kv, &clock));
    let open = |cluster: &str| {
        let settings = weft_manager::Settings { cluster: cluster.into(), ..Default::default() };
        weft_manager::Manager::open(kv.clone(), clock.clone(), settings).map(drop)
    };
    assert_eq!(open("other").unwrap_err().kind, ErrorKind::Invalid);
    open("").unwrap();
    kv.write(Batch::new().put(b"m/map", &[0xff])).unwrap();
    assert_eq!(open("c").unwrap_err().kind, ErrorKind::Corrupt);
    kv.write(Batch::new().put(b"m/format", &[2, 0, 0, 0])).unwrap();
    assert_eq!(open("c").unwrap_err().kind, ErrorKind::Version);
}

#[test]
fn random_requests_never_panic() {
    let (kv, clock) = (Arc::new(MemKv::new()), Arc::new(Clock::default()));
    let manager = open(&kv, &clock);
    let mut rng = SmallRng::seed_from_u64(7);
    for _ in 0..20_000 {
        let body: Vec<u8> = (0..rng.random_range(0..24)).map(|_| rng.random_range(0..32)).collect();
        let Ok(request) = Request::decode(rng.random_range(0x101..0x10a), &body) else { continue };
        let _ = manager.serve(&info(Role::Server, 0), &request, Bulk::None);
        let number = |rng: &mut SmallRng| match rng.random_range(0..3) {
            0 => rng.random(),
            1 => u64::MAX,
            _ => rng.random_range(0..3),
        };
        let odd = mgr::Heartbeat {
            node: ["a", "b", ""][rng.random_range(0..3)].into(),
            addresses: vec![],
            targets: vec![mgr::ServedTarget {
                id: number(&mut rng) as u32 & 0x3_0003,
                uuid: ["u", "v", ""][rng.random_range(0..3)].into(),
                space: None,
            }],
            have_epoch: number(&mut rng),
            stopping: rng.random(),
        };
        let _ = ask(&manager, odd);
        let _ = ask(&manager, mgr::RenewClient { client: number(&mut rng), leaving: rng.random() });
        clock.advance(rng.random_range(0.0..3.0));
        manager.tick().unwrap();
    }
    assert_eq!(open(&kv, &clock).map().epoch, manager.map().epoch);
}
