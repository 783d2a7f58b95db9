//! Whole runs on a temporary directory, with threads as ranks.

use super::*;
use crate::driver::Setup;

fn go(line: &str, ranks: u32) -> io::Result<Record> {
    run(&Config::parse(line.split_whitespace())?, &Setup::threads(ranks), &mut |_| {})
}

#[test]
fn all_passes() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().display();
    let record = go(&format!("-i 0 -i 1 -i 2 -r 64k -s 4m -t 3 -e -c --dir {place}"), 3).unwrap();
    let names: Vec<&str> = record.phases.iter().map(|phase| phase.phase.as_str()).collect();
    let wanted = [
        "initial writers",
        "rewriters",
        "readers",
        "re-readers",
        "random readers",
        "random writers",
    ];
    assert_eq!(names, wanted);
    for sample in &record.samples {
        assert!(sample.rate > 0.0 && sample.detail["min"] <= sample.detail["avg"], "{sample:?}");
        // The first has come to the end of its file.
        assert!((4 << 20..=12 << 20).contains(&sample.bytes));
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn writes_in_one_run_and_reads_in_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().display();
    let base = format!("-c -e -w -r 256k -s 1m -t 2 -+n --dir {place}");
    assert_eq!(go(&format!("-i 0 {base}"), 2).unwrap().samples.len(), 1);
    let read = go(&format!("-i 1 {base} -x"), 2).unwrap();
    assert_eq!(read.samples[0].bytes, 2 << 20);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
}

#[test]
fn options() {
    let config = Config::parse("-i 0 -c -e -w -r 256k -s 4g -t 8 -+n -+m list".split(' ')).unwrap();
    assert!(config.close && config.flush && config.keep && config.no_retest);
    assert_eq!((config.record, config.size, config.ranks), (256 << 10, 4 << 30, 8));
    assert_eq!(config.clients, Some("list".into()));
    let plain = Config::parse(["-r", "16", "-s", "1024"]).unwrap();
    assert_eq!((plain.record, plain.size, plain.tests), (16 << 10, 1 << 20, vec![0, 1]));
    for (line, what) in [("-i 9", "there are 0"), ("-r 4m -s 1m", "-s must"), ("-t 0", "-t must")] {
        assert!(go(line, 1).unwrap_err().to_string().contains(what));
    }
    assert!(
        go("-i 1 --dir /nowhere", 2).unwrap_err().to_string().contains("/nowhere/iozone.DUMMY.")
    );
}

#[test]
fn lists_of_clients() {
    let found = config::clients("# all\nnode1 /mnt/w /usr/bin/iozone\n\nnode2:99 /tmp\n").unwrap();
    assert_eq!((found[0].host.as_str(), found[0].dir.as_str()), ("node1", "/mnt/w"));
    assert_eq!(found[1].host, "node2:99");
    assert!(config::clients("node1").is_err());
}

#[test]
fn lines_look_like_those_of_iozone() {
    let config = Config::parse(["-t", "4"]).unwrap();
    let sample = Sample { phase: "readers".into(), rate: 18427.04, ..Sample::default() };
    let text = block(&config, &sample);
    let line = "\tChildren see throughput for  4 readers          =   18427.04 kB/sec\n";
    assert!(text.contains(line), "{text}");
}
