//! `weft bench` as its users run it: ranks that are processes, here and behind `weft bench serve`, under
//! `mpirun`, and when one of them dies or the file system is full.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// More than any machine writes in a minute.
const ENDLESS: &str = "-w -F -Y -t 4k -b 4k -s 100000000";
const PATIENCE: Duration = Duration::from_secs(30);

fn bench(line: &str, dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    command.arg("bench").args(line.split_whitespace()).current_dir(dir);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn done(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

fn failed(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn wait_until(mut there: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !there() {
        assert!(Instant::now() < deadline, "it does not come");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn files(dir: &Path) -> usize {
    fs::read_dir(dir).unwrap().count()
}

/// A run that does not end, with both of its ranks writing.
fn endless(dir: &Path) -> (Child, Vec<String>) {
    let run = bench(&format!("ior -N 2 {ENDLESS} -o f"), dir).spawn().unwrap();
    wait_until(|| files(dir) == 2);
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", run.id())).unwrap();
    (run, children.split_whitespace().map(String::from).collect())
}

#[test]
fn ranks_are_processes_and_the_record_tells_all() {
    let dir = tempfile::tempdir().unwrap();
    let line = "ior -w -r -W -R -t 47008 -b 47008 -s 20 -i 2 -e -N 3 -o f --json record";
    let text = done(&bench(line, dir.path()).output().unwrap());
    assert!(
        text.contains("Max Write: ") && text.contains("aggregate filesize  : 2.69 MiB"),
        "{text}"
    );
    let record: serde_json::Value =
        serde_json::from_slice(&fs::read(dir.path().join("record")).unwrap()).unwrap();
    assert_eq!(
        (record["tool"].as_str(), record["ranks"]["count"].as_u64()),
        (Some("ior"), Some(3))
    );
    assert_eq!(
        (&record["ranks"]["kind"], &record["fsync"]["included"]),
        (&"processes".into(), &true.into())
    );
    assert_eq!(record["samples"][0]["bytes"], 47_008 * 20 * 3);
    let version = Command::new(env!("CARGO_BIN_EXE_weft")).arg("--version").output().unwrap();
    let commit = record["commit"].as_str().unwrap();
    let number = commit.trim_end_matches("-dirty");
    let is_number = number.len() == 12 && number.bytes().all(|byte| byte.is_ascii_hexdigit());
    assert!(is_number || commit == "unknown", "{commit}");
    assert!(done(&version).contains(&format!("({commit})")), "{commit}");
    assert!(record["places"][0]["fs"].as_str().is_some_and(|fs| !fs.is_empty()));
    assert!(record["phases"][0]["cpu_per_gib"][0].as_f64().unwrap() > 0.0);
    assert_eq!(files(dir.path()), 1);
    let text =
        done(&bench("mdtest --np 2 -n 20 -w 10 -d md --output json", dir.path()).output().unwrap());
    let record: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (record["tool"].as_str(), record["samples"].as_array().unwrap().len()),
        (Some("mdtest"), 9)
    );
    let text =
        done(&bench("iozone -i 0 -i 1 -+n -e -c -r 64k -s 1m -t 2", dir.path()).output().unwrap());
    assert!(text.contains("Children see throughput for  2 readers"), "{text}");
}

#[test]
fn a_rank_that_is_killed_stops_the_others_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (run, ranks) = endless(dir.path());
    assert!(Command::new("kill").args(["-9", &ranks[1]]).status().unwrap().success());
    let why = failed(&run.wait_with_output().unwrap());
    assert!(why.contains("rank 1: it has died"), "{why}");
    assert_eq!(files(dir.path()), 0);
}

#[test]
fn when_the_driver_is_killed_its_ranks_clean_up() {
    let dir = tempfile::tempdir().unwrap();
    let (mut run, ranks) = endless(dir.path());
    run.kill().unwrap();
    run.wait().unwrap();
    wait_until(|| files(dir.path()) == 0);
    wait_until(|| ranks.iter().all(|rank| !Path::new("/proc").join(rank).join("stat").exists()));
}

#[test]
fn a_full_file_system_is_named_and_left_empty() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().display();
    let weft = env!("CARGO_BIN_EXE_weft");
    // In a namespace of its own, so that nothing stays mounted.
    let script = format!(
        "mount -t tmpfs -o size=4m none {place} && \
         {weft} bench ior -w -F -N 2 -t 64k -b 16m -o {place}/f; echo code $? left $(ls {place} | wc -l)"
    );
    let output = Command::new("unshare").args(["-Urm", "sh", "-c", &script]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(text.ends_with("code 1 left 0\n"), "{text}{why}");
    assert!(why.contains("No space left on device") && why.contains("f.0000000"), "{why}");
}

#[test]
fn wrong_command_lines_and_places() {
    let dir = tempfile::tempdir().unwrap();
    let run = |line: &str| bench(line, dir.path()).output().unwrap();
    assert_eq!(run("ior --nonsense").status.code(), Some(2));
    assert!(failed(&run("ior -t 3k -b 4k")).contains("-b 4096 must be a multiple of -t 3072"));
    assert!(failed(&run("ior -N 2 -o /proc/no/f")).contains("open /proc/no/f"));
    assert!(failed(&run("mdtest -n 5 -d /proc/no")).contains("make directory /proc/no"));
}

#[test]
fn surveys_a_disk_and_plays_the_io500() {
    let dir = tempfile::tempdir().unwrap();
    let run = |line: &str| done(&bench(line, dir.path()).output().unwrap());
    let text = run("survey --case disk --targets . --size 4 --nobjhi 2 --thrhi 2 -e");
    assert_eq!(
        text.lines().filter(|line| line.starts_with("ost  1 sz     4096K")).count(),
        3,
        "{text}"
    );
    let small = "[ior-easy]\nblockSize = 4m\n[ior-hard]\nsegmentCount = 9\n[mdtest-easy]\nn = 9\n[mdtest-hard]\nn = 9\n";
    fs::write(dir.path().join("config.ini"), small).unwrap();
    let text = run("io500 config.ini --datadir . --np 2 --stonewall 1");
    assert_eq!(text.matches("[RESULT]").count(), 12, "{text}");
    assert!(text.contains("[SCORE ] Bandwidth ") && text.contains("not a submission"), "{text}");
    assert_eq!(files(dir.path()), 1);
}

/// Ends the process at the end of the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn ranks_behind_other_addresses() {
    let dir = tempfile::tempdir().unwrap();
    let init = |name: &str| {
        let weft = env!("CARGO_BIN_EXE_weft");
        let mut make = Command::new(weft);
        make.args(["cluster", "init", "--dir"]).arg(dir.path().join(name));
        assert!(make.output().unwrap().status.success());
    };
    init("c");
    init("other");
    let serve = || {
        let line = "serve --listen 127.0.0.1:0 --bench-key c/cluster.key";
        let mut serve = bench(line, dir.path()).spawn().unwrap();
        let mut said = String::new();
        BufReader::new(serve.stdout.take().unwrap()).read_line(&mut said).unwrap();
        let address = said.trim().strip_prefix("listening at ").unwrap().to_string();
        (Ended(serve), address)
    };
    let ((_one, first), (_other, second)) = (serve(), serve());
    let hosts = format!("--hosts {first},{second} --bench-key c/cluster.key");
    let out = dir.path().join("out");
    fs::create_dir(&out).unwrap();
    let place = out.display();
    let line = format!("ior -N 3 -w -r -R -C -F -t 4k -b 64k -i 2 -o {place}/f {hosts}");
    let text = done(&bench(&line, dir.path()).output().unwrap());
    assert!(text.contains("ranks: 3 hosts"), "{text}");
    fs::write(dir.path().join("list"), format!("{first} {place}\n{second} {place}\n")).unwrap();
    let line = "iozone -i 0 -i 1 -r 4k -s 64k -t 2 -+n -+m list --bench-key c/cluster.key";
    assert!(done(&bench(line, dir.path()).output().unwrap()).contains("2 initial writers"));
    let line = format!("ior -N 2 -o {place}/f --hosts {first} --bench-key other/cluster.key");
    let why = failed(&bench(&line, dir.path()).output().unwrap());
    assert!(why.contains(&format!("{first}: it has another key")), "{why}");
    assert_eq!(files(&out), 0);
}

#[test]
fn ranks_that_mpirun_has_started() {
    let dir = tempfile::tempdir().unwrap();
    // A spread that is always too wide, so that the same ranks do several jobs.
    let line = "ior -w -r -R -t 4k -b 64k -i 2 -o f --rendezvous . --noise 0 --repeats 2";
    let rank = |rank: u32| {
        let mut command = bench(line, dir.path());
        command.env("OMPI_COMM_WORLD_RANK", rank.to_string()).env("OMPI_COMM_WORLD_SIZE", "3");
        command.spawn().unwrap()
    };
    let ranks: Vec<Child> = [2, 0, 1].map(rank).into();
    let outputs: Vec<Output> =
        ranks.into_iter().map(|rank| rank.wait_with_output().unwrap()).collect();
    let texts: Vec<String> = outputs.iter().map(done).collect();
    assert!(texts[0].is_empty() && texts[2].is_empty());
    for part in ["ranks: 3 mpi", "Max Read: ", "2 iteration(s) were added"] {
        assert!(texts[1].contains(part), "{}", texts[1]);
    }
    assert_eq!(files(dir.path()), 0);
}
