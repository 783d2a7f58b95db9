//! Reading and writing: striping, holes, damage, failure of a part, appending, seeking.

use super::fake::{Fake, UNIT, create, create_with};
use crate::{Ctx, OpenFlags, Whence};
use weft_model::{ErrorKind, SetAttr};

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i % 251) as u8 + 1).collect()
}

#[test]
fn stripes_and_comes_back() {
    let (fake, client) = Fake::start(3);
    let (ctx, file) = (Ctx::root(), create(&client, "f"));
    let data = pattern(10 * UNIT + 100);
    assert_eq!(client.write(&ctx, &file, 50, &data).unwrap(), data.len());
    assert_eq!(fake.world.lock().objects.len(), 3);
    let mut buf = vec![0xff; data.len() + 500];
    assert_eq!(client.read(&ctx, &file, 0, &mut buf).unwrap(), data.len() + 50);
    assert_eq!((&buf[..50], &buf[50..data.len() + 50]), (&[0; 50][..], &data[..]));
    assert_eq!(client.read(&ctx, &file, 1 << 40, &mut buf).unwrap(), 0);
    assert_eq!(client.getattr(&ctx, file.fid()).unwrap().size, data.len() as u64 + 50);
}

#[test]
fn holes_read_as_zeros_and_the_size_cuts() {
    let (_fake, client) = Fake::start(2);
    let (ctx, file) = (Ctx::root(), create(&client, "f"));
    client.write(&ctx, &file, 0, b"abc").unwrap();
    client.write(&ctx, &file, 5 * UNIT as u64, b"xyz").unwrap();
    let mut buf = vec![0xff; 6 * UNIT];
    assert_eq!(client.read(&ctx, &file, 0, &mut buf).unwrap(), 5 * UNIT + 3);
    assert_eq!(&buf[..3], b"abc");
    assert!(buf[3..5 * UNIT].iter().all(|&byte| byte == 0));
    assert_eq!(&buf[5 * UNIT..5 * UNIT + 3], b"xyz");
}

#[test]
fn damage_is_mended_by_a_second_read_or_reported() {
    let (fake, client) = Fake::start(2);
    let (ctx, file) = (Ctx::root(), create(&client, "f"));
    let data = pattern(2 * UNIT);
    client.write(&ctx, &file, 0, &data).unwrap();
    let mut buf = vec![0; 2 * UNIT];
    fake.world.lock().damaged_reads = 1;
    client.read(&ctx, &file, 0, &mut buf).unwrap();
    assert_eq!(buf, data);
    fake.world.lock().damaged_reads = 100;
    let error = client.read(&ctx, &file, UNIT as u64, &mut buf[..10]).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Checksum);
    assert!(error.subject.contains("target=OST0001") && error.subject.contains("offset=0"));
    assert_eq!(client.metrics().checksum_errors(), 2);
}

#[test]
fn a_failed_piece_ends_what_was_written() {
    let (fake, client) = Fake::start(3);
    let (ctx, file) = (Ctx::root(), create(&client, "f"));
    fake.world.lock().full_object = Some(1);
    assert_eq!(client.write(&ctx, &file, 0, &pattern(3 * UNIT)).unwrap(), UNIT);
    let error = client.write(&ctx, &file, UNIT as u64, b"x").unwrap_err();
    assert_eq!(error.kind, ErrorKind::NoSpace);
    // The third piece is there for all to see.
    assert_eq!(client.getattr(&ctx, file.fid()).unwrap().size, 3 * UNIT as u64);
}

#[test]
fn appends_at_the_end_that_the_objects_show() {
    let (fake, client) = Fake::start(2);
    let flags = OpenFlags::READ | OpenFlags::WRITE | OpenFlags::APPEND;
    let (ctx, file) = (Ctx::root(), create_with(&client, "f", flags, 0o644));
    client.write(&ctx, &file, 99, b"one").unwrap();
    assert_eq!(client.getattr(&ctx, file.fid()).unwrap().size, 3);
    // Another client has written.
    {
        let mut world = fake.world.lock();
        world.written_elsewhere = true;
        world.objects.values_mut().for_each(|object| object.extend_from_slice(b"other"));
    }
    client.write(&ctx, &file, 0, b"two").unwrap();
    let mut buf = [0; 100];
    assert_eq!(client.read(&ctx, &file, 0, &mut buf).unwrap(), 11);
    assert_eq!(&buf[..11], b"oneothertwo");
    assert_eq!(fake.world.lock().log.iter().filter(|&&name| name == "Append").count(), 3);
}

#[test]
fn reports_end_and_blocks_once() {
    let (fake, client) = Fake::start(2);
    let (ctx, file) = (Ctx::root(), create(&client, "f"));
    client.write(&ctx, &file, 0, &pattern(3 * UNIT)).unwrap();
    client.fsync(&ctx, &file, false).unwrap();
    client.close(&ctx, &file, None).unwrap();
    let world = fake.world.lock();
    assert_eq!(world.reports.len(), 1);
    assert_eq!((world.reports[0].end, world.reports[0].blocks), (3 * UNIT as u64, Some(24)));
    assert!(client.inodes.get(file.fid()).is_none());
    drop(world);
    assert_eq!(client.close(&ctx, &file, None).unwrap_err().kind, ErrorKind::BadHandle);
}

#[test]
fn truncation_makes_own_ends_void() {
    let (_fake, client) = Fake::start(2);
    let (ctx, file) = (Ctx::root(), create(&client, "f"));
    client.write(&ctx, &file, 0, &pattern(3 * UNIT)).unwrap();
    let cut = SetAttr { size: Some(10), ..SetAttr::default() };
    assert_eq!(client.setattr(&ctx, file.fid(), &cut, Some(&file)).unwrap().size, 10);
    client.write(&ctx, &file, 2, b"zz").unwrap();
    assert_eq!(client.getattr(&ctx, file.fid()).unwrap().size, 10);
    let mut buf = [0; 100];
    assert_eq!(client.read(&ctx, &file, 0, &mut buf).unwrap(), 10);
}

#[test]
fn a_write_after_an_unknown_truncation_counts() {
    let (fake, client) = Fake::start(2);
    let (ctx, file) = (Ctx::root(), create(&client, "f"));
    client.write(&ctx, &file, 0, &pattern(100)).unwrap();
    {
        let mut world = fake.world.lock();
        world.objects.clear();
        world.attrs.get_mut(&file.fid()).unwrap().1 = 1;
    }
    client.write(&ctx, &file, 0, b"new").unwrap();
    assert_eq!(client.getattr(&ctx, file.fid()).unwrap().size, 3);
    assert_eq!(client.getattr(&ctx, file.fid()).unwrap().size, 3);
    client.close(&ctx, &file, None).unwrap();
    // The old count tells the MDT to ask the OSTs.
    assert_eq!(fake.world.lock().reports.last().unwrap().size_epoch, 0);
}

#[test]
fn seeks_over_stripes() {
    let (_fake, client) = Fake::start(3);
    let (ctx, file) = (Ctx::root(), create(&client, "f"));
    let unit = UNIT as u64;
    client.write(&ctx, &file, 0, &pattern(UNIT)).unwrap();
    client.write(&ctx, &file, 4 * unit, &pattern(UNIT)).unwrap();
    let cut = SetAttr { size: Some(7 * unit), ..SetAttr::default() };
    client.setattr(&ctx, file.fid(), &cut, None).unwrap();
    let seek = |offset, whence| client.seek(&ctx, &file, offset, whence);
    assert_eq!(seek(0, Whence::Data).unwrap(), 0);
    assert_eq!(seek(0, Whence::Hole).unwrap(), unit);
    assert_eq!(seek(unit, Whence::Data).unwrap(), 4 * unit);
    assert_eq!(seek(4 * unit + 9, Whence::Data).unwrap(), 4 * unit + 9);
    assert_eq!(seek(4 * unit + 9, Whence::Hole).unwrap(), 5 * unit);
    assert_eq!(seek(6 * unit, Whence::Hole).unwrap(), 6 * unit);
    assert_eq!(seek(5 * unit, Whence::Data).unwrap_err().kind, ErrorKind::NoSuchOffset);
    assert_eq!(seek(7 * unit, Whence::Hole).unwrap_err().kind, ErrorKind::NoSuchOffset);
}

#[test]
fn set_id_bits_go_before_the_data_comes() {
    let (fake, client) = Fake::start(1);
    let flags = OpenFlags::READ | OpenFlags::WRITE;
    let file = create_with(&client, "f", flags, 0o4755);
    client.write(&Ctx::root(), &file, 0, b"a").unwrap();
    assert!(fake.world.lock().reports.is_empty());
    client.write(&Ctx::user(5, 5), &file, 0, b"a").unwrap();
    client.write(&Ctx::user(5, 5), &file, 0, b"a").unwrap();
    let world = fake.world.lock();
    assert_eq!(world.reports.iter().filter(|report| report.kill_suidgid).count(), 1);
    assert_eq!(world.attrs[&file.fid()].0.mode, 0o755);
}
