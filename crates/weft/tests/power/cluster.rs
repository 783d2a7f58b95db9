//! Two nodes, each a process, each target on a lossy mount of its own.

use rand::Rng;
use rand::rngs::SmallRng;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use weft_client::{Client, ClientConfig, Policy};
use weft_lossy::{Disk, Lossy, Mode};
use weft_rpc::SystemEnv;

/// The targets of each node.
const NODES: [(&str, &[&str]); 2] = [("meta", &["mgt", "mdt0"]), ("data", &["ost0", "ost1"])];
/// Longest start, stop or command.
const PATIENCE: Duration = Duration::from_secs(60);
/// Of sessions; what a client has left is cleared away that long after it was last heard of.
pub const LEASE: Duration = Duration::from_secs(1);
/// How long a client waits for servers that are gone.
const CLIENT_PATIENCE: Duration = Duration::from_millis(1500);

/// A disk for each target.
pub type Disks = Vec<Disk>;

/// What happens to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Power,
    Kill,
}

impl Fate {
    /// For each node.
    pub fn choose(rng: &mut SmallRng) -> [Fate; 2] {
        match rng.random_range(0..8) {
            0 => [Fate::Kill, Fate::Kill],
            1..3 => [Fate::Power, Fate::Kill],
            3..5 => [Fate::Kill, Fate::Power],
            _ => [Fate::Power, Fate::Power],
        }
    }
}

/// How much the disks may lose.
pub fn mode(rng: &mut SmallRng) -> Mode {
    if rng.random_bool(0.5) { Mode::Ordered } else { Mode::Posix }
}

/// A process that is killed when dropped.
struct Server(Child);

impl Server {
    fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The cluster. Fields in the order in which they end.
pub struct Cluster {
    servers: Vec<Server>,
    mounts: Vec<Lossy>,
    boots: [u32; 2],
    shim: PathBuf,
    root: tempfile::TempDir,
}

fn targets() -> impl Iterator<Item = (usize, &'static str)> {
    NODES
        .iter()
        .enumerate()
        .flat_map(|(node, (_, names))| names.iter().map(move |name| (node, *name)))
}

/// Disks with a formatted target each, on which the power has failed right after.
pub fn format() -> Disks {
    let empty = targets().map(|_| Disk::new(Mode::Posix, 0)).collect();
    let mut cluster = Cluster::mount(empty);
    let printed =
        cluster.weft(0, &["cluster", "init", "--dir", cluster.root.path().to_str().unwrap()]);
    let id = printed.split('"').nth(1).unwrap();
    for (target, index) in [("mdt0", "0"), ("ost0", "0"), ("ost1", "1")] {
        let (dir, role) = (cluster.dir(target), &target[..3]);
        let what = ["--role", role, "--index", index, "--cluster", id];
        let args = [&["target", "format", "--dir", dir.to_str().unwrap()], &what[..]].concat();
        cluster.weft(0, &args);
    }
    let cut = |mount: Lossy| {
        mount.cut_power();
        mount.unmount().after_power_cut(0)
    };
    cluster.mounts.drain(..).map(cut).collect()
}

impl Cluster {
    fn mount(disks: Disks) -> Cluster {
        let root = tempfile::tempdir().unwrap();
        let shim = weft_lossy::syncfs_shim(root.path()).unwrap();
        let mut cluster =
            Cluster { servers: Vec::new(), mounts: Vec::new(), boots: [0; 2], shim, root };
        for ((_, name), disk) in targets().zip(disks) {
            let dir = cluster.root.path().join(name);
            fs::create_dir(&dir).unwrap();
            cluster.mounts.push(Lossy::mount(disk, &dir).unwrap());
        }
        NODES.iter().for_each(|(node, _)| cluster.write_config(node));
        cluster
    }

    /// Servers and their targets.
    pub fn start(formatted: &Disks, mode: Mode, rng: &mut SmallRng) -> Cluster {
        let again = |disk: &Disk| disk.after_power_cut(rng.random()).in_mode(mode);
        let mut cluster = Cluster::mount(formatted.iter().map(again).collect());
        cluster.start_servers();
        cluster
    }

    /// Where a target is.
    pub fn dir(&self, target: &str) -> PathBuf {
        self.root.path().join(target)
    }

    fn config(&self, node: &str) -> String {
        self.dir(&format!("{node}.toml")).to_str().unwrap().into()
    }

    /// Where the manager listens.
    pub fn manager(&self) -> String {
        format!("unix:{}", self.dir("meta.sock").display())
    }

    fn write_config(&self, node: &str) {
        let dir = |target| format!("dir = {:?}", self.dir(target));
        let targets = match node {
            "meta" => format!("[manager]\n{}\n[[mdt]]\nindex = 0\n{}\n", dir("mgt"), dir("mdt0")),
            _ => format!(
                "[[ost]]\nindex = 0\n{}\n[[ost]]\nindex = 1\n{}\n",
                dir("ost0"),
                dir("ost1")
            ),
        };
        let managers = if node == "meta" { vec![] } else { vec![self.manager()] };
        let text = format!(
            "node = \"{node}\"\nlisten = [\"unix:{}\"]\nmanagers = {managers:?}\n\
             {targets}\
             [tuning]\nlease = \"{}s\"\nheartbeat_interval = \"300ms\"\nnode_timeout = \"2s\"\n",
            self.dir(&format!("{node}.sock")).display(),
            LEASE.as_secs()
        );
        fs::write(self.config(node), text).unwrap();
    }

    fn command(&self, node: usize, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
        command.args(args).current_dir(self.root.path()).stdin(Stdio::null());
        command.env("LD_PRELOAD", &self.shim);
        command.env("WEFT_BOOT_ID", format!("boot-{}", self.boots[node]));
        command
    }

    /// Runs a command to its end, which has to be good; what it printed.
    pub fn weft(&self, node: usize, args: &[&str]) -> String {
        let Output { status, stdout, stderr } = self.command(node, args).output().unwrap();
        let (text, errors) =
            (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap());
        assert!(status.success(), "weft {args:?}: {status}: {text}{errors}");
        text
    }

    fn start_servers(&mut self) {
        for (node, (name, _)) in NODES.iter().enumerate() {
            let log = fs::File::options().create(true).append(true).open(self.log(name)).unwrap();
            let mut command = self.command(node, &["server", "--config", &self.config(name)]);
            let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
            let mut stdout = BufReader::new(child.stdout.take().unwrap());
            self.servers.push(Server(child));
            let (tell, told) = std::sync::mpsc::channel();
            std::thread::spawn(move || {
                let mut line = String::new();
                let _ = stdout.read_line(&mut line);
                let _ = tell.send(line);
            });
            let line = told.recv_timeout(PATIENCE).unwrap_or_default();
            let said = || fs::read_to_string(self.log(name)).unwrap_or_default();
            assert!(line == "ready\n", "{name} does not start: {}", said());
        }
    }

    /// What a node's server has to say.
    pub fn log(&self, node: &str) -> PathBuf {
        self.dir(&format!("{node}.log"))
    }

    /// The power fails, or servers are killed.
    pub fn fail(&mut self, fates: &[Fate; 2]) {
        for ((node, _), mount) in targets().zip(&self.mounts) {
            if fates[node] == Fate::Power {
                mount.cut_power();
            }
        }
        self.servers.clear();
    }

    /// The power is back, and the servers are started again on what is left.
    pub fn come_back(&mut self, fates: &[Fate; 2], rng: &mut SmallRng) {
        let mounts = std::mem::take(&mut self.mounts);
        for ((node, name), mount) in targets().zip(mounts) {
            self.mounts.push(match fates[node] {
                Fate::Kill => mount,
                Fate::Power => {
                    let disk = mount.unmount().after_power_cut(rng.random());
                    Lossy::mount(disk, &self.dir(name)).unwrap()
                }
            });
        }
        for (boot, fate) in self.boots.iter_mut().zip(fates) {
            *boot += u32::from(*fate == Fate::Power);
        }
        self.start_servers();
    }

    /// Servers stop in order; the MDT first, which may be asking OSTs for sizes of files of dead clients.
    pub fn stop(&mut self) {
        for server in &mut self.servers {
            let pid = rustix::process::Pid::from_child(&server.0);
            rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
            let deadline = Instant::now() + PATIENCE;
            let status = loop {
                match server.0.try_wait().unwrap() {
                    Some(status) => break status,
                    None if Instant::now() < deadline => {
                        std::thread::sleep(Duration::from_millis(10));
                    }
                    None => panic!("a server does not stop"),
                }
            };
            assert!(status.success(), "a server stops with {status}");
        }
    }

    /// One more client.
    pub fn client(&self) -> Arc<Client> {
        let config = ClientConfig {
            managers: vec![self.manager()],
            policy: Policy::Soft(CLIENT_PATIENCE),
            host: "power".into(),
            ..ClientConfig::default()
        };
        Client::mount(config, None, Arc::new(SystemEnv::new())).unwrap()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for (node, _) in NODES {
                let text = fs::read_to_string(self.log(node)).unwrap_or_default();
                let from = text.len().saturating_sub(3000);
                println!("{node}: ... {}", text.get(from..).unwrap_or(&text));
            }
        }
        self.servers.clear();
        self.mounts.drain(..).for_each(|mount| drop(mount.unmount()));
    }
}

/// The names in a directory of the disk.
pub fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}
