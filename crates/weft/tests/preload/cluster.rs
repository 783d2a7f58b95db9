//! A development cluster with a FUSE mount, and shells under the preload library.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// Longest run of one command.
const PATIENCE: Duration = Duration::from_secs(60);

/// Gone when dropped, whatever the test did.
pub struct Cluster {
    root: tempfile::TempDir,
    source: String,
}

impl Cluster {
    /// Builds the library, which no dependency of a test can be, and starts the servers.
    pub fn start() -> Cluster {
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--release", "--locked", "-p", "weft-preload"]);
        assert!(build.status().unwrap().success());
        let root = tempfile::tempdir().unwrap();
        let mut cluster = Cluster { root, source: String::new() };
        let up = cluster.dev(&["up", "--processes", "--osts", "2"]);
        let address = up.lines().find_map(|line| line.strip_prefix("address")).unwrap();
        cluster.source = address.trim().to_string();
        cluster
    }

    fn dev(&self, args: &[&str]) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
        command.arg("dev").args(args).env("WEFT_DEV_DIR", self.root.path().join("dev"));
        command.env("WEFT_RUN_DIR", self.root.path().join("run"));
        succeed(finish(spawn(command)), &format!("dev {args:?}"))
    }

    /// A path in the FUSE mount.
    pub fn mnt(&self, name: &str) -> PathBuf {
        self.root.path().join("dev/mnt").join(name)
    }

    /// A path on this machine.
    pub fn scratch(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn key(&self) -> PathBuf {
        self.root.path().join("dev/cluster.key")
    }

    /// `weft preload SOURCE /weft -- ...`
    fn preloaded(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
        command.arg("preload").arg("--key").arg(self.key());
        command.args([self.source.as_str(), "/weft", "--"]).args(args);
        command.current_dir(self.root.path());
        command
    }

    /// Runs a script of the shell; whatever comes of it.
    pub fn run(&self, script: &str) -> Output {
        finish(spawn(self.preloaded(&["sh", "-c", script])))
    }

    /// The same, and it has to succeed; what it printed.
    pub fn ok(&self, script: &str) -> String {
        succeed(self.run(script), script)
    }

    /// The same by another shell.
    pub fn bash(&self, script: &str) -> String {
        succeed(finish(spawn(self.preloaded(&["bash", "-c", script]))), script)
    }

    /// Runs a script of Python.
    pub fn python(&self, script: &str, args: &[&str]) {
        let file = self.root.path().join("script.py");
        std::fs::write(&file, script).unwrap();
        let all = [&["python3", file.to_str().unwrap()], args].concat();
        succeed(finish(spawn(self.preloaded(&all))), script);
    }

    /// Runs a script without the library.
    pub fn plain(&self, script: &str) {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        succeed(finish(spawn(command)), script);
    }

    /// Runs a program with the variable of the library set by hand.
    pub fn with_variable(&self, value: &str, program: &str) -> Output {
        let library = Path::new(env!("CARGO_BIN_EXE_weft")).with_file_name("libweft_preload.so");
        let mut command = Command::new(program);
        command.env("LD_PRELOAD", library).env("WEFT_PRELOAD", value);
        finish(spawn(command))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.dev(&["down"]);
    }
}

fn spawn(mut command: Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn succeed(output: Output, what: &str) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{what}: {:?}: {text}\n{errors}", output.status);
    text.into_owned()
}

/// Waits for a command, and kills it when it takes too long.
fn finish(child: Child) -> Output {
    let pid = rustix::process::Pid::from_child(&child);
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || tell.send(child.wait_with_output()));
    match told.recv_timeout(PATIENCE) {
        Ok(output) => output.unwrap(),
        Err(_) => {
            // It has not been waited for, so the number is still its own.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            panic!("a command takes longer than {PATIENCE:?}");
        }
    }
}

/// Bytes of a file: another length and other bytes for each number.
pub fn content(number: u64) -> Vec<u8> {
    let seed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
    seed.iter().copied().cycle().take(1 + (number as usize * 7919) % 300_000).collect()
}
