//! Mounts that outlive their process: killed over and over, replaced in an orderly way, and ended.

mod cluster;
mod load;

use cluster::{Cluster, is_alive, wait_for};
use load::{Done, Work};
use serde_json::Value;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How often a process is killed or replaced.
const ROUNDS: u64 = 20;

fn show(what: &str, done: &[(&str, Done)]) {
    for (name, done) in done {
        eprintln!("{what}: {name}: {} operations, longest {:?}", done.operations, done.longest);
        assert!(done.operations > 0, "{name} has done nothing");
    }
}

/// `kill -9`, and waits until it is gone.
fn kill(pid: i32) {
    let process = rustix::process::Pid::from_raw(pid).unwrap();
    // It may have ended by itself.
    let _ = rustix::process::kill_process(process, rustix::process::Signal::KILL);
    wait_for("the end of a process", || (!is_alive(pid)).then_some(()));
}

/// Kills a server and the mount's process, and starts the server again: all in another process, since
/// without an MDT the mount does not even let this one start a process, whose copies of open files
/// have to be closed first.
fn kill_both_and_start(cluster: &Cluster, role: &str) {
    let output = cluster.run(&["dev", "status", "--output", "json"]);
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    let found = all.as_array().unwrap().iter().find(|process| process["name"] == role);
    let script = "kill -9 $0 $1; exec \"$2\" dev up";
    let both = [found.unwrap()["pid"].to_string(), cluster.server().to_string()];
    let mut command = Command::new("sh");
    command.args(["-c", script]).args(both).arg(env!("CARGO_BIN_EXE_weft"));
    cluster.settle(&mut command);
    assert!(command.status().unwrap().success(), "weft dev up");
}

/// Kills whoever serves, at moments that are everywhere in an operation.
fn kill_often(cluster: &Cluster) {
    sleep(Duration::from_millis(500));
    for round in 0..ROUNDS {
        let server = cluster.server();
        sleep(Duration::from_micros(50_000 + round * 37_123 % 400_000));
        kill(server);
    }
    // The last one carries on, too.
    sleep(Duration::from_millis(500));
}

#[test]
fn nobody_notices_that_the_process_is_killed() {
    let cluster = Cluster::start("nowritebehind");
    let done = Work::all(&cluster.mnt(), 0, || kill_often(&cluster));
    show("killed", &done);
}

/// With delegations, appends find the end of the file without asking.
#[test]
fn nobody_notices_that_the_process_of_a_delegated_file_is_killed() {
    let cluster = Cluster::start("");
    let stop = std::sync::atomic::AtomicBool::new(false);
    let work = Work { stop: &stop };
    std::thread::scope(|scope| {
        let path = cluster.mnt().join("appends");
        let appends = scope.spawn(move || work.appends(&path, libc::O_DSYNC));
        kill_often(&cluster);
        stop.store(true, std::sync::atomic::Ordering::SeqCst);
        show("killed", &[("delegated appends", appends.join().unwrap())]);
    });
}

#[test]
fn nothing_is_lost_when_the_process_is_replaced() {
    let cluster = Cluster::start("");
    let mnt = cluster.mnt();
    let done = Work::all(&mnt, 0, || {
        for _ in 0..5 {
            sleep(Duration::from_millis(300));
            let before = cluster.server();
            let begun = Instant::now();
            cluster.ok(&["remount", mnt.to_str().unwrap()]);
            eprintln!("replaced within {:?}", begun.elapsed());
            assert!(cluster.server() != before && !is_alive(before));
        }
    });
    show("replaced", &done);
}

#[test]
fn open_files_and_locks_outlive_the_mds_and_the_mount() {
    let cluster = Cluster::start("nowritebehind");
    let mnt = cluster.mnt();
    let mut file = OpenOptions::new();
    let mut file = file.read(true).append(true).create_new(true).open(mnt.join("file")).unwrap();
    let unlinked = File::options().read(true).write(true).create_new(true).open(mnt.join("gone"));
    let unlinked = unlinked.unwrap();
    fs::remove_file(mnt.join("gone")).unwrap();
    file.write_all(b"one").unwrap();
    unlinked.write_all_at(b"still here", 0).unwrap();
    file.lock().unwrap();
    kill_both_and_start(&cluster, "mds0");
    file.write_all(b", two").unwrap();
    assert_eq!(fs::read(mnt.join("file")).unwrap(), b"one, two");
    assert_eq!(load::read_all(&unlinked), b"still here");
    assert!(File::open(mnt.join("file")).unwrap().try_lock().is_err(), "the lock is lost");
    file.unlock().unwrap();
    File::open(mnt.join("file")).unwrap().try_lock().unwrap();
}

#[test]
fn what_was_written_behind_and_is_lost_is_told() {
    let cluster = Cluster::start("");
    let path = cluster.mnt().join("file");
    let file = File::create_new(&path).unwrap();
    file.write_all_at(b"synced", 0).unwrap();
    file.sync_all().unwrap();
    // A process that is killed has this for about a second only.
    let lost = (0..10).any(|_| {
        file.write_all_at(b"behind", 6).unwrap();
        kill(cluster.server());
        file.sync_all().is_err()
    });
    assert!(lost, "ten processes were killed with data, and nobody was told");
    // It is told once, and the file goes on.
    file.write_all_at(b"again!", 6).unwrap();
    file.sync_all().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"syncedagain!");
}

#[test]
fn times_and_sizes_outlive_the_process() {
    let cluster = Cluster::start("nowritebehind");
    let (file, path) = {
        let path = cluster.mnt().join("file");
        let mut options = OpenOptions::new();
        (options.write(true).create_new(true).custom_flags(0).open(&path).unwrap(), path)
    };
    file.write_all_at(&[7; 100_000], 0).unwrap();
    let written = file.metadata().unwrap().modified().unwrap();
    kill(cluster.server());
    let after = fs::metadata(&path).unwrap();
    assert_eq!(after.len(), 100_000);
    let differs = after.modified().unwrap().duration_since(written).unwrap_or_default();
    assert!(differs < Duration::from_secs(1), "{differs:?}");
    // What was set by hand stays, though the data is newer.
    let set = std::time::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    file.write_all_at(&[8; 100], 0).unwrap();
    file.set_modified(set).unwrap();
    kill(cluster.server());
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), set);
}

#[test]
fn unmounting_ends_everything() {
    let cluster = Cluster::start("nowritebehind");
    let (holder, server) = (cluster.holder(), cluster.server());
    assert!(holder != server);
    fs::write(cluster.mnt().join("file"), "x").unwrap();
    kill(server);
    let server = cluster.server();
    cluster.ok(&["umount", cluster.mnt().to_str().unwrap()]);
    let gone = || (!is_alive(holder) && !is_alive(server)).then_some(());
    wait_for("the end of holder and server", gone);
    assert!(!cluster.is_mounted());
    cluster.ok(&["dev", "up"]);
    assert_eq!(fs::read(cluster.mnt().join("file")).unwrap(), b"x");
}

#[test]
fn a_mount_ends_with_its_holder() {
    let cluster = Cluster::start("");
    let server = cluster.server();
    kill(cluster.holder());
    wait_for("the end of the server", || (!is_alive(server)).then_some(()));
    assert!(!cluster.is_mounted());
    cluster.ok(&["dev", "up"]);
    fs::write(cluster.mnt().join("file"), "x").unwrap();
}

#[test]
fn what_cannot_be_remounted_goes_on() {
    let cluster = Cluster::start("noholder");
    let mnt = cluster.mnt();
    let failed = cluster.run(&["remount", mnt.to_str().unwrap()]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&failed.stderr).contains("no holder"));
    cluster.ok(&["umount", mnt.to_str().unwrap()]);
    drop(cluster);
    let cluster = Cluster::start("");
    let mnt = cluster.mnt();
    let server = cluster.server();
    let failed = cluster.run(&["remount", mnt.to_str().unwrap(), "-o", "ro"]);
    assert!(String::from_utf8_lossy(&failed.stderr).contains("cannot be changed"));
    assert_eq!(cluster.server(), server);
    cluster.ok(&["remount", mnt.to_str().unwrap(), "-o", "soft,timeo=20s"]);
    assert_ne!(cluster.server(), server);
}
