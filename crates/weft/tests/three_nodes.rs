//! The example of three nodes, as its README says, in network namespaces of this machine: three nodes
//! and a client at one bridge. Needs root; without it nothing is tried, and that is said.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Longest run of a command, and longest start and stop of a server.
const PATIENCE: Duration = Duration::from_secs(60);
/// Number of the client among the namespaces, and in its address.
const CLIENT: usize = 4;

/// A bridge with four namespaces at it; gone when dropped.
struct Network {
    tag: String,
}

impl Network {
    fn new() -> Network {
        let network = Network { tag: format!("weft{}", std::process::id() % 1_000_000) };
        let bridge = &network.tag;
        ip(&["link", "add", bridge, "type", "bridge"]);
        ip(&["link", "set", bridge, "up"]);
        for n in 1..=CLIENT {
            let (space, outer, inner) =
                (network.space(n), format!("{bridge}-{n}"), format!("in{n}"));
            ip(&["netns", "add", &space]);
            ip(&["link", "add", &outer, "type", "veth", "peer", "name", &inner, "netns", &space]);
            ip(&["link", "set", &outer, "master", bridge, "up"]);
            let address = format!("10.77.0.{n}/24");
            ip(&["-n", &space, "address", "add", &address, "dev", &inner]);
            ip(&["-n", &space, "link", "set", &inner, "up"]);
            ip(&["-n", &space, "link", "set", "lo", "up"]);
        }
        network
    }

    fn space(&self, n: usize) -> String {
        format!("{}-ns{n}", self.tag)
    }

    /// `weft` in a namespace. (`ip netns exec` would hide its mounts from us.)
    fn weft(&self, n: usize, root: &Path, args: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.space(n)));
        command.arg(env!("CARGO_BIN_EXE_weft")).args(args).current_dir(root);
        command.env("WEFT_RUN_DIR", root.join("run")).stdin(Stdio::null());
        command
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let delete = |what: [&str; 3]| drop(Command::new("ip").args(what).output());
        for n in 1..=CLIENT {
            // A namespace lives on while anything in it does; the link to it need not.
            delete(["link", "delete", &format!("{}-{n}", self.tag)]);
            delete(["netns", "delete", &self.space(n)]);
        }
        delete(["link", "delete", &self.tag]);
    }
}

fn ip(args: &[&str]) {
    let output = Command::new("ip").args(args).output().unwrap();
    assert!(output.status.success(), "ip {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A server in the foreground; stopped when dropped.
struct Server {
    child: Child,
    _stdout: BufReader<ChildStdout>,
}

impl Server {
    fn start(mut command: Command, log: &Path) -> Server {
        let log_file = fs::File::options().create(true).append(true).open(log).unwrap();
        let mut child = command.stdout(Stdio::piped()).stderr(log_file).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let mut line = String::new();
            let _ = stdout.read_line(&mut line);
            let _ = tell.send((line, stdout));
        });
        let heard = told.recv_timeout(PATIENCE);
        let server = heard.ok().filter(|(line, _)| line == "ready\n");
        let Some((_, stdout)) = server else {
            let _ = child.kill();
            panic!("server does not start: {}", fs::read_to_string(log).unwrap());
        };
        Server { child, _stdout: stdout }
    }

    /// `SIGTERM`; whether it ended in order.
    fn stop(&mut self) -> bool {
        let pid = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.success();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !self.stop() {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

/// Unmounts lazily when dropped, should it be mounted still.
struct Mountpoint(PathBuf);

impl Drop for Mountpoint {
    fn drop(&mut self) {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        if mounts.contains(self.0.to_str().unwrap()) {
            let _ = Command::new("fusermount3").arg("-uz").arg(&self.0).status();
        }
    }
}

fn run(mut command: Command) -> Output {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(10)),
            None => {
                let _ = child.kill();
                panic!("{command:?} takes longer than {PATIENCE:?}");
            }
        }
    };
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    child.stdout.take().unwrap().read_to_end(&mut stdout).unwrap();
    child.stderr.take().unwrap().read_to_end(&mut stderr).unwrap();
    Output { status, stdout, stderr }
}

fn ok(command: Command) -> String {
    let shown = format!("{command:?}");
    let output = run(command);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{shown}: {:?}: {errors}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// The example's configuration of node `n`, with directories below `root`.
fn configure(root: &Path, n: usize, cluster: &str) -> String {
    // Tests run in the directory of their package.
    let example = Path::new("../../examples/three-nodes");
    let text = fs::read_to_string(example.join(format!("node{n}.toml"))).unwrap();
    let node = root.join(format!("node{n}"));
    let text = text
        .replace("00000000-0000-4000-8000-000000000000", cluster)
        .replace("/etc/weft/cluster.key", root.join("cluster.key").to_str().unwrap())
        .replace("/srv/weft/mgt", root.join("mgt").to_str().unwrap())
        .replace("/srv/weft", node.to_str().unwrap())
        .replace("/run/weft", node.join("run").to_str().unwrap());
    let file = root.join(format!("node{n}.toml"));
    fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_string()
}

/// A client whose key is that of clients only, and its mount.
struct Client<'a> {
    network: &'a Network,
    root: &'a Path,
    mountpoint: Mountpoint,
}

impl<'a> Client<'a> {
    fn mount(network: &'a Network, root: &'a Path, key: &str) -> Client<'a> {
        let text = ok(network.weft(1, root, &["cluster", "key", "--role", "client", "--key", key]));
        let key_file = root.join("client.key");
        let mut options = fs::File::options();
        let file = options.write(true).create_new(true).mode(0o600).open(&key_file);
        file.unwrap().write_all(text.as_bytes()).unwrap();
        let client = Client { network, root, mountpoint: Mountpoint(root.join("mnt")) };
        let log = root.join("mount.log");
        let options = format!("key={},log={}", key_file.display(), log.display());
        client.weft(&["mount", "10.77.0.1", &client.path(""), "-o", &options]);
        client
    }

    fn path(&self, name: &str) -> String {
        self.mountpoint.0.join(name).to_str().unwrap().to_string()
    }

    /// What a command prints, which has to succeed.
    fn weft(&self, args: &[&str]) -> String {
        ok(self.network.weft(CLIENT, self.root, args))
    }

    /// Waits until files are placed on all OSTs: the metadata server learns of new ones with its
    /// next heartbeat.
    fn wait_for_osts(&self, count: usize) {
        let deadline = Instant::now() + PATIENCE;
        for n in 0.. {
            let file = self.path(&format!("empty{n}"));
            fs::write(&file, b"").unwrap();
            if self.weft(&["getstripe", "-c", &file]) == format!("{count}\n") {
                return;
            }
            assert!(Instant::now() < deadline, "files are not placed on {count} OSTs");
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

#[test]
fn the_example_of_three_nodes_works() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("not tried: network namespaces need root");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    let network = Network::new();
    let weft = |n: usize, args: &[&str]| network.weft(n, root, args);

    let printed = ok(weft(1, &["cluster", "init", "--dir", root.to_str().unwrap()]));
    let cluster = printed.split('"').nth(1).unwrap();
    let configs: Vec<String> = (1..=3).map(|n| configure(root, n, cluster)).collect();
    for (config, n) in configs.iter().zip(1..) {
        ok(weft(n, &["config", "check", config]));
        ok(weft(n, &["target", "format", "--config", config]));
    }
    let log = |n: usize| root.join(format!("node{n}.log"));
    let start =
        |n: usize| Server::start(weft(n, &["server", "--config", &configs[n - 1]]), &log(n));
    let mut servers: Vec<Server> = (1..=3).map(start).collect();

    let key = root.join("cluster.key").to_str().unwrap().to_string();
    let client = Client::mount(&network, root, &key);
    client.wait_for_osts(5);
    let data: Vec<u8> = (0..20_000_000u32).map(|n| (n % 251) as u8).collect();
    fs::write(client.path("striped"), &data).unwrap();

    // An operator's command needs more than the key of clients.
    let asked =
        |command: &str, key: &str| weft(2, &[command, "--manager", "10.77.0.1", "--key", key]);
    let client_key = root.join("client.key");
    assert_eq!(run(asked("df", client_key.to_str().unwrap())).status.code(), Some(1));
    assert_eq!(ok(asked("df", &key)).lines().count(), 8);
    ok(asked("status", &key));

    // A node goes: its targets are missed, and nothing else. It comes back: so is the data.
    assert!(servers[2].stop(), "{}", fs::read_to_string(log(3)).unwrap());
    let output = run(asked("status", &key));
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(4), "{text}");
    assert!(text.contains("OST0003 is down") && text.contains("OST0004 is down"), "{text}");
    servers[2] = start(3);
    assert!(fs::read(client.path("striped")).unwrap() == data);
    ok(asked("status", &key));
    client.weft(&["umount", &client.path("")]);

    // What is served is not removed, nor what may hold something, unless that is meant.
    let manage =
        |args: &[&str]| weft(2, &[args, &["--manager", "10.77.0.1", "--key", &key]].concat());
    let refused = |args: &[&str]| {
        let output = run(manage(args));
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let checked = ok(manage(&["target", "check"]));
    assert!(checked.lines().count() == 2 && checked.contains("MDT0000"), "{checked}");
    let why = refused(&["node", "remove", "node3", "--force"]);
    assert!(why.contains("its server reports it"), "{why}");
    assert!(servers[2].stop());
    let why = refused(&["target", "remove", "OST0004"]);
    assert!(why.contains("force"), "{why}");
    let why = refused(&["node", "remove", "node3"]);
    assert!(why.contains("OST0003, OST0004"), "{why}");
    ok(manage(&["node", "remove", "node3", "--force"]));
    let left = ok(manage(&["target", "list"]));
    assert!(left.contains("OST0002") && !left.contains("OST0003"), "{left}");
    assert!(!ok(manage(&["node", "list"])).contains("node3"));
    assert!(servers[..2].iter_mut().all(Server::stop));
}
