//! After ThinkParQ's paper on the number of targets per BeeGFS server.

use super::build::{cluster, mib_per_rank, mib_per_s, repeats, survey};
use super::{Part, Study};
use crate::chart::{Chart, Over};
use crate::point::{Cluster, Params, Point, Work, params};
use crate::results::Size;

pub const STUDY: Study = Study {
    name: "beegfs",
    title: "Targets per server and targets per file, as in the paper on BeeGFS",
    source: "J. Heichler: Picking the right number of targets per server for BeeGFS, ThinkParQ (2015)",
    document: "beegfs-targets.md",
    asked: "Is one large fast target better than several small ones with the same disks? How do 1, 2 and 4 targets of one \
        server scale with 1 to 128 processes? Does striping over several targets help when few processes work?",
    done: "One server process with 1, 2, 3 or 4 OSTs, each with a device of fixed speed; one large target stands for \
        the RAID60 of the paper and has the speed of four. Processes are dealt out to four mounts (FUSE), \
        IOR as in the paper: -w -r -t2m -F -g. What the targets deliver alone, without clients, is asked first.",
    parts,
    points,
    charts,
    not_run: &[(
        "8 targets of 4+2 disks against 4 of 10+2",
        "the difference is that of RAID controllers and data disks per \
            set, which devices of a set speed do not have",
    )],
};

fn parts() -> Vec<Part> {
    vec![
        Part {
            name: "raw",
            title: "The targets alone",
            text: "Eight threads on each target over its connection, without mount and striping (survey): what files on \
                them could get.",
        },
        Part {
            name: "targets",
            title: "Targets per server",
            text: "Files on one target each. The large target has the speed of four.",
        },
        Part {
            name: "numtargets",
            title: "Targets per file",
            text: "One server with four targets; every file is striped over 1 to 4 of them in units of 512 KiB.",
        },
    ]
}

fn processes(size: Size) -> Vec<u32> {
    size.pick(vec![1, 2, 4, 16], vec![1, 2, 4, 8, 16, 32, 64, 128])
}

fn points(size: Size) -> Vec<Point> {
    let speed = mib_per_s(size);
    let one_each = |targets: u16, speed: u64| cluster(targets, targets, speed, 4).striped("-c 1");
    let servers = [
        ("1 target", one_each(1, speed)),
        ("2 targets", one_each(2, speed)),
        ("4 targets", one_each(4, speed)),
        ("1 target of 4 times the speed", one_each(1, 4 * speed)),
    ];
    let mut points: Vec<Point> = servers
        .iter()
        .map(|(name, cluster)| {
            let named = params([("server", (*name).into())]);
            survey(size, "raw", named, cluster.clone(), [8, 8])
        })
        .collect();
    for (name, cluster) in servers {
        for processes in processes(size) {
            let named = params([("server", name.into()), ("processes", processes.into())]);
            points.push(point(size, "targets", named, &cluster, processes));
        }
    }
    for numtargets in [1, 2, 3, 4] {
        let striped = cluster(4, 4, speed, 4).striped(&format!("-c {numtargets} -S 512K"));
        for processes in processes(size) {
            let named = params([
                ("numtargets", u32::from(numtargets as u16).into()),
                ("processes", processes.into()),
            ]);
            points.push(point(size, "numtargets", named, &striped, processes));
        }
    }
    points
}

fn point(size: Size, part: &str, params: Params, cluster: &Cluster, processes: u32) -> Point {
    let repeats = repeats(size);
    let mib = mib_per_rank(size, cluster, processes, 2);
    let command =
        format!("ior -r -w -t 2m -F -g -b {mib}m -i {repeats} -o {{each/test}} -N {processes}");
    Point { part: part.into(), params, cluster: cluster.clone(), work: Work::bench(&command) }
}

fn charts() -> Vec<Chart> {
    let chart = |part, title, series| Chart {
        part,
        title,
        over: Over::Doubling("processes", "processes on 4 mounts"),
        figures: &["write", "read"],
        series,
        ideal: false,
        beside: Vec::new(),
    };
    let raw = Chart {
        part: "raw",
        title: "The targets alone",
        over: Over::Names("server"),
        figures: &["write", "read"],
        series: &[],
        ideal: false,
        beside: Vec::new(),
    };
    vec![
        raw,
        chart("targets", "Targets per server", &["server"]),
        chart("numtargets", "Targets per file, 4 targets", &["numtargets"]),
    ]
}
