//! Locks: waiting, giving up, and what closing has to release.

use super::fake::{Fake, create};
use crate::lock::TO_END;
use crate::{Ctx, LockKind, LockRange};
use std::sync::atomic::{AtomicU32, Ordering};
use weft_model::ErrorKind;

fn range(kind: LockKind) -> LockRange {
    LockRange { owner: 3, flock: false, kind, start: 0, end: TO_END, pid: 1 }
}

#[test]
fn waits_until_granted_or_interrupted() {
    let (fake, client) = Fake::start(1);
    let (ctx, file) = (Ctx::root(), create(&client, "f"));
    fake.world.lock().busy_locks = 1;
    let refused = client.lock(&ctx, &file, &range(LockKind::Write), false).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::WouldBlock);
    fake.world.lock().busy_locks = 4;
    client.lock(&ctx, &file, &range(LockKind::Write), true).unwrap();
    fake.world.lock().busy_locks = 1000;
    let polls = AtomicU32::new(0);
    let interrupted = || polls.fetch_add(1, Ordering::Relaxed) == 3;
    let ctx = Ctx { interrupted: Some(&interrupted), ..Ctx::root() };
    let other = LockRange { owner: 4, ..range(LockKind::Read) };
    let error = client.lock(&ctx, &file, &other, true).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Interrupted);
    assert_eq!(fake.world.lock().log.last(), Some(&"CancelLock"));
}

#[test]
fn flush_asks_only_for_owners_of_locks() {
    let (fake, client) = Fake::start(1);
    let (ctx, file) = (Ctx::root(), create(&client, "f"));
    client.lock(&ctx, &file, &range(LockKind::Read), false).unwrap();
    let asked = |fake: &Fake| fake.world.lock().log.iter().filter(|&&name| name == "Lock").count();
    client.flush(&ctx, &file, 77).unwrap();
    assert_eq!(asked(&fake), 1);
    client.flush(&ctx, &file, 3).unwrap();
    client.flush(&ctx, &file, 3).unwrap();
    assert_eq!(asked(&fake), 2);
}
