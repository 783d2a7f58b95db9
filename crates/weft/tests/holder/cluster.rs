//! A cluster of processes in a temporary directory, with a mount that is held.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Longest wait for anything.
pub const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(2);

/// Gone when dropped, whatever the test did.
pub struct Cluster {
    root: tempfile::TempDir,
}

impl Cluster {
    /// Started, and mounted with these options.
    pub fn start(options: &str) -> Cluster {
        let cluster = Cluster { root: tempfile::tempdir().unwrap() };
        let mut up = vec!["dev", "up", "--processes", "--osts", "2"];
        if !options.is_empty() {
            up.extend(["-o", options]);
        }
        cluster.ok(&up);
        cluster
    }

    /// The directory with all of it.
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    pub fn mnt(&self) -> PathBuf {
        self.root().join("dev/mnt")
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
        self.settle(command.args(args));
        command
    }

    /// Has a command find this cluster.
    pub fn settle(&self, command: &mut Command) {
        let root = self.root();
        command.current_dir(root).stdin(Stdio::null());
        command.env("WEFT_DEV_DIR", root.join("dev")).env("WEFT_RUN_DIR", root.join("run"));
    }

    pub fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Runs a command that has to succeed.
    pub fn ok(&self, args: &[&str]) {
        let output = self.run(args);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "weft {args:?}: {:?}: {errors}", output.status);
    }

    /// The process that holds the mount.
    pub fn holder(&self) -> i32 {
        let records = fs::read_dir(self.root().join("run/mounts")).unwrap();
        let paths = records.map(|entry| entry.unwrap().path());
        // One that is being replaced has another name meanwhile.
        let ours = |path: PathBuf| {
            let is_record = path.extension() == Some("json".as_ref());
            let text = is_record.then(|| fs::read(path).unwrap())?;
            let record: Value = serde_json::from_slice(&text).unwrap();
            (record["mountpoint"] == self.mnt().to_str().unwrap()).then_some(record)
        };
        let record = paths.filter_map(ours).next().unwrap();
        record["process"]["pid"].as_i64().unwrap() as i32
    }

    /// The process that serves the mount, once there is one.
    pub fn server(&self) -> i32 {
        let holder = self.holder();
        wait_for("a process that serves the mount", || {
            // Children of other threads of the holder are listed with those.
            let tasks = fs::read_dir(format!("/proc/{holder}/task")).ok()?;
            let files = tasks.flatten().map(|task| task.path().join("children"));
            let all = files.filter_map(|file| fs::read_to_string(file).ok());
            let found: Vec<i32> = all
                .flat_map(|line| {
                    line.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<_>>()
                })
                .collect();
            found.into_iter().find(|&pid| is_alive(pid))
        })
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.root().join("dev/log/mount.log")).unwrap_or_default()
    }

    pub fn is_mounted(&self) -> bool {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        mounts.contains(self.mnt().to_str().unwrap())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- log of the mount\n{}", self.log());
        }
        let output = self.run(&["dev", "down"]);
        if !output.status.success() {
            eprintln!("weft dev down: {}", String::from_utf8_lossy(&output.stderr));
        }
        if self.is_mounted() {
            let _ = Command::new("fusermount3").arg("-uz").arg(self.mnt()).status();
        }
    }
}

pub fn is_alive(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

pub fn wait_for<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(Instant::now() < deadline, "no {what} within {PATIENCE:?}");
        sleep(POLL);
    }
}
