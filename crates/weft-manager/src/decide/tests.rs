use super::*;

const GIB: u64 = 1 << 30;

fn served(id: TargetId, uuid: &str) -> BeatTarget {
    BeatTarget { id, uuid: uuid.into(), space: Space { free: GIB, ..Space::default() } }
}

fn beat(node: &str, targets: &[(TargetId, &str)]) -> Beat {
    Beat {
        node: node.into(),
        addresses: vec![format!("{node}:7070")],
        targets: targets.iter().map(|&(id, uuid)| served(id, uuid)).collect(),
        have_epoch: Epoch(0),
        stopping: false,
    }
}

const OST0: TargetId = TargetId::ost(0);
const OST1: TargetId = TargetId::ost(1);
const MDT0: TargetId = TargetId::mdt(0);

/// MDT0000 and OST0000 on node a, OST0001 on node b; epoch 3.
fn cluster() -> ClusterMap {
    let map = first_map("c");
    let (_, next) = heartbeat(&map, &beat("a", &[(OST0, "u0"), (MDT0, "um")]), &|_| true).unwrap();
    let (_, next) = heartbeat(&next.unwrap(), &beat("b", &[(OST1, "u1")]), &|_| true).unwrap();
    next.unwrap()
}

/// Target, its node's number and its state.
fn shown(map: &ClusterMap) -> Vec<(TargetId, u32, TargetState)> {
    map.targets.iter().map(|target| (target.id, target.node.0, target.state)).collect()
}

#[test]
fn the_first_map_has_a_volume_whose_root_is_found() {
    let map = first_map("c");
    assert_eq!((map.epoch, map.volumes[0].name.as_str()), (Epoch(1), "weft"));
    assert_eq!(map.mdt_of(map.volumes[0].root), Some(MDT0));
}

#[test]
fn heartbeats_that_are_welcome() {
    use TargetState::{Down, Drain, Up};
    let with = |change: fn(&mut Beat)| {
        let mut beat = beat("b", &[(OST1, "u1")]);
        change(&mut beat);
        beat
    };
    let state = |state| {
        let mut map = cluster();
        map.targets[2].state = state;
        map
    };
    // What is said, by a cluster in which state, while what is alive: what becomes of OST0001 and
    // the epoch.
    type Case = (&'static str, Beat, ClusterMap, bool, (u32, TargetState), u64);
    let cases: Vec<Case> = vec![
        ("the same again", with(|_| ()), cluster(), true, (2, Up), 3),
        ("new space", with(|b| b.targets[0].space.free = 1), cluster(), true, (2, Up), 3),
        ("back from down", with(|_| ()), state(Down), false, (2, Up), 4),
        ("a drain stays", with(|_| ()), state(Drain), false, (2, Drain), 3),
        ("another address", with(|b| b.addresses[0].push('1')), cluster(), true, (2, Up), 4),
        ("stopping", with(|b| b.stopping = true), cluster(), true, (2, Down), 4),
        ("stopping again", with(|b| b.stopping = true), state(Down), false, (2, Down), 3),
        ("moves when silent", beat("a", &[(OST1, "u1")]), cluster(), false, (1, Up), 4),
        ("moves when down", beat("a", &[(OST1, "u1")]), state(Down), false, (1, Up), 4),
        ("moves to a new node", beat("z", &[(OST1, "u1")]), state(Down), false, (3, Up), 4),
        (
            "a farewell takes nothing along",
            Beat { stopping: true, ..beat("a", &[(OST1, "u1")]) },
            cluster(),
            false,
            (2, Up),
            3,
        ),
        ("the book was put back", with(|b| b.have_epoch = Epoch(90)), cluster(), true, (2, Up), 91),
    ];
    for (what, beat, map, alive, (node, state), epoch) in cases {
        let (_, next) =
            heartbeat(&map, &beat, &|_| alive).unwrap_or_else(|e| panic!("{what}: {e}"));
        let after = next.as_ref().unwrap_or(&map);
        let target = after.target(OST1).unwrap();
        assert_eq!((target.node.0, target.state), (node, state), "{what}");
        assert_eq!(after.epoch, Epoch(epoch), "{what}");
        assert_eq!(next.is_some(), epoch != 3, "{what}");
    }
}

#[test]
fn heartbeats_that_are_refused() {
    let cases = [
        ("index taken", beat("b", &[(OST0, "other")]), ErrorKind::Exists, "uuid=u0"),
        (
            "known under another name",
            beat("b", &[(TargetId::ost(7), "u0")]),
            ErrorKind::Invalid,
            "known as OST0000",
        ),
        ("served elsewhere", beat("b", &[(OST0, "u0")]), ErrorKind::Busy, "node1 serves it"),
        (
            "twice the same superblock",
            beat("b", &[(TargetId::ost(5), "x"), (TargetId::ost(6), "x")]),
            ErrorKind::Invalid,
            "known as OST0005",
        ),
        ("nameless node", beat("", &[]), ErrorKind::Invalid, "needs a name"),
        ("nameless target", beat("b", &[(OST1, "")]), ErrorKind::Invalid, "needs a uuid"),
        (
            "an epoch out of this world",
            Beat { have_epoch: Epoch(u64::MAX), ..beat("b", &[]) },
            ErrorKind::Invalid,
            "cannot be right",
        ),
    ];
    for (what, beat, kind, why) in cases {
        let error = heartbeat(&cluster(), &beat, &|_| true).unwrap_err();
        assert_eq!(error.kind, kind, "{what}");
        assert!(error.to_string().contains(why), "{what}: {error}");
    }
}

#[test]
fn nodes_and_targets_are_numbered_and_sorted() {
    use TargetState::Up;
    let map = cluster();
    assert_eq!(shown(&map), vec![(MDT0, 1, Up), (OST0, 1, Up), (OST1, 2, Up)]);
    assert_eq!(map.target(OST1).unwrap().space.free, GIB);
    let names: Vec<_> = map.nodes.iter().map(|node| (node.id.0, node.name.as_str())).collect();
    assert_eq!(names, vec![(1, "a"), (2, "b")]);
}

#[test]
fn space_is_noted_without_an_epoch() {
    let mut map = cluster();
    let mut beat = beat("b", &[(OST1, "u1"), (TargetId::ost(9), "u9")]);
    beat.targets[0].space.free = 77;
    note_space(&mut map, &beat);
    assert_eq!((map.target(OST1).unwrap().space.free, map.epoch), (77, Epoch(3)));
}

#[test]
fn the_silent_are_down() {
    use TargetState::{Down, Drain, Up};
    let mut map = cluster();
    assert_eq!(expire(&map, &|_| true), None);
    map.targets[2].state = Drain;
    let next = expire(&map, &|target| target == MDT0).unwrap();
    assert_eq!(shown(&next), vec![(MDT0, 1, Up), (OST0, 1, Down), (OST1, 2, Drain)]);
    assert_eq!(next.epoch, Epoch(4));
    assert_eq!(expire(&next, &|target| target == MDT0), None);
}

#[test]
fn operators_drain_and_use_again() {
    use TargetState::{Down, Drain, Up};
    let map = cluster();
    let drained = set_target_state(&map, OST1, Drain, &|_| true).unwrap().unwrap();
    assert_eq!((drained.target(OST1).unwrap().state, drained.epoch), (Drain, Epoch(4)));
    assert_eq!(set_target_state(&drained, OST1, Drain, &|_| true).unwrap(), None);
    for (alive, state) in [(true, Up), (false, Down)] {
        let used = set_target_state(&drained, OST1, Up, &|_| alive).unwrap().unwrap();
        assert_eq!(used.target(OST1).unwrap().state, state);
    }
    let told = set_target_state(&map, OST1, Down, &|_| true).unwrap_err();
    assert_eq!(told.kind, ErrorKind::Invalid);
    let unknown = set_target_state(&map, TargetId::ost(9), Up, &|_| true).unwrap_err();
    assert_eq!(unknown.kind, ErrorKind::NotFound);
}

#[test]
fn pools_are_made_changed_and_removed() {
    let map = cluster();
    let made = set_pool(&map, "fast", &[1, 0, 1]).unwrap().unwrap();
    assert_eq!((made.pool("fast").unwrap().targets.as_slice(), made.epoch.0), (&[0, 1][..], 4));
    assert_eq!(set_pool(&made, "fast", &[0, 1]).unwrap(), None);
    let changed = set_pool(&made, "fast", &[1]).unwrap().unwrap();
    assert_eq!(changed.pool("fast").unwrap().targets, vec![1]);
    let removed = set_pool(&changed, "fast", &[]).unwrap().unwrap();
    assert_eq!((removed.pools.len(), removed.epoch.0), (0, 6));
    for (name, targets, kind) in [
        ("fast", &[][..], ErrorKind::NotFound),
        ("fast", &[9][..], ErrorKind::Invalid),
        ("", &[1][..], ErrorKind::Invalid),
        ("a b", &[1][..], ErrorKind::Invalid),
    ] {
        assert_eq!(set_pool(&map, name, targets).unwrap_err().kind, kind, "{name:?} {targets:?}");
    }
}

#[test]
fn sequences_are_fresh_and_kept_together() {
    let (_, next) =
        heartbeat(&cluster(), &beat("a", &[(TargetId::mdt(1), "um1")]), &|_| true).unwrap();
    let mut map = next.unwrap();
    let mut given = Vec::new();
    for mdt in [0, 0, 1, 0] {
        let (sequence, next) = allocate_sequence(&map, mdt).unwrap();
        assert_eq!(next.epoch.0, map.epoch.0 + 1);
        assert_eq!(next.mdt_of(Fid::new(sequence, 5)), Some(TargetId::mdt(mdt)));
        given.push(sequence);
        map = next;
    }
    assert_eq!(given, vec![2, 3, 4, 5]);
    let range = |first, last, mdt| SequenceRange { first, last, mdt };
    assert_eq!(map.sequences, vec![range(1, 3, 0), range(4, 4, 1), range(5, 5, 0)]);
    assert_eq!(allocate_sequence(&map, 9).unwrap_err().kind, ErrorKind::NotFound);
    map.sequences.push(range(6, Fid::MAX_SEQUENCE, 0));
    assert_eq!(allocate_sequence(&map, 0).unwrap_err().kind, ErrorKind::NoSpace);
}

#[test]
fn what_is_dead_can_be_removed() {
    let map = set_pool(&cluster(), "fast", &[1]).unwrap().unwrap();
    let kind = |outcome: Result<ClusterMap>| outcome.unwrap_err().kind;
    let (dead, living) = (&|_| false, &|_| true);
    assert_eq!(kind(remove_target(&map, TargetId::ost(9), true, dead)), ErrorKind::NotFound);
    assert_eq!(kind(remove_target(&map, OST1, true, living)), ErrorKind::Busy);
    assert_eq!(kind(remove_target(&map, OST1, false, dead)), ErrorKind::NotEmpty);
    assert_eq!(kind(remove_target(&map, MDT0, true, dead)), ErrorKind::Invalid);
    let left = remove_target(&map, OST1, true, dead).unwrap();
    assert_eq!((left.targets.len(), left.pools.len(), left.epoch.0), (2, 0, map.epoch.0 + 1));
    assert_eq!(kind(remove_node(&map, "c", true, dead)), ErrorKind::NotFound);
    assert_eq!(kind(remove_node(&map, "b", false, dead)), ErrorKind::NotEmpty);
    assert_eq!(kind(remove_node(&map, "b", true, living)), ErrorKind::Busy);
    assert_eq!(kind(remove_node(&map, "a", true, dead)), ErrorKind::Invalid);
    let names = |map: &ClusterMap| map.nodes.iter().map(|n| n.name.clone()).collect::<Vec<_>>();
    let gone = remove_node(&map, "b", true, dead).unwrap();
    assert_eq!((names(&gone), gone.targets.len()), (vec!["a".to_string()], 2));
    let empty = remove_node(&left, "b", false, living).unwrap();
    assert_eq!((names(&empty), empty.epoch.0), (vec!["a".to_string()], left.epoch.0 + 1));
}
