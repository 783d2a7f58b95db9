//! Eight programs on five clients (three mounts with a process each, two programs with the library preloaded)
//! set and get registers: the data of files, what names stand for, extended attributes, times, sizes. What they
//! saw must be what could have happened one operation after the other; also while the MDS is killed, the process
//! of a mount is killed, and another one is stopped for longer than others wait for it.

#[path = "../holder/cluster.rs"]
mod cluster;
mod history;

use cluster::{Cluster, wait_for};
use history::Op;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

const WORKER: &str = include_str!("worker.py");
const KINDS: [&str; 5] = ["data", "name", "mark", "time", "size"];

/// A cluster with three mounts, and programs at work.
struct World {
    cluster: Cluster,
    mounts: Vec<PathBuf>,
    workers: Vec<Child>,
}

impl World {
    fn new() -> World {
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--release", "--locked", "-p", "weft-preload"]);
        assert!(build.status().unwrap().success());
        let cluster = Cluster::start("");
        let mounts = vec![cluster.mnt()];
        let mut world = World { cluster, mounts, workers: Vec::new() };
        world.mount("straight", "noholder,nowritebehind");
        world.mount("behind", "noholder");
        for kind in KINDS {
            for index in 0..2 {
                let path = world.mounts[0].join(format!("{kind}{index}"));
                let content: &[u8] = match kind {
                    "data" => &[0; 8],
                    "name" => b"0",
                    _ => b"",
                };
                fs::write(&path, content).unwrap();
                File::options()
                    .write(true)
                    .open(path)
                    .unwrap()
                    .set_modified(std::time::UNIX_EPOCH)
                    .unwrap();
            }
        }
        fs::write(world.cluster.root().join("worker.py"), WORKER).unwrap();
        world
    }

    fn address(&self) -> String {
        let all = fs::read_to_string(self.cluster.root().join("dev/run/address")).unwrap();
        all.lines().next().unwrap().to_string()
    }

    fn key(&self) -> String {
        self.cluster.root().join("dev/cluster.key").display().to_string()
    }

    /// One more mount, in a process of its own.
    fn mount(&mut self, name: &str, options: &str) {
        let dir = self.cluster.root().join(name);
        let log = dir.with_extension("log");
        let options = format!("{options},key={},log={}", self.key(), log.display());
        self.cluster.ok(&["mount", &self.address(), dir.to_str().unwrap(), "-o", &options]);
        self.mounts.push(dir);
    }

    fn log_of(&self, worker: usize) -> PathBuf {
        self.cluster.root().join(format!("history{worker}"))
    }

    /// Starts a program on a mount, or under the library where `dir` is its prefix.
    fn start(&mut self, dir: &Path, preloaded: bool, seconds: u32) {
        let number = self.workers.len();
        let mut command = match preloaded {
            false => Command::new("python3"),
            true => {
                let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
                command.args(["preload", "--key", &self.key(), &self.address()]);
                command.arg(dir).args(["--", "python3"]);
                command
            }
        };
        command.arg(self.cluster.root().join("worker.py")).arg(dir);
        command.args([number.to_string(), seconds.to_string()]).arg(self.log_of(number));
        if !preloaded {
            command.arg("mmap");
        }
        self.cluster.settle(&mut command);
        self.workers.push(command.stdout(Stdio::null()).spawn().unwrap());
    }

    fn start_all(&mut self, seconds: u32) {
        for mount in self.mounts.clone() {
            self.start(&mount, false, seconds);
            self.start(&mount, false, seconds);
        }
        for _ in 0..2 {
            self.start(Path::new("/weft"), true, seconds);
        }
    }

    /// Waits for all programs, and looks at what they have seen.
    fn check(&mut self) {
        let mut registers: BTreeMap<String, Vec<Op>> = BTreeMap::new();
        let mut failed = Vec::new();
        for number in 0..self.workers.len() {
            let worker = &mut self.workers[number];
            let status = wait_for("the end of a program", || worker.try_wait().unwrap());
            assert!(status.success(), "program {number}: {status}");
            let history = fs::read_to_string(self.log_of(number)).unwrap();
            let done = history.lines().count();
            assert!(done > 50, "program {number} has done {done} operations only");
            for line in history.lines() {
                let (register, op) = parse(line);
                match op {
                    Some(op) => registers.entry(register.into()).or_default().push(op),
                    None => failed.push(line.to_string()),
                }
            }
        }
        assert_eq!(registers.len(), KINDS.len() * 2);
        let total: usize = registers.values().map(Vec::len).sum();
        eprintln!("{total} operations, {} reads failed: {failed:?}", failed.len());
        assert!(failed.len() < total / 20, "too many have failed");
        for (register, history) in &registers {
            history::check(history).unwrap_or_else(|found| panic!("{register}: {found}"));
        }
    }

    /// A process of the cluster or of a mount.
    fn process(&self, name: &str) -> i32 {
        let output = self.cluster.run(&["dev", "status", "--output", "json"]);
        let all: Value = serde_json::from_slice(&output.stdout).unwrap();
        let found = all.as_array().unwrap().iter().find(|process| process["name"] == name);
        found.unwrap()["pid"].as_i64().unwrap() as i32
    }

    /// The process that serves the mount on `dir`.
    fn process_of(&self, dir: &Path) -> i32 {
        let records = fs::read_dir(self.cluster.root().join("run/mounts")).unwrap();
        let records = records.map(|entry| fs::read(entry.unwrap().path()).unwrap());
        let mut records = records.map(|text| serde_json::from_slice::<Value>(&text).unwrap());
        let found = records.find(|record| record["mountpoint"] == dir.to_str().unwrap());
        found.unwrap()["process"]["pid"].as_i64().unwrap() as i32
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            // It has ended, if all went well.
            let _ = worker.kill();
            let _ = worker.wait();
        }
        for mount in &self.mounts[1..] {
            let output = self.cluster.run(&["umount", mount.to_str().unwrap()]);
            if !output.status.success() {
                eprintln!("weft umount: {}", String::from_utf8_lossy(&output.stderr));
                let _ = Command::new("fusermount3").arg("-uz").arg(mount).status();
            }
        }
    }
}

/// A register and what was done; nothing for a read that failed.
fn parse(line: &str) -> (&str, Option<Op>) {
    let fields: Vec<&str> = line.splitn(6, ' ').collect();
    let number = |at: usize| fields[at].parse::<i64>().unwrap();
    let (writes, ok) = (fields[1] == "w", fields[5] == "ok");
    let end = if ok { number(4) } else { i64::MAX };
    let op = Op { writes, value: number(2), begin: number(3), end };
    (fields[0], (ok || writes).then_some(op))
}

fn signal(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

#[test]
fn all_clients_see_one_history() {
    let mut world = World::new();
    world.start_all(8);
    world.check();
}

#[test]
fn also_when_servers_and_clients_are_killed_and_stopped() {
    let mut world = World::new();
    let (held, behind) = (world.cluster.server(), world.process_of(&world.mounts[2]));
    world.start_all(22);
    sleep(Duration::from_secs(2));
    signal(world.process("mds0"), Signal::KILL);
    sleep(Duration::from_millis(300));
    world.cluster.ok(&["dev", "up"]);
    sleep(Duration::from_secs(2));
    signal(held, Signal::KILL);
    sleep(Duration::from_secs(1));
    // Longer than others wait for anything that was delegated to it.
    signal(behind, Signal::STOP);
    sleep(Duration::from_secs(7));
    signal(behind, Signal::CONT);
    sleep(Duration::from_secs(2));
    signal(world.process("oss0"), Signal::KILL);
    world.cluster.ok(&["dev", "up"]);
    world.check();
}
