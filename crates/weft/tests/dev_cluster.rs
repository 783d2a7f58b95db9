//! Development clusters as people use them: up, down, up again, killed, and asked by commands.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Longest run of one command.
const COMMAND_PATIENCE: Duration = Duration::from_secs(120);

/// A development cluster that is gone when this is dropped, whatever happens.
struct Dev {
    root: tempfile::TempDir,
}

impl Dev {
    fn new() -> Dev {
        Dev { root: tempfile::tempdir().unwrap() }
    }

    fn dir(&self) -> PathBuf {
        self.root.path().join("dev")
    }

    fn mnt(&self) -> PathBuf {
        self.dir().join("mnt")
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
        command.args(args).current_dir(self.root.path());
        command.env("WEFT_DEV_DIR", self.dir()).env("WEFT_RUN_DIR", self.root.path().join("run"));
        command.stdin(Stdio::null());
        command
    }

    /// Runs a command to its end.
    fn run(&self, args: &[&str]) -> Output {
        let mut command = self.command(args);
        finish(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap(), args)
    }

    /// Runs a command that has to succeed; what it printed.
    fn ok(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "weft {args:?}: {:?}: {errors}", output.status);
        String::from_utf8(output.stdout).unwrap()
    }

    fn json(&self, args: &[&str]) -> Value {
        let text = self.ok(&[args, &["--output", "json"]].concat());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("weft {args:?}: {error}: {text}"))
    }

    /// Processes of the cluster that run, by name, without the mount's.
    fn servers(&self) -> Vec<(String, i32)> {
        let output = self.run(&["dev", "status", "--output", "json"]);
        let processes: Value = serde_json::from_slice(&output.stdout).unwrap();
        let process = |p: &Value| {
            (p["name"].as_str().unwrap().to_string(), p["pid"].as_i64().unwrap() as i32)
        };
        let all = processes.as_array().unwrap().iter().map(process);
        all.filter(|(name, pid)| name != "mount" && *pid != 0).collect()
    }

    fn is_mounted(&self) -> bool {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        mounts.contains(self.mnt().to_str().unwrap())
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        let output = self.run(&["dev", "down"]);
        if !output.status.success() {
            eprintln!("weft dev down: {}", String::from_utf8_lossy(&output.stderr));
        }
        if self.is_mounted() {
            let _ = Command::new("fusermount3").arg("-uz").arg(self.mnt()).status();
        }
        if std::thread::panicking() {
            for log in fs::read_dir(self.dir().join("log")).into_iter().flatten().flatten() {
                let text = fs::read_to_string(log.path()).unwrap_or_default();
                eprintln!("--- {}\n{text}", log.path().display());
            }
        }
    }
}

/// Waits for a command, and kills it when it takes too long.
fn finish(child: Child, args: &[&str]) -> Output {
    let pid = rustix::process::Pid::from_child(&child);
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || tell.send(child.wait_with_output()));
    match told.recv_timeout(COMMAND_PATIENCE) {
        Ok(output) => output.unwrap(),
        Err(_) => {
            // It has not been waited for, so the number is still its own.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            panic!("weft {args:?} takes longer than {COMMAND_PATIENCE:?}");
        }
    }
}

fn content(number: u64) -> Vec<u8> {
    let seed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
    seed.iter().copied().cycle().take(1 + (number as usize * 7919) % 300_000).collect()
}

fn write_tree(mnt: &Path) {
    fs::create_dir_all(mnt.join("a/b")).unwrap();
    (0..20).for_each(|n| fs::write(mnt.join(format!("a/b/{n}")), content(n)).unwrap());
    fs::write(mnt.join("large"), content(1).repeat(100)).unwrap();
    std::os::unix::fs::symlink("a/b/3", mnt.join("link")).unwrap();
}

fn check_tree(mnt: &Path) {
    for n in 0..20 {
        assert!(fs::read(mnt.join(format!("a/b/{n}"))).unwrap() == content(n), "file {n}");
    }
    assert!(fs::read(mnt.join("large")).unwrap() == content(1).repeat(100));
    assert!(fs::read(mnt.join("link")).unwrap() == content(3));
}

#[test]
fn data_survives_down_and_up() {
    let dev = Dev::new();
    assert!(dev.ok(&["dev", "up"]).contains("up, in"));
    write_tree(&dev.mnt());
    assert!(dev.ok(&["dev", "up"]).contains("running already"));
    dev.ok(&["dev", "down"]);
    assert!(!dev.is_mounted() && dev.servers().is_empty());
    assert!(dev.ok(&["dev", "down"]).contains("was not running"));
    dev.ok(&["dev", "up", "--osts", "5"]);
    check_tree(&dev.mnt());
    let log = fs::read_to_string(dev.dir().join("log/weft.log")).unwrap();
    assert!(!log.contains("not closed in order"), "{log}");
}

#[test]
fn data_survives_with_processes_and_between_the_modes() {
    let dev = Dev::new();
    dev.ok(&["dev", "up", "--processes", "--osts", "2"]);
    assert_eq!(dev.servers().len(), 4, "{:?}", dev.servers());
    write_tree(&dev.mnt());
    assert!(dev.ok(&["dev", "up"]).contains("running already"));
    assert_eq!(dev.run(&["dev", "up", "--osts", "1"]).status.code(), Some(1));
    dev.ok(&["dev", "down"]);
    dev.ok(&["dev", "up"]);
    check_tree(&dev.mnt());
    assert_eq!(dev.run(&["dev", "up", "--processes"]).status.code(), Some(1));
    dev.ok(&["dev", "down"]);
    dev.ok(&["dev", "up", "--processes"]);
    check_tree(&dev.mnt());
}

/// Writes files one after the other until told to stop.
struct Load {
    stop: Arc<AtomicBool>,
    /// Files that have been written and closed.
    done: Arc<AtomicU64>,
    thread: JoinHandle<std::io::Result<()>>,
}

impl Load {
    fn start(dir: PathBuf) -> Load {
        let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stopped, counted) = (stop.clone(), done.clone());
        let thread = std::thread::spawn(move || {
            fs::create_dir_all(&dir)?;
            for number in 0.. {
                if stopped.load(Ordering::SeqCst) {
                    break;
                }
                fs::write(dir.join(number.to_string()), content(number))?;
                counted.store(number + 1, Ordering::SeqCst);
            }
            Ok(())
        });
        Load { stop, done, thread }
    }

    /// Waits until as many more files are done.
    fn advance(&self, files: u64) {
        let goal = self.done.load(Ordering::SeqCst) + files;
        let deadline = Instant::now() + COMMAND_PATIENCE;
        while self.done.load(Ordering::SeqCst) < goal {
            assert!(!self.thread.is_finished(), "the load has failed");
            assert!(Instant::now() < deadline, "the load does not go on");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn finish(self) -> u64 {
        self.stop.store(true, Ordering::SeqCst);
        let deadline = Instant::now() + COMMAND_PATIENCE;
        while !self.thread.is_finished() {
            assert!(Instant::now() < deadline, "the load does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
        self.thread.join().unwrap().unwrap();
        self.done.load(Ordering::SeqCst)
    }
}

/// `kill -9`, and waits until they are gone.
fn kill(servers: &[(String, i32)]) {
    for (name, pid) in servers {
        let pid = rustix::process::Pid::from_raw(*pid).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    let gone = |pid: i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.is_empty() || stat.contains(") Z ")
    };
    let deadline = Instant::now() + Duration::from_secs(20);
    while !servers.iter().all(|&(_, pid)| gone(pid)) {
        assert!(Instant::now() < deadline, "processes do not die");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn killed_servers_lose_nothing_and_the_mount_goes_on() {
    let dev = Dev::new();
    dev.ok(&["dev", "up", "--processes", "--osts", "2"]);
    let dirs: Vec<PathBuf> = (0..3).map(|n| dev.mnt().join(format!("load{n}"))).collect();
    let loads: Vec<Load> = dirs.iter().cloned().map(Load::start).collect();
    let advance = || loads.iter().for_each(|load| load.advance(20));
    advance();
    for victims in [&["manager", "mds0", "oss0", "oss1"][..], &["mds0"], &["oss1"], &["manager"]] {
        let mut servers = dev.servers();
        servers.retain(|(name, _)| victims.contains(&name.as_str()));
        assert_eq!(servers.len(), victims.len());
        kill(&servers);
        assert_eq!(dev.run(&["dev", "status"]).status.code(), Some(4), "killed {victims:?}");
        dev.ok(&["dev", "up"]);
        advance();
    }
    let files: Vec<u64> = loads.into_iter().map(Load::finish).collect();
    let check = || {
        for (dir, &files) in dirs.iter().zip(&files) {
            for number in 0..files {
                let file = dir.join(number.to_string());
                assert!(fs::read(&file).unwrap() == content(number), "{file:?} of {files}");
            }
        }
    };
    check();
    dev.ok(&["dev", "down"]);
    dev.ok(&["dev", "up"]);
    check();
    assert_eq!(dev.run(&["scrub"]).status.code(), Some(0));
    assert_eq!(dev.run(&["target", "check"]).status.code(), Some(0));
}

/// Gets a signal every millisecond, handles it, and moves a file back and forth for three seconds.
const ALARMED: &str = r#"
use Time::HiRes qw(ualarm time);
my ($dir, $signals) = (shift, 0);
$SIG{ALRM} = sub { $signals++ };
ualarm(1000, 1000);
for (my $until = time() + 3; time() < $until;) {
    rename("$dir/a", "$dir/b") && stat("$dir/b") && rename("$dir/b", "$dir/a") or die "$!";
}
ualarm(0);
$signals > 500 or die "$signals signals only";
"#;

#[test]
fn signals_do_not_interrupt_who_waits_for_a_server() {
    let dev = Dev::new();
    dev.ok(&["dev", "up", "--processes", "--osts", "1"]);
    fs::write(dev.mnt().join("a"), "x").unwrap();
    let mut perl = Command::new("perl");
    perl.args(["-e", ALARMED]).arg(dev.mnt()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let perl = perl.spawn().unwrap();
    let mut servers = dev.servers();
    servers.retain(|(name, _)| name == "mds0");
    std::thread::sleep(Duration::from_millis(500));
    kill(&servers);
    std::thread::sleep(Duration::from_secs(1));
    dev.ok(&["dev", "up"]);
    let output = finish(perl, &["perl"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A process that was killed may look alive for a while.
#[test]
fn a_server_that_ends_while_the_mount_is_waited_for_is_started_again() {
    let dev = Dev::new();
    dev.ok(&["dev", "up", "--processes", "--osts", "1"]);
    write_tree(&dev.mnt());
    let mut servers = dev.servers();
    servers.retain(|(name, _)| name == "mds0");
    let pid = rustix::process::Pid::from_raw(servers[0].1).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    let up = dev.command(&["dev", "up"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    std::thread::sleep(Duration::from_millis(500));
    kill(&servers);
    let output = finish(up.unwrap(), &["dev", "up"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    check_tree(&dev.mnt());
}

#[test]
fn what_is_unmounted_from_outside_is_mounted_again() {
    let dev = Dev::new();
    dev.ok(&["dev", "up", "--osts", "2"]);
    write_tree(&dev.mnt());
    dev.ok(&["umount", dev.mnt().to_str().unwrap()]);
    assert_eq!(dev.run(&["dev", "status"]).status.code(), Some(4));
    dev.ok(&["dev", "up"]);
    check_tree(&dev.mnt());
}

#[test]
fn a_killed_cluster_in_one_process_comes_back() {
    let dev = Dev::new();
    dev.ok(&["dev", "up", "--osts", "2"]);
    write_tree(&dev.mnt());
    kill(&dev.servers());
    // The mount has died with its process, and what is left of it is replaced.
    dev.ok(&["dev", "up"]);
    check_tree(&dev.mnt());
}

#[test]
fn commands_print_what_scripts_expect() {
    let dev = Dev::new();
    dev.ok(&["dev", "up", "--osts", "3"]);
    let mnt = dev.mnt();
    let at = |name: &str| mnt.join(name).to_str().unwrap().to_string();
    fs::write(at("file"), content(7)).unwrap();

    dev.ok(&["setstripe", "-c", "2", "-S", "64K", "-i", "1", &at("two")]);
    assert_eq!(dev.ok(&["getstripe", "-c", &at("two")]), "2\n");
    assert_eq!(dev.ok(&["getstripe", "-S", &at("two")]), "65536\n");
    assert_eq!(dev.ok(&["getstripe", "-i", &at("two")]), "1\n");
    fs::create_dir(at("dir")).unwrap();
    dev.ok(&["setstripe", "-E", "1M", "-c", "1", "-E", "-1", "-c", "-1", &at("dir")]);
    fs::write(at("dir/new"), b"x").unwrap();
    let found = dev.json(&["getstripe", &at("dir/new")]);
    let components = found[0]["layout"]["components"].as_array().unwrap();
    assert_eq!(components.len(), 2);
    assert_eq!(components[1]["targets"].as_array().unwrap().len(), 3);
    dev.ok(&["setstripe", "-d", &at("dir")]);
    assert_eq!(dev.ok(&["getstripe", "-d", "-c", &at("dir")]), "0\n");

    assert_eq!(dev.json(&["df", &at("file")]).as_array().unwrap().len(), 4);
    assert!(dev.ok(&["df", "-h"]).lines().last().unwrap().starts_with("filesystem"));
    let fid = dev.ok(&["fid", &at("file")]);
    assert_eq!(dev.ok(&["path", fid.trim()]), "/file\n");
    assert_eq!(dev.json(&["stat", &at("file")])[0]["fid"], fid.trim());
    assert_eq!(dev.json(&["status", "--interval", "100ms"])["healthy"], true);
    assert_eq!(dev.json(&["target", "list"]).as_array().unwrap().len(), 4);
    assert_eq!(dev.json(&["client", "list"])[0]["mountpoint"], mnt.to_str().unwrap());
    assert!(dev.json(&["node", "list"])[0]["name"].is_string());
    dev.ok(&["pool", "set", "fast", "0,2"]);
    assert_eq!(dev.json(&["pool", "list"])[0]["targets"][1], 2);
    dev.ok(&["setstripe", "-p", "fast", &at("pooled")]);
    assert_eq!(dev.ok(&["getstripe", "-c", &at("pooled")]), "2\n");
    dev.ok(&["target", "set-state", "OST0001", "drain"]);
    assert_eq!(dev.json(&["target", "list", "--state", "drain"])[0]["id"], "OST0001");
}

#[test]
fn exit_codes_tell_what_happened() {
    let dev = Dev::new();
    let code = |args: &[&str]| dev.run(args).status.code();
    assert_eq!(code(&["dev", "status"]), Some(4));
    assert_eq!(code(&["dev", "up", "--mdts", "2"]), Some(2));
    assert_eq!(code(&["df", "--manager", "127.0.0.1:1"]), Some(1));
    assert_eq!(code(&["no-such-command"]), Some(2));
    dev.ok(&["dev", "up", "--osts", "2"]);
    let file = dev.mnt().join("file").to_str().unwrap().to_string();
    fs::write(&file, content(40)).unwrap();
    assert_eq!(code(&["setstripe", "-c", "many", &file]), Some(2));
    assert_eq!(code(&["fid", &file, "/nowhere"]), Some(3));
    assert_eq!(code(&["fid", "/nowhere"]), Some(1));
    assert_eq!(code(&["scrub"]), Some(0));
    damage_an_object(&dev.dir());
    let report = dev.run(&["scrub"]);
    let text = String::from_utf8_lossy(&report.stdout);
    assert_eq!(report.status.code(), Some(4), "{text}");
    assert!(text.contains("file=/file"), "{text}");
    assert_eq!(code(&["status", "--interval", "10ms"]), Some(4));
}

/// Turns a bit of the largest object on any OST.
fn damage_an_object(dir: &Path) {
    let mut found: Vec<(u64, PathBuf)> = Vec::new();
    let mut left: Vec<PathBuf> =
        (0..2).map(|ost| dir.join(format!("ost{ost:04x}/objects"))).collect();
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let entry = entry.unwrap();
            let meta = entry.metadata().unwrap();
            if meta.is_dir() {
                left.push(entry.path())
            } else {
                found.push((meta.len(), entry.path()))
            }
        }
    }
    let (_, path) = found.into_iter().max().unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes[100] ^= 1;
    fs::write(&path, bytes).unwrap();
}

#[test]
fn a_second_mount_attaches_and_leaves() {
    let dev = Dev::new();
    dev.ok(&["dev", "up", "--osts", "2"]);
    let addresses = fs::read_to_string(dev.dir().join("run/address")).unwrap();
    let other = dev.root.path().join("other").to_str().unwrap().to_string();
    let key = dev.dir().join("cluster.key");
    let log = dev.root.path().join("mount.log");
    for address in addresses.lines() {
        let options = format!("key={},log={}", key.display(), log.display());
        dev.ok(&["mount", address, &other, "-o", &options]);
        fs::write(dev.mnt().join("there"), address).unwrap();
        assert_eq!(fs::read_to_string(Path::new(&other).join("there")).unwrap(), address);
        fs::write(Path::new(&other).join("back"), address).unwrap();
        assert_eq!(fs::read_to_string(dev.mnt().join("back")).unwrap(), address);
        dev.ok(&["umount", &other]);
    }
    assert_eq!(dev.run(&["umount", &other]).status.code(), Some(1));
}

#[test]
fn a_survey_asks_every_layer_and_leaves_nothing() {
    let dev = Dev::new();
    dev.ok(&["dev", "up", "--processes", "--osts", "2"]);
    let operations = |record: &Value| -> Vec<(String, u64)> {
        let samples = record["samples"].as_array().unwrap().iter();
        let one = |s: &Value| (s["phase"].as_str().unwrap().into(), s["operations"].as_u64());
        samples.map(one).map(|(phase, count)| (phase, count.unwrap())).collect()
    };
    let metadata = "bench survey --case metadata -n 30 --thrlo 1 --thrhi 2 -i 1";
    let record = dev.json(&metadata.split(' ').collect::<Vec<_>>());
    let done = operations(&record);
    assert_eq!(done.len(), 10);
    for (kind, threads) in
        [("creation", 1), ("stat", 2), ("getattr", 1), ("open", 2), ("removal", 2)]
    {
        assert!(done.contains(&(format!("{kind} thr {threads}"), threads * 30)), "{done:?}");
    }
    let local = dev.root.path().join("local");
    fs::create_dir(&local).unwrap();
    let mount = dev.mnt().display().to_string();
    let line = format!(
        "bench survey --layers --local local --mount {mount} --size 4 --thrhi 2 -i 1 -n 20"
    );
    let done = operations(&dev.json(&line.split(' ').collect::<Vec<_>>()));
    let names = ["local files", "client library, no wire", "client library", "mount (FUSE)"];
    for layer in names.into_iter().chain(["MDT over the wire"]) {
        assert!(done.contains(&(format!("{layer}: creation"), 40)), "{layer}: {done:?}");
    }
    for layer in names.into_iter().chain(["object store", "OSTs over the wire"]) {
        assert!(done.contains(&(format!("{layer}: write"), 4)), "{layer}: {done:?}");
    }
    assert_eq!(fs::read_dir(dev.mnt()).unwrap().count() + fs::read_dir(&local).unwrap().count(), 0);
}
