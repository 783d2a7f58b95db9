//! Whole runs on a temporary directory, with threads as ranks.

use super::*;
use crate::driver::Setup;
use std::collections::BTreeMap;

fn go(line: &str, ranks: u32) -> io::Result<Record> {
    run(&Config::parse(line.split_whitespace())?, &Setup::threads(ranks), &mut |_| {})
}

fn operations(record: &Record) -> BTreeMap<&str, u64> {
    record.samples.iter().map(|sample| (sample.phase.as_str(), sample.operations)).collect()
}

#[test]
fn all_phases_in_a_shared_tree_and_in_one_for_each() {
    for (line, dirs) in [("", 3), ("-u -N 1", 9), ("-L -N 2 -R 5", 3), ("-u -t -y -R", 9)] {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().display();
        let line = format!("-z 1 -b 2 -n 12 -w 3901 -e 3901 -X -d {place}/out {line}");
        let record = go(&line, 3).unwrap_or_else(|error| panic!("{line}: {error}"));
        let done = operations(&record);
        assert_eq!((done["Tree creation"], done["Tree removal"]), (dirs, dirs), "{line}");
        for kind in ["Directory creation", "File creation", "File read", "File removal"] {
            assert_eq!(done[kind], 36, "{line}");
        }
        assert_eq!(record.of("File read").next().unwrap().bytes, 36 * 3901);
        assert_eq!(std::fs::read_dir(dir.path().join("out")).unwrap().count(), 0, "{line}");
    }
}

#[test]
fn the_first_rank_makes_and_removes_for_all() {
    for line in ["", "-u", "-N 1", "-u -C"] {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().display();
        let line = format!("-z 1 -b 2 -n 6 -c -w 10 -e 10 -d {place}/out {line}");
        let record = go(&line, 3).unwrap_or_else(|error| panic!("{line}: {error}"));
        let done = operations(&record);
        let (trees, kept) = (if line.contains("-u") { 9 } else { 3 }, line.contains("-C"));
        assert_eq!((done["Tree creation"], done["Directory creation"]), (trees, 18), "{line}");
        assert_eq!(done["File creation"], 18, "{line}");
        assert_eq!(record.of("File creation").next().unwrap().bytes, 180, "{line}");
        let left = std::fs::read_dir(dir.path().join("out")).unwrap().count();
        match kept {
            true => assert_eq!(left, 1, "{line}"),
            false => assert_eq!((done["File removal"], left), (18, 0), "{line}"),
        }
    }
}

#[test]
fn files_are_shared() {
    for (line, places) in [("", 1), ("-c", 1), ("-N 1", 1), ("@", 2)] {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().display();
        let more = if places == 2 { format!("@{place}/other") } else { String::new() };
        let line = line.trim_matches('@');
        let line = format!("-S -n 5 -w 9 -e 9 -X -d {place}/out{more} {line}");
        let done = go(&format!("{line} -C -T -E"), 4).unwrap_or_else(|e| panic!("{line}: {e}"));
        let done = operations(&done);
        assert_eq!((done["File creation"], done["File read"]), (20, 20), "{line}");
        assert!(!done.contains_key("Directory creation"), "{line}");
        let tree = dir.path().join("out/test-dir.0-0/mdtest_tree.0");
        assert_eq!(std::fs::read_dir(&tree).unwrap().count(), 5, "{line}");
        assert!(tree.join("file.mdtest.shared.4").exists(), "{line}");
        let removed = go(&format!("{line} -r"), 4).unwrap();
        assert_eq!(operations(&removed)["File removal"], 5 * places, "{line}");
        assert!(!tree.exists(), "{line}");
    }
}

#[test]
fn phases_one_by_one_in_several_places() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().display();
    let base = format!("-F -n 5 -d {place}/a@{place}/b");
    for (phase, name) in
        [("-C", "File creation"), ("-T", "File stat"), ("-E", "File read"), ("-r", "File removal")]
    {
        let record = go(&format!("{base} {phase}"), 4).unwrap();
        assert_eq!(operations(&record)[name], 20);
    }
    assert_eq!(std::fs::read_dir(dir.path().join("b")).unwrap().count(), 0);
}

#[test]
fn the_stonewall_lets_all_make_as_many() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().display();
    let status = dir.path().join("status").display().to_string();
    let base = format!("-F -n 100000000 -u -d {place}/out -x {status}");
    let made = operations(&go(&format!("{base} -C -W 1"), 2).unwrap())["File creation"];
    assert!(made > 2 && made.is_multiple_of(2));
    let rest = go(&format!("{base} -T -r"), 2).unwrap();
    assert_eq!((operations(&rest)["File stat"], operations(&rest)["File removal"]), (made, made));
}

#[test]
fn finds_wrong_data() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().display();
    let base = format!("-F -n 3 -w 100 -e 100 -X -d {place}");
    go(&format!("{base} -C"), 1).unwrap();
    let file = dir.path().join("test-dir.0-0/mdtest_tree.0/file.mdtest.0.1");
    let mut data = std::fs::read(&file).unwrap();
    data[50] ^= 1;
    std::fs::write(&file, data).unwrap();
    let error = go(&format!("{base} -E"), 1).unwrap_err().to_string();
    assert!(error.contains("file.mdtest.0.1: what is read"), "{error}");
}

#[test]
fn wrong_options_and_places_are_named() {
    for (line, what) in [
        ("-d /tmp", "-n or -I"),
        ("-D -F -n 1", "exclude"),
        ("-D -S -n 1", "exclude"),
        ("-u -S -n 1", "exclude"),
        ("-c -W 1 -n 1", "exclude"),
        ("-n 1 -a S3", "there are POSIX and WEFT"),
        ("-n 1 -z 60 -b 9", "directories"),
        ("-n 1 -d /proc/nothing", "make directory /proc/nothing"),
    ] {
        let error = go(line, 2).unwrap_err().to_string();
        assert!(error.contains(what), "{line}: {error}");
    }
}

#[test]
fn what_was_made_is_removed_after_a_failure() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().display();
    let error = go(&format!("-F -n 5 -w 10 -e 100 -d {place}/out"), 2).unwrap_err().to_string();
    assert!(error.contains("read "), "{error}");
    assert_eq!(std::fs::read_dir(dir.path().join("out")).unwrap().count(), 0);
}

#[test]
fn command_lines_of_the_reports() {
    for (line, items) in [
        ("-i 3 -I 10000 -F -C -T -r -u -d /mnt_point/@/mnt/point2/", 10_000),
        ("-i 3 -I 10000 -z 1 -b 1 -L -u -F -w 4096 -d /out/DIR", 10_000),
    ] {
        let config = Config::parse(line.split(' ')).unwrap();
        assert_eq!((config.items, config.iterations, config.unique), (items, 3, true));
    }
}

#[test]
fn tables_look_like_those_of_mdtest() {
    let config = Config::parse(["-n", "1"]).unwrap();
    let mut record = Record::begin("mdtest", Vec::new(), serde_json::Value::Null);
    let sample = |rate| Sample { phase: "File creation".into(), rate, ..Sample::default() };
    record.add([sample(7147.432), sample(6789.531)]);
    let text = render(&config, &record);
    let row =
        "   File creation                7147.432       6789.531       6968.481        178.950\n";
    assert!(text.contains(row), "{text}");
    assert!(text.contains("\nSUMMARY rate (in ops/sec): (of 1 iterations)\n"));
}
