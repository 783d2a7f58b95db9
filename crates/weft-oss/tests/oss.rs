//! An OST over the object store in memory.

use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::sync::Arc;
use std::time::Duration;
use weft_model::checksum;
use weft_model::{ClientId, Env, Epoch, ErrorKind, Fid, ObjectId, Result, TargetId, Timespec, Xid};
use weft_oss::{Oss, Settings};
use weft_rpc::pb::oss;
use weft_rpc::{Bulk, CallInfo, Message, Metrics, Reply, Request, Role, Service};
use weft_store::MemObjects;

/// A clock that only sleeping moves.
#[derive(Default)]
struct Clock(parking_lot::Mutex<Duration>);

impl Env for Clock {
    fn now(&self) -> Timespec {
        Timespec::default()
    }
    fn monotonic(&self) -> Duration {
        *self.0.lock()
    }
    fn sleep(&self, duration: Duration) {
        *self.0.lock() += duration;
    }
    fn random(&self) -> u64 {
        4
    }
}

const ID: ObjectId = ObjectId { fid: Fid::new(3, 9), index: 2 };

struct Bench {
    objects: Arc<MemObjects>,
    clock: Arc<Clock>,
    oss: Arc<Oss>,
}

fn bench() -> Bench {
    let (objects, clock) = (Arc::new(MemObjects::new()), Arc::new(Clock::default()));
    let oss = Oss::new(TargetId::ost(5), objects.clone(), clock.clone(), Settings::default());
    Bench { objects, clock, oss: Arc::new(oss) }
}

fn info(wire: bool) -> CallInfo {
    CallInfo {
        role: Role::Client,
        client: ClientId(7),
        xid: Xid::NONE,
        epoch: Epoch(0),
        target: TargetId::ost(5),
        wire,
    }
}

fn object() -> Option<oss::Object> {
    Some(ID.into())
}

impl Bench {
    fn ask<M: Message>(&self, message: M) -> Result<M::Reply> {
        M::reply(self.oss.serve(&info(true), &message.into_request(), Bulk::None)?)
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<u64> {
        let sums = checksum::compute(offset, data);
        self.write_with(offset, data, sums, true)
    }

    fn write_with(&self, offset: u64, data: &[u8], sums: Vec<u32>, wire: bool) -> Result<u64> {
        let request = oss::Write { object: object(), offset, sums, sync: false, not_after: None }
            .into_request();
        match self.oss.serve(&info(wire), &request, Bulk::Send(data))? {
            Reply::Write(reply) => Ok(reply.blocks),
            other => panic!("{other:?}"),
        }
    }

    fn read(&self, offset: u64, len: u32) -> Result<Vec<u8>> {
        let mut buffer = vec![0xee; len as usize];
        let request = oss::Read { object: object(), offset, len }.into_request();
        let reply = self.oss.serve(&info(true), &request, Bulk::Receive(&mut buffer))?;
        let Reply::Read(reply) = reply else { panic!("{reply:?}") };
        buffer.truncate(reply.len as usize);
        assert_eq!(checksum::verify(offset, &buffer, &reply.sums), Ok(()));
        Ok(buffer)
    }
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 251) as u8).collect()
}

#[test]
fn data_comes_back_short_at_the_end_and_zero_in_holes() {
    let bench = bench();
    assert_eq!(bench.read(0, 100).unwrap(), b"", "a missing object is empty");
    let data = pattern(10_000);
    assert!(bench.write(50_000, &data).unwrap() >= 10_000 / 512);
    let back = bench.read(40_000, 30_000).unwrap();
    assert_eq!(back.len(), 20_000);
    assert!(back[..10_000].iter().all(|&byte| byte == 0));
    assert!(back[10_000..] == data);
    assert_eq!(bench.read(60_000, 10).unwrap(), b"");
    let stats =
        bench.ask(oss::Stat { objects: vec![ID.into(), Default::default()] }).unwrap().stats;
    assert_eq!((stats[0].exists, stats[0].size, stats[1].exists), (true, 60_000, false));
    let seek =
        |offset, hole| bench.ask(oss::Seek { object: object(), offset, hole }).unwrap().offset;
    assert_eq!(seek(0, false), Some(50_000 / 4096 * 4096));
    assert_eq!((seek(0, true), seek(60_000, false), seek(60_000, true)), (Some(0), None, None));
}

#[test]
fn a_bad_checksum_over_the_wire_is_refused_and_named() {
    let bench = bench();
    let data = pattern(8192);
    let mut sums = checksum::compute(0, &data);
    sums[1] ^= 1;
    let error = bench.write_with(0, &data, sums, true).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Checksum);
    let text = error.to_string();
    assert!(text.contains("target=OST0005") && text.contains(&ID.to_string()), "{text}");
    assert_eq!(bench.read(0, 10).unwrap(), b"", "nothing was written");
    let none = bench.write_with(0, &data, vec![], true).unwrap_err();
    assert_eq!(none.kind, ErrorKind::Invalid);
}

#[test]
fn damage_at_rest_is_named_and_counted_once() {
    let bench = bench();
    bench.write(0, &pattern(20_000)).unwrap();
    assert!(bench.objects.flip_data(ID, 9000));
    for _ in 0..3 {
        // A part of the block: the server has to look.
        let error = bench.read(9000, 10).unwrap_err();
        let text = error.to_string();
        assert_eq!(error.kind, ErrorKind::Checksum);
        assert!(text.contains("target=OST0005") && text.contains(&ID.to_string()), "{text}");
    }
    let whole = oss::Read { object: object(), offset: 8192, len: 4096 }.into_request();
    let mut buffer = vec![0; 4096];
    let reply = bench.oss.serve(&info(true), &whole, Bulk::Receive(&mut buffer)).unwrap();
    let Reply::Read(reply) = reply else { panic!("{reply:?}") };
    assert_eq!(checksum::verify(8192, &buffer, &reply.sums), Err(8192), "the client finds out");
    let metrics = Metrics::default();
    bench.oss.register_figures(&metrics);
    assert!(metrics.text().contains("weft_bad_blocks_total{target=\"OST0005\"} 1\n"));
    let scrub = bench.ask(oss::Scrub::default()).unwrap();
    assert_eq!((scrub.objects, scrub.bad.len(), scrub.bad[0].offset), (1, 1, 8192));
    let end = bench.ask(oss::Scrub { cursor: scrub.cursor, max_objects: 0 }).unwrap();
    assert_eq!((end.cursor.as_str(), end.objects), ("", 0));
}

#[test]
fn scrub_keeps_to_its_rate() {
    let mut bench = bench();
    let settings = Settings { scrub_bytes_per_second: 1 << 20, ..Settings::default() };
    let objects: Arc<MemObjects> = bench.objects.clone();
    bench.oss = Arc::new(Oss::new(TargetId::ost(5), objects, bench.clock.clone(), settings));
    bench.write(0, &pattern(2 << 20)).unwrap();
    bench.ask(oss::Scrub::default()).unwrap();
    assert!(bench.clock.monotonic() >= Duration::from_millis(1900));
}

#[test]
fn objects_are_cut_punched_allocated_listed_and_destroyed() {
    let bench = bench();
    let cut = |size, only_shrink| {
        bench.ask(oss::Truncate { object: object(), size, only_shrink }).unwrap();
    };
    cut(0, false);
    cut(70, true);
    assert!(bench.ask(oss::ListObjects::default()).unwrap().objects.is_empty());
    bench.write(0, &pattern(9000)).unwrap();
    cut(10_000, true);
    assert_eq!(bench.read(0, 20_000).unwrap().len(), 9000);
    cut(5000, true);
    cut(6000, false);
    cut(5000, false);
    bench
        .ask(oss::Punch { object: object(), offset: 100, len: u64::MAX, not_after: None })
        .unwrap();
    let back = bench.read(0, 9000).unwrap();
    assert!(
        back.len() == 5000 && back[..100] == pattern(100) && back[100..].iter().all(|&b| b == 0)
    );
    let reserve = |offset, len, keep_size, zero| {
        bench.ask(oss::Allocate { object: object(), offset, len, keep_size, zero, not_after: None })
    };
    reserve(0, 50, true, true).unwrap();
    assert_eq!(bench.read(0, 50).unwrap(), vec![0; 50]);
    reserve(4096, 8192, false, false).unwrap();
    assert_eq!(bench.read(0, 20_000).unwrap().len(), 12_288);
    assert_eq!(reserve(0, 0, false, false).unwrap_err().kind, ErrorKind::Invalid);
    bench.ask(oss::Sync { objects: vec![ID.into()] }).unwrap();
    bench.ask(oss::Sync::default()).unwrap();
    let list = bench.ask(oss::ListObjects::default()).unwrap();
    assert_eq!((list.objects, list.cursor), (vec![ID.into()], ID.to_string()));
    assert!(bench.ask(oss::ListObjects { cursor: "x".into(), limit: 1 }).is_err());
    for _ in 0..2 {
        bench.ask(oss::Destroy { objects: vec![ID.into()] }).unwrap();
    }
    assert_eq!(bench.read(0, 10).unwrap(), b"");
    assert!(bench.ask(oss::Statfs {}).unwrap().space.is_some());
}

#[test]
fn a_write_with_sync_survives_a_power_cut() {
    let bench = bench();
    let data = pattern(6000);
    let sums = checksum::compute(3, &data);
    let request = oss::Write { object: object(), offset: 3, sums, sync: true, not_after: None }
        .into_request();
    bench.oss.serve(&info(true), &request, Bulk::Send(&data)).unwrap();
    bench.objects.crash_power(&mut || 0);
    assert!(bench.read(3, 6000).unwrap() == data);
}

#[test]
fn a_full_disk_is_named() {
    let bench = bench();
    bench.objects.set_capacity(Some(8192));
    let error = bench.write(0, &pattern(50_000)).unwrap_err();
    assert_eq!(error.kind, ErrorKind::NoSpace);
    assert!(error.to_string().contains("target=OST0005"), "{error}");
}

#[test]
fn random_requests_never_panic() {
    let bench = bench();
    let mut rng = SmallRng::seed_from_u64(3);
    let mut buffer = vec![0; 20_000];
    for _ in 0..50_000 {
        let number = |rng: &mut SmallRng| -> u64 {
            match rng.random_range(0..4) {
                0 => u64::MAX - rng.random_range(0..3),
                1 => (15 << 40) + rng.random_range(1..3),
                _ => rng.random_range(0..20_000),
            }
        };
        let (offset, len) = (number(&mut rng), number(&mut rng));
        let object = Some(oss::Object { fid: rng.random_range(0..3), index: 0 });
        let (keep_size, zero, hole) = (rng.random(), rng.random(), rng.random());
        let sums = vec![0; rng.random_range(0..6)];
        let mut objects: Vec<oss::Object> = object.into_iter().collect();
        objects.truncate(rng.random_range(0..2));
        let request: Request = match rng.random_range(0..13) {
            0 => oss::Write { object, offset, sums, sync: zero, not_after: None }.into_request(),
            1 => oss::Read { object, offset, len: len as u32 }.into_request(),
            2 => oss::Sync { objects }.into_request(),
            3 => oss::Stat { objects }.into_request(),
            4 => oss::Truncate { object, size: offset, only_shrink: zero }.into_request(),
            5 => oss::Punch { object, offset, len, not_after: None }.into_request(),
            6 => oss::Allocate {
                object,
                offset,
                len: len.min(1 << 20),
                keep_size,
                zero,
                not_after: None,
            }
            .into_request(),
            7 => oss::Seek { object, offset, hole }.into_request(),
            8 => oss::Destroy { objects }.into_request(),
            9 => oss::Scrub { cursor: String::new(), max_objects: len as u32 }.into_request(),
            10 => oss::ListObjects { cursor: "0".repeat(25), limit: len as u32 }.into_request(),
            11 => oss::Write { object, offset, ..Default::default() }.into_request(),
            _ => weft_rpc::pb::manager::ListClients {}.into_request(),
        };
        let size = rng.random_range(0..buffer.len());
        let bulk = match rng.random_range(0..3) {
            0 => Bulk::None,
            1 => Bulk::Send(&buffer[..size]),
            _ => Bulk::Receive(&mut buffer[..size]),
        };
        let _ = bench.oss.serve(&info(rng.random()), &request, bulk);
    }
}

#[test]
fn what_comes_too_late_or_from_before_a_restart_is_refused() {
    let bench = bench();
    let now = bench.ask(oss::Clock {}).unwrap();
    let write = |moment: oss::Moment| {
        let (data, not_after) = (b"late?", Some(moment));
        let sums = checksum::compute(0, data);
        let request = oss::Write { object: object(), offset: 0, sums, sync: false, not_after };
        let answer = bench.oss.serve(&info(true), &request.into_request(), Bulk::Send(data));
        answer.map(|_| ()).map_err(|error| error.kind)
    };
    let soon = oss::Moment { ms: now.ms + 1000, ..now };
    assert_eq!(write(oss::Moment { run: now.run ^ 2, ..soon }), Err(ErrorKind::Fenced));
    assert_eq!(bench.read(0, 5).unwrap(), b"");
    assert_eq!(write(soon), Ok(()));
    bench.clock.sleep(Duration::from_millis(1100));
    assert_eq!(write(soon), Err(ErrorKind::Fenced));
    let punch = oss::Punch { object: object(), offset: 0, len: 5, not_after: Some(soon) };
    assert_eq!(bench.ask(punch).unwrap_err().kind, ErrorKind::Fenced);
    assert_eq!(bench.read(0, 5).unwrap(), b"late?");
}
