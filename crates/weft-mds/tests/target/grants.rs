//! Grants: who gets them, who has to be told before a change, and for how long.

use crate::world::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use weft_model::{Env, Fid, Xid};
use weft_rpc::pb::mds::{self, AwaitRecalls};

const TERM: Duration = Duration::from_secs(1);

impl World {
    fn caching(&self, client: u64) {
        let request = mds::OpenSession { caches: true, ..Default::default() };
        self.ask_as(client, Xid::NONE, request).unwrap();
    }

    fn mkdir_as(&self, client: u64, name: &str) -> mds::Entry {
        let parent = Fid::ROOT.0;
        let request = mds::Mkdir { cred: root(), parent, name: name.into(), mode: 0o755, umask: 0 };
        self.ask_as(client, Xid::NONE, request).unwrap()
    }

    /// How long something takes on the tests' clock.
    fn time(&self, act: impl FnOnce()) -> Duration {
        let start = self.env.monotonic();
        act();
        self.env.monotonic() - start
    }

    /// From now on the client carries out recalls; the count of them.
    fn obey(&self, client: u64) -> Arc<AtomicU64> {
        let (mds, count) = (self.mds.clone(), Arc::new(AtomicU64::new(0)));
        let (counted, mut last) = (count.clone(), AwaitRecalls::default());
        self.env.meanwhile(move || {
            let told = ask_of(&mds, client, last);
            counted.fetch_add(told.recalls.len() as u64, Ordering::Relaxed);
            let done = told.recalls.last().map_or(last.done, |recall| recall.number);
            last = AwaitRecalls { queue: told.queue, done, wait_ms: 0 };
        });
        count
    }
}

#[test]
fn only_sessions_that_keep_things_are_granted_any() {
    let world = World::new();
    world.session(1);
    world.caching(2);
    world.mkdir_as(1, "d");
    let entry = |client| world.look_up_as(client, "d").unwrap().entry.unwrap();
    assert_eq!((entry(1).grant_ms, entry(1).name_grant_ms), (0, 0));
    assert_eq!((entry(2).grant_ms, entry(2).name_grant_ms), (1000, 1000));
    assert_eq!(world.look_up_as(2, "none").unwrap().absence_grant_ms, 1000);
}

#[test]
fn a_change_waits_until_others_have_confirmed() {
    let world = World::new();
    world.caching(1);
    world.caching(2);
    world.look_up_as(2, "d").unwrap();
    let told = world.obey(2);
    let took = world.time(|| drop(world.mkdir_as(1, "d")));
    assert_eq!(told.load(Ordering::Relaxed), 1);
    assert!(took < TERM / 100, "{took:?}");
}

#[test]
fn a_change_waits_a_term_for_who_does_not_confirm_and_no_longer() {
    let world = World::new();
    world.caching(1);
    world.caching(2);
    world.look_up_as(2, "d").unwrap();
    let took = world.time(|| drop(world.mkdir_as(1, "d")));
    assert!(took >= TERM && took < TERM * 2, "{took:?}");
    let took = world.time(|| drop(world.mkdir_as(1, "e")));
    assert!(took < TERM / 100, "{took:?}");
    // What is not confirmed is told again and again.
    for _ in 0..2 {
        let told = ask_of(&world.mds, 2, AwaitRecalls::default());
        assert_eq!(told.recalls.len(), 1);
        assert_eq!((told.recalls[0].fid, told.recalls[0].is_dir), (Fid::ROOT.0, true));
    }
}

#[test]
fn own_changes_recall_nothing_and_others_are_not_granted_what_is_contended() {
    let world = World::new();
    world.caching(1);
    world.caching(2);
    world.look_up_as(1, "d").unwrap();
    let mut entry = mds::Entry::default();
    let took = world.time(|| entry = world.mkdir_as(1, "d"));
    assert!(took < TERM / 100, "{took:?}");
    assert_eq!((entry.grant_ms, entry.name_grant_ms), (1000, 1000));
    world.obey(1);
    assert_eq!(world.mkdir_as(2, "e").name_grant_ms, 0);
    assert_eq!(world.look_up_as(1, "none").unwrap().absence_grant_ms, 0);
    world.env.advance(TERM * 3);
    assert_eq!(world.look_up_as(1, "none").unwrap().absence_grant_ms, 1000);
}

#[test]
fn a_file_that_others_write_is_not_granted() {
    let world = World::new();
    world.caching(1);
    world.caching(2);
    let (fid, entry) = world.create("f", 1);
    assert_eq!(entry.grant_ms, 1000);
    assert_eq!(world.look_up_as(2, "f").unwrap().entry.unwrap().grant_ms, 0);
    let close = mds::Close { fid: fid.0, handle: 1, written: written(10, 1), flock_owner: None };
    world.ask(close).unwrap();
    assert_eq!(world.look_up_as(2, "f").unwrap().entry.unwrap().grant_ms, 1000);
    // Opening for writing tells those who read.
    let told = world.obey(2);
    let open = |flags| mds::Open { cred: root(), fid: fid.0, flags, handle: 2 };
    world.ask(open(1)).unwrap();
    assert_eq!(told.load(Ordering::Relaxed), 0);
    world.ask(open(2)).unwrap();
    assert_eq!(told.load(Ordering::Relaxed), 1);
    assert_eq!(world.look_up_as(2, "f").unwrap().entry.unwrap().grant_ms, 0);
}

#[test]
fn reading_recalls_nothing() {
    let world = World::new();
    world.caching(1);
    world.caching(2);
    let (fid, _) = world.create("f", 1);
    let close = mds::Close { fid: fid.0, handle: 1, written: written(10, 1), flock_owner: None };
    world.ask(close).unwrap();
    world.look_up_as(2, "f").unwrap();
    let open = mds::Open { cred: root(), fid: fid.0, flags: 1, handle: 2 };
    world.ask(open).unwrap();
    let atime = written(0, 5).and_then(|written| written.mtime);
    let read = Some(mds::Written { atime, ..Default::default() });
    let close = mds::Close { fid: fid.0, handle: 2, written: read, flock_owner: None };
    let took = world.time(|| assert!(world.ask(close).is_ok()));
    assert!(took < TERM / 100, "{took:?}");
}

#[test]
fn an_mdt_that_starts_waits_for_the_grants_of_its_former_life() {
    let mut world = World::new();
    world.caching(1);
    world.caching(2);
    world.restart();
    for client in [1, 2] {
        world.caching(client);
        let reclaim = mds::Reclaim { done: true, ..Default::default() };
        world.ask_as(client, Xid::NONE, reclaim).unwrap();
    }
    let took = world.time(|| drop(world.mkdir_as(1, "d")));
    assert!(took >= TERM - TERM / 10, "{took:?}");
    let took = world.time(|| drop(world.mkdir_as(1, "e")));
    assert!(took < TERM / 100, "{took:?}");
}

#[test]
fn a_lone_session_need_not_wait_for_itself() {
    let mut world = World::new();
    world.caching(1);
    world.restart();
    world.caching(1);
    let reclaim = mds::Reclaim { done: true, ..Default::default() };
    world.ask_as(1, Xid::NONE, reclaim).unwrap();
    let took = world.time(|| drop(world.mkdir_as(1, "d")));
    assert!(took < TERM / 100, "{took:?}");
}

#[test]
fn a_repeated_answer_grants_nothing() {
    let world = World::new();
    world.caching(1);
    let mkdir = |name: &str| mds::Mkdir {
        cred: root(),
        parent: Fid::ROOT.0,
        name: name.into(),
        ..Default::default()
    };
    let first = world.ask_as(1, Xid::new(0, 1), mkdir("d")).unwrap();
    let again = world.ask_as(1, Xid::new(0, 1), mkdir("d")).unwrap();
    assert_eq!((first.grant_ms, first.name_grant_ms), (1000, 1000));
    assert_eq!((again.grant_ms, again.name_grant_ms), (0, 0));
    assert_eq!(first.attr, again.attr);
}

#[test]
fn the_end_of_a_session_ends_the_wait_for_it() {
    let world = World::new();
    world.caching(1);
    world.caching(2);
    world.look_up_as(2, "d").unwrap();
    world.ask_as(2, Xid::NONE, mds::CloseSession {}).unwrap();
    let took = world.time(|| drop(world.mkdir_as(1, "d")));
    assert!(took < TERM / 100, "{took:?}");
}

#[test]
fn who_changes_a_directory_is_told_what_it_is_like_afterwards() {
    let world = World::new();
    world.session(1);
    world.caching(2);
    assert_eq!(world.mkdir_as(1, "a").parent, None);
    let (made, parent) = (world.mkdir_as(2, "b"), Fid::ROOT.0);
    let told = made.parent.unwrap();
    assert_eq!((told.fid, told.size, made.name_grant_ms), (parent, 2, 1000));
    let remove = mds::Rmdir { cred: root(), parent, name: "b".into() };
    let removed = world.ask_as(2, Xid::NONE, remove).unwrap();
    let left = removed.parent.unwrap();
    assert_eq!((left.fid, left.size, removed.parent_grant_ms), (parent, 1, 1000));
    assert!(left.change > told.change);
    let seen = world.ask_as(2, Xid::NONE, mds::GetAttr { fid: parent, want_layout: false });
    assert_eq!(seen.unwrap().attr.unwrap(), left);
}

#[test]
fn an_inode_without_attributes_is_said_to_have_none() {
    let world = World::new();
    world.caching(1);
    let made = world.mkdir_as(1, "d");
    assert!(made.bare);
    let (fid, name) = (made.attr.unwrap().fid, b"user.a".to_vec());
    let set = mds::SetXattr { cred: root(), fid, name, value: vec![1], ..Default::default() };
    world.ask_as(1, Xid::NONE, set).unwrap();
    assert!(!world.look_up_as(1, "d").unwrap().entry.unwrap().bare);
}
