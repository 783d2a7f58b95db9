//! After the evaluation of Panasas ActiveStor 12 at CSCS: throughput, metadata, layout, failures.

use super::build::{cluster, mib_per_rank, mib_per_s, repeats};
use super::{Part, Study};
use crate::chart::{Beside, Chart, Over};
use crate::point::{Params, Point, Work, params};
use crate::published::PublishedFigure;
use crate::results::Size;

const DOCUMENT: &str = "panfs-activestor12.md";

pub const STUDY: Study = Study {
    name: "panfs",
    title: "Throughput, layout and metadata, as in the evaluation of PanFS on ActiveStor 12",
    source: "T. Schoenemeyer, H. El-Harake: Panasas ActiveStor12 Evaluation Report, CSCS Lugano (2012/13)",
    document: DOCUMENT,
    asked: "How does throughput grow with clients and with threads per client, and how near does it come to \
        what the storage blades allow? What do stripe_unit, stripe_width, group_width and group_depth \
        change, and is the default good? How many files and directories are made and removed per \
        second? What does a job notice when a storage node fails?",
    done: "Four OSTs, each served by a process of its own and with a device of fixed speed, and one MDT \
        without limit. Clients are mounts (FUSE), each a process of its own; threads are processes of the \
        benchmark that are dealt out to the mounts. Everything runs on one machine and speaks TCP. \
        Throughput is IOR with a file per process and fsync at the end of writing; metadata is mdtest.",
    parts,
    points,
    charts,
    not_run: &[
        (
            "Creates and removes by number of metadata servers (2 to 6)",
            "this version has one MDT per file system; the rates of one MDT by number of clients are there",
        ),
        (
            "Time line of a storage node that fails, is replaced and rebuilt",
            "this version stores every file once, without per-file RAID, so there is nothing to rebuild; \
             what clients notice when a server is gone for a while is measured by the study sonexion",
        ),
        (
            "Software upgrade (20 minutes in the report)",
            "a procedure, not a measurement of this tool",
        ),
    ],
};

fn parts() -> Vec<Part> {
    vec![
        Part {
            name: "throughput",
            title: "Throughput by clients and threads",
            text: "A file per process. The limit is the number of OSTs times the speed of one device.",
        },
        Part {
            name: "layout",
            title: "Layout: what stripe_unit, stripe_width and groups change",
            text: "Two clients with two processes each, a file per process, as in PanFS's throughput tests; \
                the default is what a user gets who sets nothing.",
        },
        Part {
            name: "layout-one",
            title: "Layout seen by a single process",
            text: "One process writes and reads one file: what striping gives to a single stream.",
        },
        Part {
            name: "metadata",
            title: "Creates and removes with one MDT",
            text: "mdtest with files and directories, each process in a directory of its own, by number of \
                processes on two mounts. The MDT has no limit: the figures are those of this machine.",
        },
    ]
}

/// Name, options of `weft setstripe`.
const LAYOUTS: &[(&str, &str)] = &[
    ("default", ""),
    ("width 1, unit 1M", "-c 1 -S 1M"),
    ("width 2, unit 1M", "-c 2 -S 1M"),
    ("width 4, unit 64K", "-c 4 -S 64K"),
    ("width 4, unit 128K", "-c 4 -S 128K"),
    ("width 4, unit 1M", "-c 4 -S 1M"),
    ("width 4, unit 4M", "-c 4 -S 4M"),
    ("groups of 2, depth 16", "-c 4 -S 128K -W 2 -D 16"),
];

fn points(size: Size) -> Vec<Point> {
    let mut points = Vec::new();
    let repeats = repeats(size);
    let speed = mib_per_s(size);
    for clients in size.pick(vec![1, 2, 4], vec![1, 2, 4, 8, 16]) {
        for threads in size.pick(vec![1, 4], vec![1, 2, 4, 8, 16]) {
            let ranks = u32::from(clients) * threads;
            let named =
                params([("clients", u32::from(clients).into()), ("threads", threads.into())]);
            points.push(throughput(size, "throughput", named, "", clients, ranks));
        }
    }
    for &(name, options) in LAYOUTS {
        let named = || params([("layout", name.into())]);
        points.push(throughput(size, "layout", named(), options, 2, 4));
        points.push(throughput(size, "layout-one", named(), options, 1, 1));
    }
    // On one cluster after the other, so that each is started once.
    points.sort_by_key(|point| point.part == "layout-one");
    let items = size.pick(500, 5000);
    for threads in size.pick(vec![1, 4, 16], vec![1, 2, 4, 8, 16, 32, 64]) {
        let command = format!("mdtest -i {repeats} -n {items} -u -d {{each/md}} --np {threads}");
        points.push(Point {
            part: "metadata".into(),
            params: params([("threads", threads.into())]),
            cluster: cluster(4, 1, speed, 2),
            work: Work::bench(&command),
        });
    }
    points
}

fn throughput(
    size: Size,
    part: &str,
    params: Params,
    layout: &str,
    clients: u16,
    ranks: u32,
) -> Point {
    let cluster = cluster(4, 1, mib_per_s(size), clients).striped(layout);
    let repeats = repeats(size);
    let mib = mib_per_rank(size, &cluster, ranks, 1);
    let command = format!(
        "ior -i {repeats} -a POSIX -F -e -g -t 1m -b {mib}m -w -r -o {{each/file}} -N {ranks}"
    );
    Point { part: part.into(), params, cluster, work: Work::bench(&command) }
}

fn charts() -> Vec<Chart> {
    let layouts = |part, title| Chart {
        part,
        title,
        over: Over::Names("layout"),
        figures: &["write", "read"],
        series: &[],
        ideal: false,
        beside: Vec::new(),
    };
    vec![
        Chart {
            part: "throughput",
            title: "Throughput by clients",
            over: Over::Doubling("clients", "clients (mounts)"),
            figures: &["write", "read"],
            series: &["threads"],
            ideal: true,
            beside: vec![
                (
                    "write",
                    beside("published: PanFS AS12 write, 3 shelves, by nodes", pick_write, 4.8),
                ),
                ("read", beside("published: PanFS AS12 read, 3 shelves, by nodes", pick_read, 4.5)),
            ],
        },
        layouts("layout", "Layout, 2 clients with 2 processes each"),
        layouts("layout-one", "Layout, one process"),
        Chart {
            part: "metadata",
            title: "mdtest by processes",
            over: Over::Doubling("threads", "processes on 2 mounts"),
            figures: &["File creation", "File removal", "Directory creation", "Directory removal"],
            series: &[],
            ideal: false,
            beside: Vec::new(),
        },
    ]
}

const fn beside(
    label: &'static str,
    pick: fn(&PublishedFigure) -> Option<f64>,
    limit: f64,
) -> Beside {
    Beside { label, document: DOCUMENT, pick, limit }
}

/// Peaks by number of nodes: 8 and 16 nodes, where the report prints them.
fn pick_write(figure: &PublishedFigure) -> Option<f64> {
    let peak = matches!(figure.id.as_str(), "F028" | "F031");
    figure.parameters.get("nodes").and_then(serde_json::Value::as_f64).filter(|_| peak)
}

fn pick_read(figure: &PublishedFigure) -> Option<f64> {
    figure
        .parameters
        .get("nodes")
        .and_then(serde_json::Value::as_f64)
        .filter(|_| figure.id == "F029")
}
