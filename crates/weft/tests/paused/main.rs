//! A mount whose process is stopped (SIGSTOP) for longer than others wait for it, and goes on afterwards as if
//! nothing had happened: it must neither write a byte nor show anything that was true before.

#[path = "../holder/cluster.rs"]
mod cluster;

use cluster::Cluster;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// Longest wait of others for a session with delegations that does not answer: 5 s by design, and what a busy
/// machine takes.
const OTHERS_WAIT: Duration = Duration::from_secs(20);
/// Longest wait for one that was granted what it may read: 1 s by design.
const READERS_WAIT: Duration = Duration::from_secs(5);

/// A process that is stopped until this is dropped.
struct Paused(Pid);

impl Paused {
    fn pause(pid: i32) -> Paused {
        let pid = Pid::from_raw(pid).unwrap();
        kill_process(pid, Signal::STOP).unwrap();
        Paused(pid)
    }
}

impl Drop for Paused {
    fn drop(&mut self) {
        // It may be gone; then there is nothing to wake.
        let _ = kill_process(self.0, Signal::CONT);
    }
}

/// Another mount of the cluster, in a process of its own. Dropped before the cluster.
struct Other<'c> {
    cluster: &'c Cluster,
    dir: PathBuf,
}

impl Other<'_> {
    fn mount(cluster: &Cluster) -> Other<'_> {
        let (root, dir) = (cluster.root(), cluster.root().join("other"));
        let addresses = fs::read_to_string(root.join("dev/run/address")).unwrap();
        let (key, log) = (root.join("dev/cluster.key"), root.join("other.log"));
        let options = format!("noholder,key={},log={}", key.display(), log.display());
        let address = addresses.lines().next().unwrap();
        cluster.ok(&["mount", address, dir.to_str().unwrap(), "-o", &options]);
        Other { cluster, dir }
    }

    fn join(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }
}

impl Drop for Other<'_> {
    fn drop(&mut self) {
        let output = self.cluster.run(&["umount", self.dir.to_str().unwrap()]);
        if !output.status.success() {
            eprintln!("weft umount: {}", String::from_utf8_lossy(&output.stderr));
            let _ = Command::new("fusermount3").arg("-uz").arg(&self.dir).status();
        }
    }
}

fn timed<T>(most: Duration, what: &str, act: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let outcome = act();
    assert!(begun.elapsed() < most, "{what} took {:?}", begun.elapsed());
    outcome
}

#[test]
fn who_wakes_late_does_not_write_what_it_had_answered() {
    let cluster = Cluster::start("");
    let other = Other::mount(&cluster);
    let path = cluster.mnt().join("file");
    let file = File::create_new(&path).unwrap();
    file.write_all_at(&[b'a'; 100_000], 0).unwrap();
    file.sync_all().unwrap();
    // Answered, and waiting in the process.
    file.write_all_at(&[b'b'; 100_000], 0).unwrap();
    let paused = Paused::pause(cluster.server());
    let seen = timed(OTHERS_WAIT, "reading", || fs::read(other.join("file")).unwrap());
    let is_whole = |byte: u8| seen.iter().all(|&seen| seen == byte);
    assert!(seen.len() == 100_000 && (is_whole(b'a') || is_whole(b'b')), "torn");
    let theirs = File::options().write(true).open(other.join("file")).unwrap();
    timed(OTHERS_WAIT, "writing", || theirs.write_all_at(&[b'c'; 100_000], 0).unwrap());
    theirs.sync_all().unwrap();
    drop(paused);
    if is_whole(b'a') {
        assert!(file.sync_all().is_err(), "what was lost is told");
    }
    // Whatever it still had, some seconds are enough to send it.
    let until = Instant::now() + Duration::from_secs(3);
    while Instant::now() < until {
        for place in [&path, &other.join("file")] {
            assert!(fs::read(place).unwrap() == [b'c'; 100_000], "changed after it was written");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    drop(theirs);
    // The woken one takes part again.
    fs::write(&path, "again").unwrap();
    assert_eq!(fs::read(other.join("file")).unwrap(), b"again");
}

#[test]
fn who_wakes_late_shows_what_is() {
    let cluster = Cluster::start("");
    let other = Other::mount(&cluster);
    let dir = cluster.mnt().join("dir");
    fs::create_dir(&dir).unwrap();
    for name in ["kept", "renamed", "removed", "rewritten"] {
        fs::write(dir.join(name), "old").unwrap();
    }
    let open = File::open(dir.join("rewritten")).unwrap();
    // All of it is in the kernel's caches and in the process.
    let look = || {
        let names = ["kept", "renamed", "removed", "new", "rewritten"];
        names.map(|name| fs::read(dir.join(name)).ok().map(|text| text.len()))
    };
    assert_eq!(look(), [Some(3), Some(3), Some(3), None, Some(3)]);
    let paused = Paused::pause(cluster.server());
    let theirs = other.join("dir");
    timed(READERS_WAIT, "rename", || {
        fs::rename(theirs.join("renamed"), theirs.join("new")).unwrap();
    });
    timed(READERS_WAIT, "unlink", || fs::remove_file(theirs.join("removed")).unwrap());
    timed(OTHERS_WAIT, "rewrite", || fs::write(theirs.join("rewritten"), "longer").unwrap());
    // Time for the other to be given up, and for its lifetimes in the kernel to end.
    std::thread::sleep(Duration::from_secs(7));
    drop(paused);
    assert_eq!(look(), [Some(3), None, None, Some(3), Some(6)]);
    let mut text = [0; 6];
    open.read_exact_at(&mut text, 0).unwrap();
    assert_eq!(&text, b"longer");
    assert_eq!(fs::metadata(&dir).unwrap().len(), 3);
}

#[test]
fn locks_of_who_wakes_late_are_gone() {
    let cluster = Cluster::start("");
    let other = Other::mount(&cluster);
    fs::write(cluster.mnt().join("file"), "x").unwrap();
    let ours = File::open(cluster.mnt().join("file")).unwrap();
    ours.lock().unwrap();
    let theirs = File::open(other.join("file")).unwrap();
    assert!(theirs.try_lock().is_err());
    let paused = Paused::pause(cluster.server());
    timed(Duration::from_secs(60), "locking", || theirs.lock().unwrap());
    drop(paused);
    // The lock has an owner; nobody else gets it.
    assert!(File::open(cluster.mnt().join("file")).unwrap().try_lock().is_err());
    drop(theirs);
    File::open(cluster.mnt().join("file")).unwrap().lock().unwrap();
}
