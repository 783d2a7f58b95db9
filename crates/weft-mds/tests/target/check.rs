//! Objects and inodes after the MDT has lost power.

use crate::world::*;
use std::sync::atomic::Ordering;
use std::time::Duration;
use weft_model::{ClientId, Fid, Result};
use weft_rpc::pb::mds;
use weft_rpc::{Bulk, CallInfo, Message, Role, Service};

/// Longer than the lease, and than any pause between steps.
const LONG: Duration = Duration::from_secs(11);

fn check_status(world: &World, start: bool) -> mds::CheckObjectsReply {
    let info = CallInfo { role: Role::Admin, client: ClientId::NONE, ..CALL };
    let request = mds::CheckObjects { start }.into_request();
    let reply: Result<_> = world.mds.serve(&info, &request, Bulk::None);
    mds::CheckObjects::reply(reply.unwrap()).unwrap()
}

fn settle(world: &World) {
    for _ in 0..4 {
        world.env.advance(LONG);
        world.mds.tick();
    }
}

fn has_objects(world: &World, fid: Fid) -> bool {
    world.ost.sizes.lock().contains_key(&(fid.0, 0))
}

fn close(world: &World, fid: Fid, handle: u64, end: u64) {
    let written = written(end, 1);
    world.ask(mds::Close { fid: fid.0, handle, written, flock_owner: None }).unwrap();
}

#[test]
fn objects_of_lost_files_are_destroyed_and_no_others() {
    let mut world = World::new();
    world.session(1);
    let (kept, _) = world.create("kept", 1);
    world.grow_object(kept, 10);
    close(&world, kept, 1, 10);
    world.mds.sync().unwrap();
    let (lost, _) = world.create("lost", 2);
    world.grow_object(lost, 10);
    // Never handed out, or another MDT's: whoever knows of them is to be asked.
    let (strange, foreign) = (Fid::new(1, 1 << 39), Fid::new(2, 5));
    [strange, foreign].iter().for_each(|&fid| world.grow_object(fid, 10));
    world.lose_power();
    world.session(2);
    assert!(world.look_up_as(2, "lost").unwrap().entry.is_none());
    // Somebody may still be writing to what he has open.
    world.mds.tick();
    assert!(has_objects(&world, lost));
    world.ost.down.store(true, Ordering::Relaxed);
    settle(&world);
    world.ost.down.store(false, Ordering::Relaxed);
    assert!(has_objects(&world, lost));
    // Killed before it has come to it.
    world.restart();
    settle(&world);
    assert!(!has_objects(&world, lost));
    assert!([kept, strange, foreign].iter().all(|&fid| has_objects(&world, fid)));
    // Done, for good.
    world.grow_object(lost, 10);
    world.restart();
    settle(&world);
    assert!(has_objects(&world, lost));
    let status = check_status(&world, true);
    assert_eq!(status.osts_left, [0]);
    settle(&world);
    let status = check_status(&world, false);
    assert!(status.osts_left.is_empty());
    assert_eq!((status.objects, status.destroyed, status.strays), (3, 1, 1));
    assert!(!has_objects(&world, lost));
}

#[test]
fn what_was_written_and_not_synced_is_found_again() {
    let mut world = World::new();
    world.session(1);
    let [(grown, _), (first, _), (same, _)] =
        [("a", 1), ("b", 2), ("c", 3)].map(|(n, h)| world.create(n, h));
    for (fid, handle, size) in [(grown, 1, 100), (same, 3, 50)] {
        world.grow_object(fid, size);
        close(&world, fid, handle, size);
    }
    // Never written to, as far as the MDT knows.
    let handle = mds::Close { fid: first.0, handle: 2, ..Default::default() };
    world.ask(handle).unwrap();
    world.mds.sync().unwrap();
    // Opened, written, and reported: none of it is synced.
    for (fid, handle) in [(grown, 4), (first, 5)] {
        let open = mds::Open { cred: root(), fid: fid.0, flags: 3, handle };
        world.ask(open).unwrap();
        world.grow_object(fid, 5000);
        close(&world, fid, handle, 5000);
    }
    world.lose_power();
    world.session(1);
    world.ask(mds::Reclaim { done: true, ..Default::default() }).unwrap();
    assert_eq!((world.size(grown), world.size(first)), (100, 0));
    settle(&world);
    world.session(1);
    assert_eq!((world.size(grown), world.size(first), world.size(same)), (5000, 5000, 50));
    let seen = world.ask(mds::GetAttr { fid: grown.0, want_layout: false }).unwrap();
    assert!(!seen.written_elsewhere);
    let found = check_status(&world, false);
    assert_eq!((found.sizes, found.destroyed), (2, 0));
    // It is known to have objects now.
    world.unlink("b");
    settle(&world);
    assert!(!has_objects(&world, first) && has_objects(&world, grown));
}

#[test]
fn a_lost_file_stays_for_whoever_has_it_open() {
    let mut world = World::new();
    world.session(1);
    world.mds.sync().unwrap();
    let (lost, _) = world.create("lost", 7);
    world.grow_object(lost, 10);
    world.lose_power();
    world.session(1);
    let opens = vec![mds::OpenHandle { fid: lost.0, handle: 7, flags: 3 }];
    world.ask(mds::Reclaim { opens, done: true, ..Default::default() }).unwrap();
    for _ in 0..20 {
        world.env.advance(Duration::from_secs(9));
        world.ask(mds::RenewSession {}).unwrap();
        world.mds.tick();
    }
    assert!(has_objects(&world, lost));
    assert_eq!(check_status(&world, false).osts_left, [0]);
    close(&world, lost, 7, 10);
    world.env.advance(Duration::from_secs(61));
    settle(&world);
    assert!(!has_objects(&world, lost));
    assert!(check_status(&world, false).osts_left.is_empty());
}
