//! After the evaluation of Cray Sonexion 2000 at CSCS: the IOR matrix, the survey, recovery.

use super::build::{cluster, mib_per_rank, mib_per_s, repeats, survey};
use super::{Part, Study};
use crate::chart::{Beside, Chart, Over};
use crate::point::{Point, Work, params};
use crate::published::PublishedFigure;
use crate::results::Size;

const DOCUMENT: &str = "lustre-sonexion2000.md";

pub const STUDY: Study = Study {
    name: "sonexion",
    title: "The IOR matrix, the survey and recovery, as in the evaluation of Sonexion 2000",
    source: "H. N. El-Harake, C. McMurtrie: Evaluation of the Cray Sonexion 2000 Storage System, CSCS Lugano (2014)",
    document: DOCUMENT,
    asked: "How does throughput depend on the block size, from 1 MiB to 128 MiB, and on the number of threads, \
        with one and with two servers? What do the targets deliver by themselves, without clients? How \
        long do clients wait when a server is rebooted or reset?",
    done: "A server process with two OSTs stands for a storage unit; every OST has a device of fixed speed. \
        IOR as in the report: POSIX, a file per process, O_DIRECT, stripe count 1, block size as the transfer \
        size. Threads are processes of the benchmark dealt out to four mounts (FUSE). Recovery: processes \
        write 4 KiB with fsync and make and remove files without pause while a server process is \
        killed (or stopped in order) and started again at once; the figure is the longest time between two \
        operations done. What that leaves out is the time to notice a failure and to boot a machine, \
        which a supervisor and the hardware decide.",
    parts,
    points,
    charts,
    not_run: &[
        (
            "Fail-over to a second server, hand-over before a reboot",
            "this version has no fail-over pairs: a target is served by one server",
        ),
        (
            "Power reset",
            "cutting the power of the devices below is tested for loss of data (tests of the \
            power cut), not timed: processes on one machine share its power",
        ),
        ("Failure of an InfiniBand or Ethernet switch", "one machine has none"),
    ],
};

fn parts() -> Vec<Part> {
    vec![
        Part {
            name: "matrix",
            title: "IOR by block size and threads",
            text: "One and two servers. The limit is the number of OSTs times the speed of one device; the published lines are \
                shares of the data sheet (7.5 GB/s per unit), which the report's system exceeded.",
        },
        Part {
            name: "survey",
            title: "Survey: the targets by themselves",
            text: "What the servers deliver over their connections, without striping and kernel, by number of objects and \
                threads on each target, like obdfilter_survey (case network). Two servers.",
        },
        Part {
            name: "recovery",
            title: "Recovery: how long clients wait",
            text: "Killed (as by a power reset of the server) or stopped in order (as by a reboot), and started again at \
                once. The report's times contain failure detection and booting: 1 minute after a reboot, 7 minutes \
                after a power reset.",
        },
    ]
}

/// Processes that are stopped, as the table of the report has them.
const COMPONENTS: &[(&str, &[&str])] = &[
    ("OSS", &["oss0"]),
    ("2 OSSs", &["oss0", "oss1"]),
    ("MDS", &["mds0"]),
    ("MGS", &["manager"]),
    ("2 OSSs + MDS", &["oss0", "oss1", "mds0"]),
];

fn points(size: Size) -> Vec<Point> {
    let mut points = Vec::new();
    let repeats = repeats(size);
    let speed = mib_per_s(size);
    for servers in [1, 2] {
        let cluster = cluster(2 * servers, 2, speed, 4).striped("-c 1");
        for block in size.pick(vec![1, 4, 16, 64], vec![1, 4, 16, 64, 128]) {
            for threads in size.pick(vec![1, 4, 16], vec![1, 2, 4, 8, 16, 32]) {
                let mib = mib_per_rank(size, &cluster, threads, block);
                points.push(Point {
                    part: "matrix".into(),
                    params: params([
                        ("servers", u32::from(servers).into()),
                        ("block MiB", (block as u32).into()),
                        ("threads", threads.into()),
                    ]),
                    cluster: cluster.clone(),
                    work: Work::bench(&format!(
                        "ior -i {repeats} -a POSIX -F -B -t {block}m -b {mib}m -w -r -o {{each/file}} -N {threads}"
                    )),
                });
            }
        }
    }
    for objects in size.pick(vec![1, 4], vec![1, 2, 4, 8]) {
        for threads in size.pick(vec![4, 16], vec![8, 16, 32, 64]) {
            let named = params([("objects", objects.into()), ("threads", threads.into())]);
            points.push(survey(size, "survey", named, cluster(4, 2, speed, 1), [objects, threads]));
        }
    }
    points.extend(recovery(speed));
    points
}

fn recovery(speed: u64) -> impl Iterator<Item = Point> {
    let both = COMPONENTS.iter().flat_map(|component| [(component, false), (component, true)]);
    both.map(move |((name, components), orderly)| Point {
        part: "recovery".into(),
        params: params([(
            "component",
            format!("{name}, {}", if orderly { "stopped" } else { "killed" }).as_str().into(),
        )]),
        cluster: cluster(4, 2, speed, 2),
        work: Work::Recovery {
            components: components.iter().map(|name| name.to_string()).collect(),
            orderly,
        },
    })
}

fn charts() -> Vec<Chart> {
    vec![
        Chart {
            part: "matrix",
            title: "IOR by threads",
            over: Over::Doubling("threads", "threads (processes)"),
            figures: &["write", "read"],
            series: &["servers", "block MiB"],
            ideal: false,
            beside: vec![
                (
                    "write",
                    beside("published: Sonexion 2 units, 1M write", |f| pick(f, "write", "1M")),
                ),
                (
                    "write",
                    beside("published: Sonexion 2 units, 64M write", |f| pick(f, "write", "64M")),
                ),
                ("read", beside("published: Sonexion 2 units, 1M read", |f| pick(f, "read", "1M"))),
                (
                    "read",
                    beside("published: Sonexion 2 units, 64M read", |f| pick(f, "read", "64M")),
                ),
            ],
        },
        Chart {
            part: "survey",
            title: "Survey",
            over: Over::Doubling("threads", "threads on each target"),
            figures: &["write", "rewrite", "read"],
            series: &["objects"],
            ideal: false,
            beside: Vec::new(),
        },
        Chart {
            part: "recovery",
            title: "Longest wait of clients",
            over: Over::Names("component"),
            figures: &["data", "metadata"],
            series: &[],
            ideal: false,
            beside: Vec::new(),
        },
    ]
}

/// Two units of 7.5 GB/s by the data sheet, in MB/s.
const fn beside(label: &'static str, pick: fn(&PublishedFigure) -> Option<f64>) -> Beside {
    Beside { label, document: DOCUMENT, pick, limit: 15_000.0 }
}

fn pick(figure: &PublishedFigure, what: &str, block: &str) -> Option<f64> {
    let fits = figure.config == "2 SSU"
        && figure.benchmark == "IOR"
        && figure.metric.starts_with(what)
        && figure.parameters.get("block_size")?.as_str()?.eq_ignore_ascii_case(block);
    figure.parameters.get("threads")?.as_f64().filter(|_| fits)
}
