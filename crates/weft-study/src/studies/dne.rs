//! After Intel's analysis of DNE I and II: metadata by servers, small files, shared servers.

use super::build::{cluster, mib_per_rank, mib_per_s, repeats};
use super::{Part, Study};
use crate::chart::{Chart, Over};
use crate::point::{Point, Work, params};
use crate::results::Size;

pub const STUDY: Study = Study {
    name: "dne",
    title: "Metadata and small files, as in the analysis of Lustre DNE",
    source: "A. Roe: Analysis of DNE I & II in the Latest Lustre Releases, Intel (2016)",
    document: "lustre-dne.md",
    asked: "How do creates, stats and removes scale with metadata servers and targets? What does one shared \
        directory cost? What do files of 4 KiB cost? What do throughput and metadata lose when MDT and OST share a \
        server, and both are used at once?",
    done: "mdtest with processes dealt out to four mounts (FUSE), each process in a directory of its own (-u), or all in \
        one directory. One MDT without limit: the figures are those of this machine, whose processors clients \
        and servers share. For shared servers, IOR and mdtest run one at a time and at once, with the MDT in the \
        process of the OSTs and in one of its own.",
    parts,
    points,
    charts,
    not_run: &[
        (
            "Creates, stats, removes by number of MDS (1 to 8) and of MDT per MDS (1, 2, 4)",
            "this version has one MDT per file system",
        ),
        (
            "Remote directories (DNE I) against striped directories (DNE II)",
            "they need several MDTs",
        ),
        ("4 KiB files by number of MDS", "needs several MDTs; the rates with one are there"),
        (
            "MDTs spread over all OSSs against 2 MDS (the report: 32 % more creates, 42 % more removals)",
            "needs several MDTs",
        ),
    ],
};

fn parts() -> Vec<Part> {
    vec![
        Part {
            name: "metadata",
            title: "Creates, stats, removes with one MDT",
            text: "Own directories, on four mounts, and one shared directory, on one of them; empty files. For comparison, the report's one MDT on ZFS made 5,787 \
                files per second (ZFS 0.6.5), 15,459 (ZFS 0.7.0-rc1), with 256 processes on 16 clients; the series of these two is inferred.",
        },
        Part {
            name: "small",
            title: "Files of 4 KiB",
            text: "As above, and 4 KiB are written to each file.",
        },
        Part {
            name: "shared",
            title: "MDT and OST on the same server",
            text: "IOR (1 MiB records, a file per process) and mdtest, four processes each, one at a time and at once, with \
                the MDT in the OSTs' server process and in one of its own.",
        },
    ]
}

fn points(size: Size) -> Vec<Point> {
    let repeats = repeats(size);
    let speed = mib_per_s(size);
    let processes = || size.pick(vec![1, 4, 16], vec![1, 2, 4, 8, 16, 32, 64]);
    let items = size.pick(500, 10_000);
    let plain = cluster(4, 2, speed, 4);
    let mut points = Vec::new();
    // mdtest takes several paths for several file systems, so that what is shared has one.
    for (directory, option) in [("own", "-u -d {each/md}"), ("shared", "-d {first/md}")] {
        for count in processes() {
            let named = params([("directory", directory.into()), ("processes", count.into())]);
            let command =
                format!("mdtest -i {repeats} -n {items} -F -C -T -r {option} --np {count}");
            let (cluster, work) = (plain.clone(), Work::bench(&command));
            points.push(Point { part: "metadata".into(), params: named, cluster, work });
        }
    }
    for count in processes() {
        let command = format!(
            "mdtest -i {repeats} -n {} -F -C -T -E -r -u -w 4096 -e 4096 -d {{each/md}} --np {count}",
            items / 2
        );
        let (cluster, work) = (plain.clone(), Work::bench(&command));
        let params = params([("processes", count.into())]);
        points.push(Point { part: "small".into(), params, cluster, work });
    }
    for (place, together) in [("MDT with the OSTs", true), ("MDT by itself", false)] {
        let mut cluster = cluster(2, 2, speed, 4);
        cluster.mdt_with_osts = together;
        let mib = mib_per_rank(size, &cluster, 4, 1) * 2;
        let ior =
            format!("ior -w -r -C -F -i {repeats} -t 1m -b {mib}m -a POSIX -o {{each/file}} -N 4");
        let mdtest =
            format!("mdtest -i {repeats} -n {} -F -C -T -r -u -d {{each/md}} --np 4", items * 4);
        for (load, work) in [
            ("IOR", Work::bench(&ior)),
            ("mdtest", Work::bench(&mdtest)),
            ("both", Work::together(&ior, &mdtest)),
        ] {
            let params = params([("case", format!("{place}: {load}").as_str().into())]);
            points.push(Point { part: "shared".into(), params, cluster: cluster.clone(), work });
        }
    }
    points
}

fn charts() -> Vec<Chart> {
    let metadata = |part, title, figures, series| Chart {
        part,
        title,
        over: Over::Doubling("processes", "processes on 4 mounts"),
        figures,
        series,
        ideal: false,
        beside: Vec::new(),
    };
    let shared = |title, figures| Chart {
        part: "shared",
        title,
        over: Over::Names("case"),
        figures,
        series: &[],
        ideal: false,
        beside: Vec::new(),
    };
    vec![
        metadata(
            "metadata",
            "One MDT",
            &["File creation", "File stat", "File removal"],
            &["directory"],
        ),
        metadata("small", "4 KiB files", &["File creation", "File read", "File removal"], &[]),
        shared("IOR apart and at once", &["write", "read"]),
        shared("mdtest apart and at once", &["File creation", "File removal"]),
    ]
}
