//! Write delegations: who gets them, who waits for them, and what becomes of who does not return them.

use crate::world::*;
use std::time::Duration;
use weft_mds::grants::LIFE;
use weft_model::{Env, ErrorKind, Xid};
use weft_rpc::pb::mds::{self, AwaitRecalls};

impl World {
    /// From now on session 1 gives back what is recalled, having written up to `end`.
    fn give_back(&self, end: u64) {
        let mds = self.mds.clone();
        self.env.meanwhile(move || {
            for recall in ask_of(&mds, 1, AwaitRecalls::default()).recalls {
                if recall.delegation {
                    let written = written(end, 5);
                    ask_of(
                        &mds,
                        1,
                        mds::UpdateWritten { fid: recall.fid, written, returned: true },
                    );
                }
            }
        });
    }

    fn reclaim_as(&self, client: u64, reclaim: mds::Reclaim) -> Result<(), ErrorKind> {
        self.ask_as(client, Xid::NONE, reclaim).map(|_| ()).map_err(|error| error.kind)
    }
}

#[test]
fn who_alone_has_a_file_open_gets_it_and_others_wait_for_its_return() {
    let world = World::new();
    world.delegating(1);
    world.delegating(2);
    let (fid, entry) = world.create("f", 1);
    assert!(entry.delegated);
    assert!(world.open_as(1, fid, 3, 2).delegated, "its own handles do not matter");
    world.give_back(77);
    let found = world.look_up_as(2, "f").unwrap().entry.unwrap();
    assert_eq!((found.attr.unwrap().size, found.written_elsewhere), (77, true));
    assert!(!world.open_as(1, fid, 3, 3).delegated, "contended");
    assert!(!world.open_as(2, fid, 3, 1).delegated, "others have it open");
    world.env.advance(Duration::from_secs(10));
    assert!(!world.open_as(1, fid, 3, 4).delegated, "others have it open");
}

#[test]
fn without_taking_part_or_for_reading_only_nothing_is_delegated() {
    let world = World::new();
    world.session(1);
    let (fid, entry) = world.create("f", 1);
    assert!(!entry.delegated);
    world.ask(mds::Close { fid: fid.0, handle: 1, ..Default::default() }).unwrap();
    world.delegating(2);
    assert!(!world.open_as(2, fid, 1, 1).delegated);
    assert!(world.open_as(2, fid, 2, 2).delegated);
}

#[test]
fn closing_ends_it() {
    let world = World::new();
    world.delegating(1);
    world.delegating(2);
    let (fid, _) = world.create("f", 1);
    world.ask(mds::Close { fid: fid.0, handle: 1, ..Default::default() }).unwrap();
    let start = world.env.monotonic();
    assert!(world.open_as(2, fid, 3, 1).delegated);
    // No longer than what it was granted to read lasts.
    assert!(world.env.monotonic() - start < LIFE / 2);
}

#[test]
fn who_is_not_heard_of_is_ended() {
    let world = World::new();
    world.delegating(1);
    world.delegating(2);
    let (fid, _) = world.create("f", 1);
    world.grow_object(fid, 10);
    let mds = world.mds.clone();
    world.env.meanwhile(move || mds.tick());
    let start = world.env.monotonic();
    let found = world.look_up_as(2, "f").unwrap().entry.unwrap();
    let took = world.env.monotonic() - start;
    assert!(took >= LIFE - Duration::from_millis(100) && took < LIFE * 2, "{took:?}");
    assert_eq!((found.attr.unwrap().size, found.written_elsewhere), (10, false));
    let renewed = world.ask(mds::RenewSession {});
    assert_eq!(renewed.unwrap_err().kind, ErrorKind::NoSession);
}

#[test]
fn after_a_restart_others_wait_until_the_session_has_come_back() {
    let mut world = World::new();
    world.delegating(1);
    world.delegating(2);
    let (fid, _) = world.create("f", 1);
    world.restart();
    world.delegating(2);
    world.reclaim_as(2, mds::Reclaim { done: true, ..Default::default() }).unwrap();
    let mds = world.mds.clone();
    let mut step = 0;
    world.env.meanwhile(move || {
        step += 1;
        match step {
            500 => {
                let open =
                    mds::OpenSession { caches: true, delegations: true, ..Default::default() };
                ask_of(&mds, 1, open);
                let opens = vec![mds::OpenHandle { fid: fid.0, handle: 1, flags: 3 }];
                ask_of(&mds, 1, mds::Reclaim { opens, ..Default::default() });
                ask_of(&mds, 1, mds::Reclaim { delegations: vec![fid.0], ..Default::default() });
                ask_of(&mds, 1, mds::Reclaim { done: true, ..Default::default() });
            }
            1000 => {
                let recalls = ask_of(&mds, 1, AwaitRecalls::default()).recalls;
                assert!(recalls.iter().any(|recall| recall.delegation && recall.fid == fid.0));
                let written = written(55, 5);
                ask_of(&mds, 1, mds::UpdateWritten { fid: fid.0, written, returned: true });
            }
            _ => {}
        }
    });
    let found = world.look_up_as(2, "f").unwrap().entry.unwrap();
    assert_eq!(found.attr.unwrap().size, 55);
}

#[test]
fn what_others_may_have_had_cannot_be_reclaimed() {
    let mut world = World::new();
    world.delegating(1);
    let (fid, _) = world.create("f", 1);
    world.restart();
    world.delegating(1);
    let delegations = || mds::Reclaim { delegations: vec![fid.0], ..Default::default() };
    world.reclaim_as(1, delegations()).unwrap();
    world.reclaim_as(1, mds::Reclaim { done: true, ..Default::default() }).unwrap();
    assert_eq!(world.reclaim_as(1, delegations()), Err(ErrorKind::Stale));
}
