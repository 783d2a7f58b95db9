//! Whole runs on a temporary directory, with threads as ranks.

use super::*;
use crate::driver::Setup;

fn go(line: &str, ranks: u32) -> io::Result<Record> {
    run(&Config::parse(line.split_whitespace())?, &Setup::threads(ranks), &mut |_| {})
}

fn place(dir: &tempfile::TempDir) -> String {
    dir.path().join("f").display().to_string()
}

fn left(dir: &tempfile::TempDir) -> usize {
    std::fs::read_dir(dir.path()).unwrap().count()
}

#[test]
fn writes_reads_checks_and_cleans_up() {
    for line in [
        "",
        "-F",
        "-F -u -C",
        "-z -s 3",
        "-a MMAP",
        "-a MMAP -F -e",
        "-F -Z -X 3 -g -Y",
        "-E -F -m",
        "-p",
        "-p -F -a MMAP -M 3m",
    ] {
        let dir = tempfile::tempdir().unwrap();
        let line = format!("-w -r -W -R -t 47008 -b 94016 -s 2 -i 2 -o {} {line}", place(&dir));
        let record = go(&line, 3).unwrap_or_else(|error| panic!("{line}: {error}"));
        let bytes = if line.contains("-s 3") { 94_016 * 9 } else { 94_016 * 6 };
        for phase in ["write", "read"] {
            assert!(record.of(phase).take(2).all(|sample| sample.bytes == bytes), "{line}");
            assert!(record.phase(phase).unwrap().rate.min > 0.0);
        }
        assert_eq!(left(&dir), 0, "{line}");
    }
}

#[test]
fn finds_wrong_data_and_keeps_files() {
    let dir = tempfile::tempdir().unwrap();
    go(&format!("-w -k -t 4k -b 16k -o {}", place(&dir)), 2).unwrap();
    go(&format!("-R -k -t 4k -b 16k -o {}", place(&dir)), 2).unwrap();
    let mut data = std::fs::read(place(&dir)).unwrap();
    data[20_000] ^= 1;
    std::fs::write(place(&dir), &data).unwrap();
    go(&format!("-r -k -t 4k -b 16k -o {}", place(&dir)), 2).unwrap();
    let error = go(&format!("-R -k -t 4k -b 16k -o {}", place(&dir)), 2).unwrap_err();
    assert!(error.to_string().contains("at offset 20000"), "{error}");
    assert_eq!(left(&dir), 1);
}

#[test]
fn the_stonewall_stops_and_wears_out() {
    let dir = tempfile::tempdir().unwrap();
    // Far more than a second's work: it has to stop by itself.
    let line = format!("-w -r -F -Y -D 1 -t 4k -b 4k -s 100000000 -o {}", place(&dir));
    let record = go(&line, 2).unwrap();
    let write = record.of("write").next().unwrap();
    assert!((0.9..10.0).contains(&write.detail["stonewall"]), "{write:?}");
    assert!(record.of("read").next().unwrap().bytes <= write.bytes);
    let record = go(&format!("{line} -O stoneWallingWearOut=1"), 2).unwrap();
    let write = record.of("write").next().unwrap();
    assert!(write.operations.is_multiple_of(2) && write.detail["stonewall_mib"] > 0.0, "{write:?}");
    assert!(render(&Config::parse(line.split(' ')).unwrap(), &record).contains("Max Write: "));
}

#[test]
fn wrong_options_and_places_are_named() {
    for (line, what) in [
        ("-t 3k -b 4k", "-b 4096 must be a multiple"),
        ("-a HDF5", "there are POSIX, MMAP and WEFT"),
        ("-B -t 47008 -b 47008", "4096"),
        ("-D 3 -R", "stoneWallingWearOut"),
        ("-o a@b", "needs -F"),
        ("-M 100%", "not a share of memory"),
        ("-M 1000000t -o /tmp/f", "are available"),
        ("-o /proc/nothing/f -t 1k -b 1k", "/proc/nothing/f"),
        ("-r -o /nowhere/f -t 1k -b 1k", "open /nowhere/f: No such file"),
    ] {
        let error = go(line, 2).unwrap_err().to_string();
        assert!(error.contains(what), "{line}: {error}");
    }
}

#[test]
fn a_failing_rank_stops_the_others_and_nothing_is_left() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("f.00000001")).unwrap();
    let line = format!("-w -F -E -t 4k -b 4k -s 100000000 -o {}", place(&dir));
    let error = go(&line, 3).unwrap_err().to_string();
    assert!(error.starts_with("rank 1: open "), "{error}");
    assert_eq!(left(&dir), 1);
}

#[test]
fn space_is_reserved_before_anything_is_written() {
    let dir = tempfile::tempdir().unwrap();
    for kind in ["", "-F"] {
        let line = format!("-w -p {kind} -t 4k -b 4k -s 100000000000000 -o {}", place(&dir));
        let error = go(&line, 2).unwrap_err().to_string();
        assert!(error.contains("reserve space of"), "{error}");
        assert_eq!(left(&dir), 0);
    }
}

#[test]
fn command_lines_of_the_reports() {
    for line in [
        "-r -w -t2m -F -g -b4g -i 2 -o /beegfs/test",
        "-wr -C -F -i 3 -t 1m -b 1m -s 32768 -a MPIIO -o /mnt_point/",
        "-a POSIX -v -F -B -t 1m -b 4g -w -r -k -D 60 -o /lustre/f",
    ] {
        let config = Config::parse(line.split(' ')).unwrap();
        assert!(config.write && config.read && config.file_per_rank, "{line}");
    }
    let plain = Config::parse([]).unwrap();
    assert_eq!((plain.block, plain.transfer, plain.segments), (1 << 20, 256 << 10, 1));
    assert!(plain.write && plain.read && plain.api == "POSIX" && plain.file == "testFile");
}

#[test]
fn tables_look_like_those_of_ior() {
    let config = Config::parse(["-w"]).unwrap();
    let detail = [
        ("iops", 8774.0),
        ("latency", 0.000_457),
        ("open", 0.000_092),
        ("transfer", 4.65),
        ("close", 0.1),
    ];
    let detail = detail.map(|(name, value)| (name.to_string(), value)).into();
    let sample =
        Sample { phase: "write".into(), rate: 2186.6, seconds: 0.5, detail, ..Sample::default() };
    assert_eq!(
        row(&config, &sample),
        "write     2186.60    8774       0.000457    1024.00    256.00     0.000092   4.65       0.100000   0.500000   0   \n"
    );
    let removed = Sample { phase: "remove".into(), seconds: 0.006_066, ..Sample::default() };
    assert_eq!(
        row(&config, &removed),
        "remove    -          -          -           -          -          -          -          -          0.006066   0   \n"
    );
}
