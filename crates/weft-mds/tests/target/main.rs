//! A metadata target over a store in memory, with a pretended OST: exactly once, crashes and restarts,
//! truncation in its steps, clients that die.

mod check;
mod delegations;
mod grants;
mod inline;
mod world;

use self::world::*;
use std::sync::atomic::Ordering;
use std::time::Duration;
use weft_model::{Env, ErrorKind, Fid, Xid};
use weft_rpc::pb::mds;

#[test]
fn a_resent_request_gets_its_first_answer_even_after_a_restart() {
    let mut world = World::new();
    world.session(1);
    let mkdir = || mds::Mkdir {
        cred: root(),
        parent: Fid::ROOT.0,
        name: b"d".to_vec(),
        mode: 0o755,
        umask: 0,
    };
    let first = world.ask_as(1, Xid::new(3, 1), mkdir()).unwrap();
    assert_eq!(world.ask_as(1, Xid::new(3, 1), mkdir()).unwrap(), first);
    let other = world.ask_as(1, Xid::new(4, 1), mkdir()).unwrap_err();
    assert_eq!(other.kind, ErrorKind::Exists);
    world.restart();
    let refused = world.ask_as(1, Xid::new(3, 1), mkdir()).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::NoSession);
    let opened = world.session(1);
    assert!(opened.known && opened.recovering);
    world.ask(mds::Reclaim { done: true, ..Default::default() }).unwrap();
    assert_eq!(world.ask_as(1, Xid::new(3, 1), mkdir()).unwrap(), first);
    let past = world.ask_as(1, Xid::new(3, 0), mkdir()).unwrap_err();
    assert_eq!(past.kind, ErrorKind::Protocol);
}

#[test]
fn nothing_answered_is_lost_in_a_restart() {
    let mut world = World::new();
    world.session(1);
    let files: Vec<Fid> = (0..50).map(|i| world.create(&format!("f{i}"), i).0).collect();
    world.unlink("f7");
    world.restart();
    world.session(1);
    world.ask(mds::Reclaim { done: true, ..Default::default() }).unwrap();
    for (i, fid) in files.iter().enumerate() {
        match world.lookup(&format!("f{i}")) {
            Ok(entry) => assert_eq!(entry.attr.unwrap().fid, fid.0),
            Err(error) => assert!(i == 7 && error.kind == ErrorKind::NotFound),
        }
    }
    // FIDs are never used again.
    let (new, _) = world.create("new", 99);
    assert!(!files.contains(&new));
}

#[test]
fn an_open_file_survives_its_last_name_and_the_restart() {
    let mut world = World::new();
    world.session(1);
    let (fid, _) = world.create("f", 5);
    world.grow_object(fid, 100);
    world.unlink("f");
    assert!(world.ask(mds::GetAttr { fid: fid.0, want_layout: false }).is_ok());
    world.restart();
    world.session(1);
    let opens = vec![mds::OpenHandle { fid: fid.0, handle: 5, flags: 3 }];
    world.ask(mds::Reclaim { opens, done: true, ..Default::default() }).unwrap();
    world.mds.tick();
    assert!(world.ost.sizes.lock().contains_key(&(fid.0, 0)));
    let close = mds::Close { fid: fid.0, handle: 5, written: written(100, 1), flock_owner: None };
    world.ask(close).unwrap();
    world.mds.tick();
    assert!(world.ost.sizes.lock().is_empty());
    let gone = world.ask(mds::GetAttr { fid: fid.0, want_layout: false }).unwrap_err();
    assert_eq!(gone.kind, ErrorKind::Stale);
}

#[test]
fn a_dead_clients_file_gets_the_size_of_its_objects() {
    let mut world = World::new();
    world.session(1);
    let (fid, _) = world.create("f", 5);
    world.grow_object(fid, 12_345);
    world.session(2);
    let seen = world.ask_as(2, Xid::NONE, mds::GetAttr { fid: fid.0, want_layout: false }).unwrap();
    assert!(seen.written_elsewhere && seen.layout.is_some());
    // The MDT restarts, and the client never comes back.
    world.restart();
    world.env.advance(Duration::from_secs(11));
    world.mds.tick();
    world.session(3);
    let entry =
        world.ask_as(3, Xid::NONE, mds::GetAttr { fid: fid.0, want_layout: false }).unwrap();
    assert_eq!((entry.attr.unwrap().size, entry.written_elsewhere), (12_345, false));
}

#[test]
fn truncation_is_finished_after_a_crash_between_its_steps() {
    let mut world = World::new();
    world.session(1);
    let (fid, _) = world.create("f", 5);
    world.grow_object(fid, 10_000);
    let close =
        mds::Close { fid: fid.0, handle: 5, written: written(10_000, 1), flock_owner: None };
    world.ask(close).unwrap();
    assert_eq!(world.size(fid), 10_000);
    let cut = || mds::SetAttr { cred: root(), fid: fid.0, size: Some(10), ..Default::default() };
    world.ost.down.store(true, Ordering::Relaxed);
    assert!(world.ask(cut()).is_err());
    assert_eq!(world.size(fid), 10_000);
    world.restart();
    world.ost.down.store(false, Ordering::Relaxed);
    world.mds.tick();
    assert_eq!(world.ost.sizes.lock()[&(fid.0, 0)], 10);
    world.session(1);
    world.ask(mds::Reclaim { done: true, ..Default::default() }).unwrap();
    assert_eq!(world.size(fid), 10);
}

#[test]
fn a_late_report_does_not_undo_a_truncation() {
    let world = World::new();
    world.session(1);
    let (fid, _) = world.create("f", 5);
    world.grow_object(fid, 1000);
    world.session(2);
    let cut = mds::SetAttr { cred: root(), fid: fid.0, size: Some(10), ..Default::default() };
    world.ask_as(2, Xid::NONE, cut).unwrap();
    let report = mds::UpdateWritten { fid: fid.0, written: written(1000, 1), returned: false };
    world.ask(report).unwrap();
    assert_eq!(world.size(fid), 10);
    // What was written after the truncation counts.
    world.grow_object(fid, 50);
    let report = mds::UpdateWritten { fid: fid.0, written: written(50, 2), returned: false };
    world.ask(report).unwrap();
    assert_eq!(world.size(fid), 50);
}

#[test]
fn appends_get_places_of_their_own() {
    let mut world = World::new();
    world.session(1);
    world.session(2);
    let (fid, _) = world.create("log", 5);
    let open = mds::Open { cred: root(), fid: fid.0, flags: 6, handle: 1 };
    world.ask_as(2, Xid::NONE, open).unwrap();
    let append = |world: &World, client, observed, glimpsed_for| {
        let request =
            mds::Append { fid: fid.0, len: 10, observed, glimpsed_for, ..Default::default() };
        world.ask_as(client, Xid::NONE, request)
    };
    let told = append(&world, 1, 0, 0).unwrap().glimpse_for;
    assert_ne!(told, 0);
    assert_eq!(append(&world, 1, 0, told).unwrap().offset, 0);
    assert_eq!(append(&world, 2, 0, told).unwrap().offset, 10);
    assert_eq!(append(&world, 1, 35, told).unwrap().offset, 35);

    // After a restart nobody gets a place before all have told theirs, nor for what he saw before it.
    world.restart();
    let handle = |handle| mds::OpenHandle { fid: fid.0, handle, flags: 6 };
    let appends = vec![mds::ReservedEnd { fid: fid.0, end: 45, size_epoch: 0 }];
    let mine = mds::Reclaim { opens: vec![handle(5)], appends, done: true, ..Default::default() };
    let theirs = mds::Reclaim { opens: vec![handle(1)], done: true, ..Default::default() };
    world.session(2);
    world.ask_as(2, Xid::NONE, theirs).unwrap();
    assert_eq!(append(&world, 2, 0, told).unwrap_err().kind, ErrorKind::NotReady);
    world.session(1);
    world.ask(mine).unwrap();
    let again = append(&world, 2, 0, told).unwrap().glimpse_for;
    assert!(again != 0 && again != told);
    assert_eq!(append(&world, 2, 0, again).unwrap().offset, 45);
}

#[test]
fn locks_go_with_their_client_and_come_back_by_reclaim() {
    let mut world = World::new();
    world.session(1);
    world.session(2);
    let (fid, _) = world.create("f", 5);
    let lock = |owner| mds::Lock { fid: fid.0, owner, kind: 1, end: 9, ..Default::default() };
    assert!(world.ask(lock(1)).unwrap().granted);
    assert!(!world.ask_as(2, Xid::NONE, lock(1)).unwrap().granted);
    world.restart();
    world.session(2);
    world.ask_as(2, Xid::NONE, mds::Reclaim { done: true, ..Default::default() }).unwrap();
    let early = world.ask_as(2, Xid::NONE, lock(1)).unwrap_err();
    assert_eq!(early.kind, ErrorKind::NotReady);
    world.session(1);
    let locks = vec![lock(1)];
    world.ask(mds::Reclaim { locks, done: true, ..Default::default() }).unwrap();
    assert!(!world.ask_as(2, Xid::NONE, lock(1)).unwrap().granted);
    world.env.advance(Duration::from_secs(9));
    world.ask_as(2, Xid::NONE, mds::RenewSession {}).unwrap();
    world.env.advance(Duration::from_secs(5));
    world.mds.tick();
    assert!(world.ask_as(2, Xid::NONE, lock(1)).unwrap().granted);
}

#[test]
fn a_directory_is_read_completely_while_entries_come_and_go() {
    let world = World::new();
    world.session(1);
    (0..2000).for_each(|i| drop(world.create(&format!("stay{i}"), 1)));
    let (mut position, mut seen, mut step) = (0, Vec::new(), 0);
    loop {
        let request = mds::Readdir {
            cred: root(),
            dir: Fid::ROOT.0,
            position,
            max_bytes: 4096,
            with_attr: step % 2 == 0,
        };
        let reply = world.ask(request).unwrap();
        seen.extend(reply.entries.iter().map(|entry| entry.name.clone()));
        position = reply.entries.last().map_or(position, |last| last.position);
        if reply.end {
            break;
        }
        world.create(&format!("come{step}"), 1);
        if step > 0 {
            world.unlink(&format!("come{}", step - 1));
        }
        step += 1;
    }
    let mut stayed: Vec<_> = seen.iter().filter(|name| name.starts_with(b"stay")).collect();
    let count = stayed.len();
    stayed.sort();
    stayed.dedup();
    assert_eq!((count, stayed.len()), (2000, 2000));
}

#[test]
fn a_waiter_is_told_when_its_lock_is_free_and_in_its_turn() {
    let world = World::new();
    for client in [1, 2, 3] {
        world.session(client);
    }
    let (fid, _) = world.create("f", 5);
    let lock = |owner, kind| mds::Lock {
        fid: fid.0,
        owner,
        kind,
        end: 9,
        wait: true,
        ..mds::Lock::default()
    };
    let take = |client| world.ask_as(client, Xid::NONE, lock(client, 1)).unwrap().granted;
    let free = |client, wait_ms| {
        let request = mds::AwaitLock { lock: Some(lock(client, 1)), wait_ms };
        let since = std::time::Instant::now();
        (world.ask_as(client, Xid::NONE, request).unwrap().free, since.elapsed())
    };
    assert!(take(1) && !take(2) && !take(3));
    assert!(!free(2, 0).0);
    let (told, waited) = free(2, 50);
    assert!(!told && waited >= Duration::from_millis(50));
    std::thread::scope(|scope| {
        let [second, third] = [2, 3].map(|client| scope.spawn(move || free(client, 900)));
        std::thread::sleep(Duration::from_millis(100));
        world.ask(lock(1, 2)).unwrap();
        let (told, waited) = second.join().unwrap();
        assert!(told && waited < Duration::from_millis(600), "{told} after {waited:?}");
        // It is not taken by waiting, and who came later is not before.
        assert!(!third.is_finished() && take(2));
        world.ask_as(2, Xid::NONE, mds::CloseSession {}).unwrap();
        let (told, waited) = third.join().unwrap();
        assert!(told && waited < Duration::from_millis(800), "{told} after {waited:?}");
    });
    assert!(take(3));
}

#[test]
fn a_handle_that_its_client_never_heard_of_is_closed_by_its_number() {
    let world = World::new();
    world.session(1);
    let (fid, _) = world.create("f", 5);
    let open = mds::Open { cred: root(), fid: fid.0, flags: 3, handle: 6 };
    world.ask(open).unwrap();
    world.unlink("f");
    let close = |handle| mds::Close { handle, ..mds::Close::default() };
    world.ask(close(5)).unwrap();
    assert_eq!(world.mds.counts().1, 1);
    world.ask(close(6)).unwrap();
    // Nothing is open under it: it never was, or is closed already.
    world.ask(close(7)).unwrap();
    world.ask(close(6)).unwrap();
    assert_eq!(world.mds.counts().1, 0);
    world.mds.sync().unwrap();
    assert!(world.ask(mds::GetAttr { fid: fid.0, want_layout: false }).is_err());
}

#[test]
fn a_target_that_stops_does_not_wait_for_osts_that_are_gone() {
    let mut world = World::new();
    for client in 1..6 {
        world.session(client);
        for file in 0..4 {
            let name = format!("f{client}.{file}");
            let request = mds::Create {
                cred: root(),
                parent: Fid::ROOT.0,
                name: name.into(),
                flags: 3,
                handle: file,
                ..Default::default()
            };
            world.ask_as(client, Xid::NONE, request).unwrap();
        }
    }
    world.ost.gone.store(true, Ordering::Relaxed);
    world.env.advance(Duration::from_secs(11));
    let (begun, mds) = (world.env.monotonic(), world.mds.clone());
    // Somebody asks it to stop after a second of waiting.
    let mut sleeps = 0;
    world.env.meanwhile(move || {
        sleeps += 1;
        if sleeps == 10 {
            mds.stop();
        }
    });
    world.mds.tick();
    let waited = world.env.monotonic() - begun;
    assert!(waited < Duration::from_secs(3), "{waited:?}");
    // Nothing is lost by that.
    world.ost.gone.store(false, Ordering::Relaxed);
    world.restart();
    world.env.advance(Duration::from_secs(11));
    world.mds.tick();
    world.session(9);
    let found = world.look_up_as(9, "f3.2").unwrap().entry.unwrap();
    assert!(!found.written_elsewhere);
}
