//! Many callers that wait at once, and callers that are killed while they wait.

mod common;

use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use common::Mounted;
use weft_fuse::kernel::Config;
use weft_fuse::null::{NullFs, NullOptions};

const PATIENCE: Duration = Duration::from_secs(20);

fn mount() -> Option<Mounted> {
    Mounted::new(NullFs::new(NullOptions::default()), Config::default())
}

fn until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "{what}: waited in vain");
        thread::sleep(Duration::from_millis(5));
    }
}

/// More than the places there are on any number of CPUs up to three, so that some must be refused.
#[test]
fn more_wait_for_a_lock_than_there_is_room_for() {
    const CALLERS: usize = 1400;
    let Some(mounted) = mount() else { return };
    let path = mounted.path().join("file");
    let holder = File::create(&path).unwrap();
    holder.lock().unwrap();
    let (opened, granted, refused) =
        (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..CALLERS {
            let caller = thread::Builder::new().stack_size(64 << 10);
            let call = || {
                let file = File::open(&path).unwrap();
                opened.fetch_add(1, SeqCst);
                // Shared, so that all get it at once.
                match file.lock_shared() {
                    Ok(()) => granted.fetch_add(1, SeqCst),
                    Err(error) => {
                        assert_eq!(error.raw_os_error(), Some(libc::ENOLCK));
                        refused.fetch_add(1, SeqCst)
                    }
                };
            };
            caller.spawn_scoped(scope, call).unwrap();
        }
        until("all callers begin", || opened.load(SeqCst) == CALLERS);
        thread::sleep(Duration::from_millis(200));
        assert_eq!(granted.load(SeqCst), 0);
        // On all CPUs, and what comes first for all who wait.
        thread::scope(|scope| {
            (0..16).for_each(|_| drop(scope.spawn(|| assert!(!path.with_extension("x").exists()))));
        });
        // Dropped if it fails, lest this test waits for ever.
        let unlocked = holder.unlock();
        drop(holder);
        unlocked.unwrap();
        until("all callers end", || granted.load(SeqCst) + refused.load(SeqCst) == CALLERS);
    });
    eprintln!("{} granted, {} refused", granted.load(SeqCst), refused.load(SeqCst));
    assert!(granted.load(SeqCst) >= 400);
}

#[test]
fn callers_that_are_killed_end() {
    let Some(mounted) = mount() else { return };
    let path = mounted.path().join("file");
    let holder = File::create(&path).unwrap();
    holder.lock().unwrap();
    let start = || {
        let mut flock = Command::new("flock");
        flock.arg(&path).arg("true").stderr(Stdio::null()).spawn().unwrap()
    };
    for round in 0..20 {
        let mut callers: Vec<Child> = (0..20).map(|_| start()).collect();
        thread::sleep(Duration::from_millis(round));
        callers.iter_mut().for_each(|caller| caller.kill().unwrap());
        for mut caller in callers {
            let deadline = Instant::now() + PATIENCE;
            while caller.try_wait().unwrap().is_none() {
                assert!(Instant::now() < deadline, "a killed caller waits on, round {round}");
                thread::sleep(Duration::from_millis(1));
            }
        }
    }
    assert!(holder.metadata().is_ok());
}
