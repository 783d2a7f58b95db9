//! Sessions: opened again, reclaimed, lost.

use super::fake::{Fake, create};
use crate::{Client, CreateArgs, Ctx, LockKind, LockRange, OpenFile, OpenFlags, Rounds};
use std::time::Duration;
use weft_model::ErrorKind;

fn write_lock(client: &Client, file: &OpenFile) {
    let range =
        LockRange { owner: 1, flock: false, kind: LockKind::Write, start: 5, end: 9, pid: 1 };
    client.lock(&Ctx::root(), file, &range, false).unwrap();
}

#[test]
fn after_a_restart_everything_is_reclaimed() {
    let (fake, client) = Fake::start(1);
    let file = create(&client, "f");
    write_lock(&client, &file);
    {
        let mut world = fake.world.lock();
        (world.session, world.known, world.instance) = (false, true, 2);
    }
    client.getattr(&Ctx::root(), file.fid()).unwrap();
    let world = fake.world.lock();
    let opens: Vec<_> = world.reclaimed.iter().flat_map(|r| &r.opens).collect();
    let locks: Vec<_> = world.reclaimed.iter().flat_map(|r| &r.locks).collect();
    let flags = (OpenFlags::READ | OpenFlags::WRITE).to_wire();
    assert_eq!((opens.len(), opens[0].handle, opens[0].flags), (1, file.handle(), flags));
    assert_eq!((locks.len(), locks[0].start, locks[0].end, locks[0].kind), (1, 5, 9, 1));
    let done: Vec<_> = world.reclaimed.iter().map(|r| r.done).collect();
    assert!(done[..done.len() - 1].iter().all(|done| !done) && done[done.len() - 1]);
    drop(world);
    client.write(&Ctx::root(), &file, 0, b"x").unwrap();
}

#[test]
fn after_expiry_locked_files_are_stale() {
    let (fake, client) = Fake::start(1);
    let (locked, free) = (create(&client, "f"), create(&client, "g"));
    write_lock(&client, &locked);
    {
        let mut world = fake.world.lock();
        (world.session, world.known) = (false, false);
    }
    let ctx = Ctx::root();
    client.getattr(&ctx, free.fid()).unwrap();
    assert_eq!(fake.world.lock().reclaimed.iter().flat_map(|r| &r.opens).count(), 2);
    assert_eq!(fake.world.lock().reclaimed.iter().flat_map(|r| &r.locks).count(), 0);
    assert_eq!(client.write(&ctx, &locked, 0, b"x").unwrap_err().kind, ErrorKind::Stale);
    client.write(&ctx, &free, 0, b"x").unwrap();
    client.close(&ctx, &locked, None).unwrap();
}

#[test]
fn one_thread_reopens_for_all() {
    let (fake, client) = Fake::start(1);
    let fid = create(&client, "f").fid();
    for instance in 2..20 {
        {
            let mut world = fake.world.lock();
            (world.session, world.known, world.instance) = (false, true, instance);
        }
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| client.getattr(&Ctx::root(), fid).unwrap());
            }
        });
    }
    let opened = fake.world.lock().log.iter().filter(|&&name| name == "OpenSession").count();
    assert_eq!((opened, client.metrics().sessions_reopened()), (19, 18));
}

#[test]
fn unmount_closes_what_is_open() {
    let (fake, client) = Fake::start(1);
    let file = create(&client, "f");
    client.write(&Ctx::root(), &file, 0, b"abc").unwrap();
    client.unmount().unwrap();
    let world = fake.world.lock();
    assert_eq!(world.attrs[&file.fid()].0.size, 3);
    assert!(world.log.ends_with(&["Close", "CloseSession"]));
}

#[test]
fn what_was_opened_unheard_is_closed_later() {
    let (fake, client) = Fake::start(1);
    fake.world.lock().lost_answers = 1;
    let args = CreateArgs { flags: OpenFlags::WRITE, ..CreateArgs::default() };
    let error = client.create(&Ctx::root(), client.root(), b"f", &args).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Interrupted);
    let file = create(&client, "f");
    let mut rounds = Rounds::default();
    // Also by the client's own thread, which may come first.
    client.keep_alive(&mut rounds);
    client.keep_alive(&mut rounds);
    std::thread::sleep(Duration::from_millis(700));
    let closed = fake.world.lock().closed_handles.clone();
    assert!(closed.len() == 1 && closed[0] != file.handle, "{closed:?}");
}
