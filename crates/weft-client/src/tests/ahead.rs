//! Reading ahead: what is fetched, what of it is handed out, and what must not be.

use super::fake::{Fake, UNIT, create};
use crate::{Advice, Client, ClientConfig, Ctx, OpenFile};
use std::sync::Arc;
use std::time::Duration;
use weft_model::SetAttr;

/// Stripe units of the file.
const UNITS: usize = 64;

fn pattern(seed: usize) -> Vec<u8> {
    (0..UNITS * UNIT).map(|at| (at / 97 + seed) as u8).collect()
}

/// A client that reads ahead, and a file of which it has been granted the attributes.
fn start(grant_ms: u32, max_ahead: usize) -> (Arc<Fake>, Arc<Client>, OpenFile) {
    let ahead_chunk = 4 * UNIT as u64;
    let config = ClientConfig { caches: true, max_ahead, ahead_chunk, ..ClientConfig::default() };
    let (fake, client) = Fake::start_for(4, config);
    let file = create(&client, "f");
    client.write(&Ctx::root(), &file, 0, &pattern(0)).unwrap();
    fake.world.lock().grant_ms = grant_ms;
    fake.world.lock().read_delay = Duration::from_micros(300);
    (fake, client, file)
}

/// Reads one unit and has everything done that it has asked for.
fn read(client: &Client, file: &OpenFile, unit: usize) -> Vec<u8> {
    let mut buf = vec![0xee; UNIT];
    let got = client.read(&Ctx::root(), file, (unit * UNIT) as u64, &mut buf).unwrap();
    while client.read_some_ahead(Duration::ZERO) {}
    buf.truncate(got);
    buf
}

fn reads_of_osts(fake: &Fake) -> usize {
    fake.world.lock().log.iter().filter(|name| **name == "Read").count()
}

#[test]
fn a_stream_is_read_ahead_in_large_pieces_and_every_byte_once() {
    let (fake, client, file) = start(60_000, 1 << 20);
    let data: Vec<u8> = (0..UNITS + 2).flat_map(|unit| read(&client, &file, unit)).collect();
    assert!(data == pattern(0));
    // The first two came from nowhere, and while the first grant is asked for one more did.
    assert_eq!(client.metrics().ahead_bytes(), ((UNITS - 3) * UNIT) as u64);
    assert_eq!(reads_of_osts(&fake), UNITS);
}

#[test]
fn without_a_grant_nothing_is_kept() {
    let (_fake, client, file) = start(0, 1 << 20);
    let data: Vec<u8> = (0..UNITS).flat_map(|unit| read(&client, &file, unit)).collect();
    assert!(data == pattern(0));
    assert_eq!(client.metrics().ahead_bytes(), 0);
}

#[test]
fn a_recall_and_the_end_of_a_grant_end_it() {
    let (fake, client, file) = start(60_000, 1 << 20);
    let change_elsewhere = |byte: u8| {
        let mut world = fake.world.lock();
        world.objects.values_mut().for_each(|object| object.fill(byte));
    };
    (0..8).for_each(|unit| drop(read(&client, &file, unit)));
    client.grants.void(file.fid());
    change_elsewhere(0xaa);
    assert!(read(&client, &file, 8) == [0xaa; UNIT]);
    fake.world.lock().grant_ms = 100;
    file.inode.ahead().ask(Duration::ZERO, Duration::ZERO);
    client.getattr(&Ctx::root(), file.fid()).unwrap();
    (9..12).for_each(|unit| drop(read(&client, &file, unit)));
    let before = client.metrics().ahead_bytes();
    assert!(read(&client, &file, 12) == [0xaa; UNIT] && client.metrics().ahead_bytes() > before);
    fake.world.lock().grant_ms = 0;
    std::thread::sleep(Duration::from_millis(120));
    change_elsewhere(0xbb);
    assert!(read(&client, &file, 13) == [0xbb; UNIT]);
}

#[test]
fn own_changes_are_seen_at_once() {
    let (ctx, (_fake, client, file)) = (Ctx::root(), start(60_000, 1 << 20));
    (0..8).for_each(|unit| drop(read(&client, &file, unit)));
    client.write(&ctx, &file, (9 * UNIT + 5) as u64, b"new").unwrap();
    assert!(read(&client, &file, 8) == pattern(0)[8 * UNIT..9 * UNIT]);
    assert_eq!(read(&client, &file, 9)[5..8], *b"new");
    (10..14).for_each(|unit| drop(read(&client, &file, unit)));
    let cut = SetAttr { size: Some((15 * UNIT + 7) as u64), ..SetAttr::default() };
    client.setattr(&ctx, file.fid(), &cut, None).unwrap();
    assert_eq!((read(&client, &file, 14).len(), read(&client, &file, 15).len()), (UNIT, 7));
    assert!(read(&client, &file, 16).is_empty());
    client.write(&ctx, &file, (16 * UNIT) as u64, b"more").unwrap();
    assert_eq!(read(&client, &file, 16), b"more");
}

#[test]
fn what_is_fetched_during_a_change_is_not_kept() {
    let (_fake, client, file) = start(60_000, 1 << 20);
    let mut buf = vec![0; UNIT];
    for unit in 0..4 {
        read(&client, &file, unit);
    }
    // The next pieces are queued, and fetched while a change is under way.
    client.read(&Ctx::root(), &file, 4 * UNIT as u64, &mut buf).unwrap();
    let changing = file.inode.changing(0..0);
    let held = file.inode.ahead().chunks.bytes();
    while client.read_some_ahead(Duration::ZERO) {}
    assert!(file.inode.ahead().chunks.bytes() < held);
    drop(changing);
}

#[test]
fn the_room_of_all_files_is_kept_and_given_back() {
    let (_fake, client, file) = start(60_000, 6 * UNIT);
    (0..20).for_each(|unit| {
        assert!(read(&client, &file, unit) == pattern(0)[unit * UNIT..(unit + 1) * UNIT]);
        assert!(client.ahead.room.held() <= 6 * UNIT as u64);
    });
    client.close(&Ctx::root(), &file, None).unwrap();
    drop(file);
    assert_eq!(client.ahead.room.held(), 0);
}

#[test]
fn readers_are_believed() {
    let (ctx, (_fake, client, file)) = (Ctx::root(), start(60_000, 1 << 20));
    let advise = |advice, range| client.advise(&ctx, &file, advice, range).unwrap();
    advise(Advice::Random, 0..0);
    (0..8).for_each(|unit| drop(read(&client, &file, unit)));
    assert_eq!(client.metrics().ahead_bytes(), 0);
    advise(Advice::Normal, 0..0);
    advise(Advice::WillNeed, 3 * UNIT as u64 + 1..7 * UNIT as u64);
    while client.read_some_ahead(Duration::ZERO) {}
    assert!(read(&client, &file, 6) == pattern(0)[6 * UNIT..7 * UNIT]);
    assert_eq!(client.metrics().ahead_bytes(), UNIT as u64);
    advise(Advice::DontNeed, 0..u64::MAX);
    assert_eq!(client.ahead.room.held(), 0);
}
