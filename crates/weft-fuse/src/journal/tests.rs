//! A journal as its processes see it, one after the other.

use super::*;
use weft_client::{Journal as _, LockKind};
use weft_model::Xid;

const KIND: Choice = Choice::HANDLE;

fn number(sequence: u64) -> Xid {
    Xid::new(3, sequence)
}

fn of_request() -> Choice {
    Choice::number(0x220, weft_model::TargetId::mdt(0))
}

/// The next process.
fn after(fd: &OwnedFd) -> Journal {
    Journal::open(fd.as_fd()).unwrap()
}

#[test]
fn a_request_that_comes_again_finds_what_was_chosen_in_its_order() {
    let (fd, first) = alone().unwrap();
    first.begin(8);
    assert!(first.make(KIND, 5) && first.make(of_request(), number(1).0));
    assert!(first.make(of_request(), number(2).0));
    // This process dies here, and so does the next one, having begun.
    for _ in 0..2 {
        let next = after(&fd);
        let mut numbers = next.legacy().numbers.clone();
        numbers.sort();
        assert_eq!(numbers, [number(1), number(2)]);
        next.begin(8 | 1 << 63);
        assert_eq!(next.made(of_request()), Some(number(1).0));
        assert_eq!(next.made(of_request()), Some(number(2).0));
        assert_eq!((next.made(of_request()), next.made(KIND)), (None, Some(5)));
    }
    let last = after(&fd);
    last.begin(8 | 1 << 63);
    let ended = last.end().unwrap();
    assert_eq!((ended.numbers.len(), ended.handles), (2, vec![5]));
    assert!(after(&fd).legacy().numbers.is_empty());
}

#[test]
fn what_came_to_nothing_is_not_found() {
    let (fd, first) = alone().unwrap();
    first.begin(8);
    first.make(of_request(), number(1).0);
    first.unmake(of_request(), number(1).0);
    first.make(of_request(), number(2).0);
    let next = after(&fd);
    next.begin(8 | 1 << 63);
    assert_eq!((next.made(of_request()), next.made(of_request())), (Some(number(2).0), None));
    next.end();
    // Another request has nothing from before, nor has a thread without one.
    next.begin(10);
    assert_eq!(next.made(of_request()), None);
    assert_eq!(next.end(), None);
    assert!(!next.make(of_request(), 1));
}

#[test]
fn operations_that_do_not_come_again_are_given_up() {
    let (fd, first) = alone().unwrap();
    first.begin(8);
    first.make(KIND, 5);
    first.make(of_request(), number(1).0);
    first.end();
    first.begin(10);
    first.make(KIND, 6);
    first.make(of_request(), number(2).0);
    let next = after(&fd);
    let ended = next.abandon();
    assert_eq!((ended.numbers, ended.handles), (vec![number(2)], vec![6]));
    assert_eq!(next.abandon(), Ended::default());
}

#[test]
fn open_files_and_locks_are_found_as_they_were() {
    let lock = |owner, start| LockRange {
        owner,
        flock: false,
        kind: LockKind::Write,
        start,
        end: start + 9,
        pid: 7,
    };
    let (fd, first) = alone().unwrap();
    for handle in 1..=5 {
        first.opened(handle, Fid(handle + 100), OpenFlags::WRITE | OpenFlags::SYNC);
    }
    first.show(1, Shown::Yes);
    first.show(2, Shown::Cached);
    first.show(3, Shown::Yes);
    first.closed(3);
    // 4 is of an operation under way, 5 of none.
    first.begin(8);
    first.make(KIND, 4);
    first.locked(Fid(101), &[lock(1, 0), lock(1, 50)]);
    first.locked(Fid(101), &[lock(1, 50), lock(2, 70)]);
    first.waits(Fid(102), true);
    first.waits(Fid(101), true);
    first.waits(Fid(101), false);
    let next = after(&fd);
    let mut known = next.known().to_vec();
    known.sort_by_key(|(open, _)| open.handle);
    let flags = OpenFlags::WRITE | OpenFlags::SYNC;
    let open = |handle| Reopened { handle, fid: Fid(handle + 100), flags };
    assert_eq!(known, [(open(1), Shown::Yes), (open(2), Shown::Cached)]);
    let legacy = next.legacy();
    assert_eq!((legacy.unknown.as_slice(), legacy.processes), ([5].as_slice(), 1));
    let mut starts: Vec<u64> = legacy.locks.iter().map(|(_, lock)| lock.start).collect();
    starts.sort_unstable();
    assert_eq!(
        (starts.as_slice(), legacy.lost.as_slice()),
        ([50, 70].as_slice(), [Fid(102)].as_slice())
    );
    // What the last process closes is gone.
    next.closed(1);
    next.locked(Fid(101), &[]);
    assert!(after(&fd).legacy().locks.is_empty() && after(&fd).known().len() == 1);
}

#[test]
fn terms_and_identity_come_back_and_other_versions_are_refused() {
    let (fd, first) = alone().unwrap();
    let terms = Terms { max_write: 4096 * 77, time_gran: 9, ..Terms::default() };
    first.note_mount(ClientId(6), Fid(7), &terms);
    let next = after(&fd);
    assert_eq!((next.legacy().client, next.legacy().root), (ClientId(6), Fid(7)));
    assert_eq!(format!("{:?}", next.terms()), format!("{terms:?}"));
    assert_eq!(version(fd.as_fd()).unwrap(), VERSION);
    next.memory.words()[word::VERSION].store(VERSION + 1, Release);
    assert_eq!(Journal::open(fd.as_fd()).unwrap_err().kind(), io::ErrorKind::InvalidData);
}
