//! `weft eval` as its users see it: clusters that come and go, results that stay, clear errors.

use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const WEFT: &str = env!("CARGO_BIN_EXE_weft");

fn eval(args: &[&str]) -> Output {
    Command::new(WEFT).arg("eval").args(args).output().unwrap()
}

/// Standard error of a command that fails with this exit code.
fn refused(args: &[&str], code: i32) -> String {
    let output = eval(args);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {errors}");
    errors
}

#[test]
fn studies_are_listed() {
    let output = eval(&["list"]);
    let text = String::from_utf8_lossy(&output.stdout);
    for study in ["panfs", "sonexion", "orangefs", "beegfs", "dne"] {
        assert!(text.contains(study), "{text}");
    }
}

#[test]
fn what_makes_no_sense_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    assert!(refused(&["run", "lustre", "-o", &path("x")], 2).contains("no study \"lustre\""));
    let part = refused(&["run", "dne", "--part", "nothing", "-o", &path("y")], 1);
    assert!(part.contains("no part \"nothing\""), "{part}");

    std::fs::write(path("bad.json"), "{ this is not JSON").unwrap();
    let bad = refused(&["report", &path("bad.json")], 1);
    assert!(bad.contains("bad.json: not the results of a study"), "{bad}");
    assert!(refused(&["compare", &path("bad.json"), &path("none.json")], 1).contains("bad.json"));
    assert!(refused(&["report", &path("none.json")], 1).contains("none.json"));

    std::fs::write(path("file"), "").unwrap();
    let out = refused(&["run", "dne", "-o", &path("file/results")], 1);
    assert!(out.contains("cannot make dir=") && out.contains("file/results"), "{out}");
    std::fs::create_dir_all(path("used/inside")).unwrap();
    let used = refused(&["run", "dne", "--dir", &path("used"), "-o", &path("z")], 1);
    assert!(used.contains("is not empty"), "{used}");
    assert!(Path::new(&path("used/inside")).exists());
    let local = refused(&["compare", &path("bad.json"), "--local", &path("nowhere")], 1);
    assert!(local.contains("bad.json"), "{local}");
}

struct Study(Child);

impl Drop for Study {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn points(file: &Path) -> usize {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    value["points"].as_array().map_or(0, Vec::len)
}

#[test]
fn a_signal_stops_a_study_and_nothing_is_left_but_the_results() {
    let dir = tempfile::tempdir().unwrap();
    let (out, work) = (dir.path().join("out"), dir.path().join("work"));
    let file = out.join("dne.json");
    let mut command = Command::new(WEFT);
    command.args(["eval", "run", "dne", "--quick", "--part", "small", "-o"]).arg(&out);
    command.arg("--dir").arg(&work).stderr(Stdio::null()).stdout(Stdio::null());
    let mut study = Study(command.spawn().unwrap());
    let deadline = Instant::now() + Duration::from_secs(120);
    while points(&file) == 0 {
        assert!(Instant::now() < deadline && study.0.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(20));
    }
    kill_process(Pid::from_child(&study.0), Signal::INT).unwrap();
    while study.0.try_wait().unwrap().is_none() {
        assert!(Instant::now() < deadline, "the study does not stop");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!work.exists(), "the cluster is still there");
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    assert!(!mounts.contains(&work.display().to_string()), "{mounts}");
    let done = points(&file);
    assert!(done >= 1);
    let html = std::fs::read_to_string(out.join("dne.html")).unwrap();
    assert!(html.contains("this run did not get to it"));
    // The same results beside themselves are the same.
    let (file, html) = (file.display().to_string(), out.join("both.html").display().to_string());
    let compared = eval(&["compare", &file, &file, "--html", &html]);
    let text = String::from_utf8_lossy(&compared.stdout).into_owned();
    assert!(text.contains("small, File creation") && text.contains("1.00 of"), "{text}");
    assert!(std::fs::read_to_string(html).unwrap().contains("<table>"));
}
