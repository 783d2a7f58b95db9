//! Contests: several clients at the same names, the same log and the same lock at once. Nobody knows
//! who must win, but the sums have to be right.

use crate::reference::Hand;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use weft_client::{CreateArgs, Ctx, LockKind, LockRange, OpenFile, OpenFlags};
use weft_model::{ErrorKind, Fid};

/// Bytes of a record of the log: who, which, and the same again.
const RECORD: usize = 32;
const LOG: &[u8] = b"log";
const COUNTER: &[u8] = b"counter";

/// The arena and the score.
pub struct Contest {
    arena: Fid,
    names: Fid,
    score: Mutex<Score>,
}

/// Sums of what was answered. What has begun and never was, because its client died, counts as doubt.
#[derive(Default)]
struct Score {
    created: i64,
    creating: i64,
    removed: i64,
    removing: i64,
    fids: BTreeSet<Fid>,
    appended: BTreeMap<u64, u64>,
    appending: i64,
    counted: i64,
    counting: i64,
}

impl Contest {
    /// Makes the arena.
    pub fn new(hand: &Hand) -> Contest {
        let (client, ctx) = (&hand.client, Ctx::root());
        let mkdir = |parent, name: &[u8]| {
            hand.must("make the arena", client.mkdir(&ctx, parent, name, 0o755)).fid
        };
        let arena = mkdir(client.root(), b"arena");
        Contest { arena, names: mkdir(arena, b"names"), score: Mutex::default() }
    }

    /// One move of a client.
    pub fn step(&self, hand: &Hand) {
        let plan = &hand.world.plan;
        match hand.world.below(10) {
            0..3 => self.create(hand),
            3..5 => self.unlink(hand),
            5..7 => self.rename(hand),
            7 | 8 if plan.capacity.is_none() => self.append(hand),
            _ if plan.capacity.is_none() => self.count(hand),
            _ => self.rename(hand),
        }
    }

    fn name(hand: &Hand) -> Vec<u8> {
        vec![b'a' + hand.world.below(3) as u8]
    }

    fn create(&self, hand: &Hand) {
        let args = CreateArgs {
            mode: 0o644,
            flags: OpenFlags::WRITE,
            exclusive: true,
            ..CreateArgs::default()
        };
        self.score.lock().creating += 1;
        let made = hand.client.create(&Ctx::root(), self.names, &Self::name(hand), &args);
        let mut score = self.score.lock();
        score.creating -= 1;
        match made {
            Ok(made) => {
                score.created += 1;
                assert!(score.fids.insert(made.file.fid()), "a number was given out twice");
                drop(score);
                hand.must("close", hand.client.close(&Ctx::root(), &made.file, None));
            }
            Err(error) => assert_eq!(error.kind, ErrorKind::Exists, "create: {error}"),
        }
    }

    fn unlink(&self, hand: &Hand) {
        self.score.lock().removing += 1;
        let gone = hand.client.unlink(&Ctx::root(), self.names, &Self::name(hand));
        let mut score = self.score.lock();
        score.removing -= 1;
        match gone {
            Ok(()) => score.removed += 1,
            Err(error) => assert_eq!(error.kind, ErrorKind::NotFound, "unlink: {error}"),
        }
    }

    /// Never replaces anything, so that the number of names stays.
    fn rename(&self, hand: &Hand) {
        const NOREPLACE: u32 = 1;
        let (from, to, dir) = (Self::name(hand), Self::name(hand), self.names);
        let moved = hand.client.rename(&Ctx::root(), dir, &from, dir, &to, NOREPLACE);
        if let Err(error) = moved {
            let legal = matches!(error.kind, ErrorKind::NotFound | ErrorKind::Exists);
            assert!(legal, "rename: {error}");
        }
    }

    fn open(&self, hand: &Hand, name: &[u8], flags: OpenFlags) -> OpenFile {
        let flags = flags | OpenFlags::READ | OpenFlags::WRITE;
        let args = CreateArgs { mode: 0o644, flags, ..CreateArgs::default() };
        hand.must("open", hand.client.create(&Ctx::root(), self.arena, name, &args)).file
    }

    fn append(&self, hand: &Hand) {
        let ctx = Ctx::root();
        let log = self.open(hand, LOG, OpenFlags::APPEND);
        let before = self.score.lock().appended.get(&hand.number).copied().unwrap_or(0);
        let records = 1 + hand.world.below(3);
        for number in before + 1..=before + records {
            self.score.lock().appending += 1;
            let half = [hand.number.to_le_bytes(), number.to_le_bytes()].concat();
            let real = hand.client.write(&ctx, &log, 0, &half.repeat(2));
            assert_eq!(hand.must("append", real), RECORD);
        }
        hand.must("close", hand.client.close(&ctx, &log, None));
        // Up to here they may go with the client that has them.
        let mut score = self.score.lock();
        score.appending -= records as i64;
        score.appended.insert(hand.number, before + records);
    }

    /// Under a lock: reads a number, writes the next.
    fn count(&self, hand: &Hand) {
        let (ctx, client) = (Ctx::root(), &hand.client);
        let file = self.open(hand, COUNTER, OpenFlags::READ);
        let lock = |kind| LockRange { owner: 1, flock: false, kind, start: 0, end: 7, pid: 1 };
        self.score.lock().counting += 1;
        hand.must("lock", client.lock(&ctx, &file, &lock(LockKind::Write), true));
        let mut bytes = [0; 8];
        hand.must("read counter", client.read(&ctx, &file, 0, &mut bytes));
        let next = u64::from_le_bytes(bytes) + 1;
        hand.must("write counter", client.write(&ctx, &file, 0, &next.to_le_bytes()));
        hand.must("unlock", client.lock(&ctx, &file, &lock(LockKind::Unlock), false));
        hand.must("close", client.close(&ctx, &file, None));
        let mut score = self.score.lock();
        score.counting -= 1;
        score.counted += 1;
    }

    /// Looks whether the sums are right.
    pub fn check(&self, hand: &Hand) {
        let score = self.score.lock();
        let ctx = Ctx::root();
        let dir = hand.must("opendir", hand.client.opendir(&ctx, self.names));
        let mut names = -2;
        let mut take = |_: &_| {
            names += 1;
            true
        };
        hand.must("readdir", hand.client.readdir(&ctx, &dir, 0, false, &mut take));
        hand.must("closedir", hand.client.closedir(&ctx, &dir));
        let sure = score.created - score.removed;
        let range = sure - score.removing..=sure + score.creating;
        assert!(range.contains(&names), "{names} names in the arena, expected {range:?}");

        let count = self.contents(hand, COUNTER);
        let count = count.try_into().map_or(0, i64::from_le_bytes);
        let range = score.counted..=score.counted + score.counting;
        assert!(range.contains(&count), "counted to {count}, expected {range:?}");
        check_log(&self.contents(hand, LOG), &score);
    }

    fn contents(&self, hand: &Hand, name: &[u8]) -> Vec<u8> {
        let ctx = Ctx::root();
        let file = self.open(hand, name, OpenFlags::READ);
        let mut data = vec![0; 1 << 20];
        let got = hand.must("read", hand.client.read(&ctx, &file, 0, &mut data));
        hand.must("close", hand.client.close(&ctx, &file, None));
        data.truncate(got);
        data
    }
}

fn check_log(log: &[u8], score: &Score) {
    assert_eq!(log.len() % RECORD, 0, "length of the log");
    let mut last: BTreeMap<u64, u64> = BTreeMap::new();
    let mut unsure = 0;
    for record in log.chunks(RECORD) {
        let number = |at: usize| record[at..at + 8].iter().rfold(0, |n, &b| n << 8 | u64::from(b));
        let (who, which) = (number(0), number(8));
        if who == 0 {
            unsure += 1;
            continue;
        }
        assert_eq!(record[..16], record[16..], "a torn record in the log");
        let before = last.insert(who, which).unwrap_or(0);
        assert_eq!(which, before + 1, "order of the records of {who:#x}");
    }
    for (who, &appended) in &score.appended {
        let found = last.remove(who).unwrap_or(0);
        assert!(found >= appended, "records of {who:#x} lost: {found} of {appended}");
        unsure += (found - appended) as i64;
    }
    unsure += last.len() as i64;
    assert!(unsure <= score.appending, "{unsure} records that nobody began");
}
