//! Bytes of small files: who may bring them, who gets them, and how they leave for objects.

use crate::world::*;
use std::sync::atomic::Ordering;
use weft_model::{ErrorKind, Fid, Xid, checksum};
use weft_rpc::pb::mds::{self, Place};

impl World {
    fn inline_file(&self, name: &str, data: &[u8]) -> Fid {
        self.delegating(1);
        let (fid, entry) = self.create(name, 1);
        assert_eq!((entry.place(), entry.delegated), (Place::Empty, true));
        self.bring(fid, 0, data, true).unwrap();
        fid
    }

    fn bring(&self, fid: Fid, offset: u64, data: &[u8], fresh: bool) -> Result<(), ErrorKind> {
        let report = mds::UpdateWritten {
            fid: fid.0,
            written: Some(bytes(offset, data, fresh)),
            returned: false,
        };
        self.ask(report).map(drop).map_err(|error| error.kind)
    }

    fn read_as(&self, client: u64, fid: Fid) -> Result<(Vec<u8>, u64), ErrorKind> {
        let reply = self.ask_as(client, Xid::NONE, mds::ReadInline { fid: fid.0 });
        let reply = reply.map_err(|error| error.kind)?;
        let data = reply.data.unwrap();
        assert_eq!(checksum::verify(0, &data.data, &data.sums), Ok(()));
        Ok((data.data, reply.size))
    }

    fn move_out(&self, fid: Fid, unsynced: bool) -> Result<(), ErrorKind> {
        let moved = self.ask(mds::MoveOut { fid: fid.0, unsynced });
        moved.map(drop).map_err(|error| error.kind)
    }
}

fn bytes(offset: u64, data: &[u8], fresh: bool) -> mds::Written {
    let extent = mds::Extent { offset, data: data.to_vec(), sums: checksum::compute(offset, data) };
    mds::Written { data: vec![extent], inline: true, fresh, ..written(0, 1).unwrap() }
}

#[test]
fn what_is_brought_comes_with_the_next_open_and_survives_a_restart() {
    let mut world = World::new();
    let fid = world.inline_file("f", b"hello");
    world.bring(fid, 8, b"world", false).unwrap();
    assert_eq!(world.read_as(1, fid).unwrap(), (b"hello\0\0\0world".to_vec(), 13));
    let close = mds::Close { fid: fid.0, handle: 1, written: None, flock_owner: None };
    world.ask(close).unwrap();
    world.restart();
    world.delegating(1);
    world.ask(mds::Reclaim { done: true, ..Default::default() }).unwrap();
    world.session(2);
    let entry = world.open_as(2, fid, 1, 1);
    assert_eq!((entry.place(), entry.data.unwrap().data.len()), (Place::Inline, 13));
    assert_eq!(entry.attr.unwrap().blocks, 1);
    assert!(world.ost.sizes.lock().is_empty(), "no object was made");
}

#[test]
fn bytes_are_refused_from_who_has_no_delegation_or_beside_objects_or_too_many_or_damaged() {
    let world = World::new();
    let fid = world.inline_file("f", b"x");
    assert_eq!(world.bring(fid, 16 << 10, b"y", false), Err(ErrorKind::NotInline));
    assert_eq!(world.bring(fid, u64::MAX, b"y", false), Err(ErrorKind::NotInline));
    let mut damaged = bytes(0, b"y", false);
    damaged.data[0].sums[0] ^= 1;
    let report = mds::UpdateWritten { fid: fid.0, written: Some(damaged), returned: false };
    assert_eq!(world.ask(report).unwrap_err().kind, ErrorKind::Checksum);
    assert_eq!(world.read_as(1, fid).unwrap().0, b"x");
    let close = mds::Close { fid: fid.0, handle: 1, written: None, flock_owner: None };
    world.ask(close).unwrap();
    assert_eq!(world.bring(fid, 0, b"y", false), Err(ErrorKind::NotInline), "not delegated");
    let (fid, _) = world.create("g", 2);
    assert_eq!(world.bring(fid, 0, b"y", false), Err(ErrorKind::NotInline), "not said to be new");
    let in_objects = mds::UpdateWritten { fid: fid.0, written: written(100, 1), returned: false };
    world.ask(in_objects).unwrap();
    assert_eq!(world.bring(fid, 0, b"y", true), Err(ErrorKind::NotInline), "there are objects");
}

#[test]
fn only_who_has_the_file_open_reads_it_there() {
    let world = World::new();
    let fid = world.inline_file("f", b"x");
    world.session(2);
    assert_eq!(world.read_as(2, fid), Err(ErrorKind::Access));
}

#[test]
fn moved_out_it_is_in_objects_for_good() {
    let world = World::new();
    let fid = world.inline_file("f", b"hello");
    world.move_out(fid, false).unwrap();
    assert_eq!(world.ost.sizes.lock()[&(fid.0, 0)], 5);
    assert_eq!(world.read_as(1, fid), Err(ErrorKind::NotInline));
    assert_eq!(world.bring(fid, 0, b"y", true), Err(ErrorKind::NotInline));
    assert_eq!(world.size(fid), 5);
    world.move_out(fid, false).unwrap();
    assert_eq!(world.open_as(1, fid, 3, 2).place(), Place::Objects);
}

#[test]
fn while_an_ost_is_down_it_stays_and_what_was_left_there_is_cut_later() {
    let world = World::new();
    let fid = world.inline_file("f", b"hello");
    world.ost.down.store(true, Ordering::Relaxed);
    assert!(world.move_out(fid, true).is_err());
    assert_eq!(world.read_as(1, fid).unwrap().0, b"hello");
    world.ost.down.store(false, Ordering::Relaxed);
    // The try had written more than there is now.
    world.grow_object(fid, 9000);
    world.move_out(fid, true).unwrap();
    assert_eq!(world.ost.sizes.lock()[&(fid.0, 0)], 5);
}

#[test]
fn cut_and_grown_it_reads_as_zeros_between() {
    let world = World::new();
    let fid = world.inline_file("f", b"hello");
    for size in [2, 6] {
        let cut = mds::SetAttr { cred: root(), fid: fid.0, size: Some(size), ..Default::default() };
        world.ask(cut).unwrap();
    }
    assert_eq!(world.read_as(1, fid).unwrap(), (b"he".to_vec(), 6));
    // Who has not heard of the cut cannot undo it.
    let late = mds::UpdateWritten { fid: fid.0, written: written(5000, 1), returned: false };
    let close = mds::Close { fid: fid.0, handle: 1, written: None, flock_owner: None };
    world.ask(close).unwrap();
    world.session(2);
    world.ask_as(2, Xid::NONE, late).unwrap();
    assert_eq!(world.size(fid), 6);
}

#[test]
fn removed_it_leaves_nothing() {
    let world = World::new();
    let fid = world.inline_file("f", b"hello");
    let close = mds::Close { fid: fid.0, handle: 1, written: None, flock_owner: None };
    world.ask(close).unwrap();
    let unlink = mds::Unlink { cred: root(), parent: Fid::ROOT.0, name: b"f".to_vec() };
    world.ask(unlink).unwrap();
    assert!(world.keys_of_kind(b'B').is_empty() && world.keys_of_kind(b'G').is_empty());
}

#[test]
fn a_power_cut_that_takes_back_the_way_out_is_made_good_by_the_next_report() {
    let world = World::new();
    let fid = world.inline_file("f", b"hello");
    // The client has moved it out and written on; the MDT does not know.
    world.grow_object(fid, 9000);
    let report = mds::UpdateWritten { fid: fid.0, written: written(9000, 2), returned: false };
    world.ask(report).unwrap();
    assert_eq!(world.open_as(1, fid, 3, 2).place(), Place::Objects);
    assert!(world.keys_of_kind(b'B').is_empty());
}
