//! After Clemson's evaluation of OrangeFS on DDN SFA12K: scaling with servers and clients.

use super::build::{cluster, mib_per_rank, mib_per_s, repeats, survey};
use super::{Part, Study};
use crate::chart::{Chart, Over};
use crate::point::{Cluster, Params, Point, Work, params};
use crate::results::Size;

pub const STUDY: Study = Study {
    name: "orangefs",
    title: "Scaling with servers and clients, as in the evaluation of OrangeFS on SFA12K",
    source: "Clemson Center of Excellence in Next Generation Computing: OrangeFS DDN SFA12K Architecture (2013)",
    document: "orangefs-sfa12k.md",
    asked: "How does one target scale with the number of processes? How does throughput grow with 1, 2 and 4 \
        servers and 1 to 8 clients, when the record grows with the number of servers so that each record \
        is spread over all of them? What do 16 servers give?",
    done: "One OST per server process, each with a device of fixed speed; files striped over all servers in units of \
        256 KiB, so that a record of 256 KiB times the servers uses each of them once. A process per \
        client, each on a mount (FUSE) of its own. IOR with a file per process and fsync at the end \
        takes the place of IOzone: the same accesses, one record after the other.",
    parts,
    points,
    charts,
    not_run: &[("32 clients on other machines", "everything runs on one machine: up to 8 mounts")],
};

fn parts() -> Vec<Part> {
    vec![
        Part {
            name: "one",
            title: "One target, 1 to 8 processes",
            text: "One server with one OST, records of 256 KiB, processes on one mount.",
        },
        Part {
            name: "local",
            title: "The target alone, 1 to 8 threads",
            text: "The same target over its connection, without mount and striping (survey).",
        },
        Part {
            name: "scaling",
            title: "1, 2 and 4 servers by 1 to 8 clients",
            text: "Records of 256 KiB times the number of servers.",
        },
        Part {
            name: "sixteen",
            title: "16 servers",
            text: "Devices of a quarter of the speed, since the servers share the processors of one machine. The report \
                reached nearly 12 GB/s reading and nearly 8 GB/s writing with 32 clients: 0.75 and 0.5 GB/s per server.",
        },
    ]
}

fn points(size: Size) -> Vec<Point> {
    let speed = mib_per_s(size);
    let one = cluster(1, 1, speed, 1).striped("-c -1 -S 256K");
    let mut points: Vec<Point> = size
        .pick(vec![1, 2, 4, 8], (1..=8).collect())
        .into_iter()
        .map(|processes| {
            point(size, "one", params([("processes", processes.into())]), &one, processes, 256)
        })
        .collect();
    for threads in size.pick(vec![1, 4, 8], vec![1, 2, 4, 8]) {
        let named = params([("threads", threads.into())]);
        points.push(survey(size, "local", named, cluster(1, 1, speed, 1), [threads, threads]));
    }
    for servers in [1, 2, 4] {
        for clients in size.pick(vec![1, 4, 8], vec![1, 2, 4, 8]) {
            let spread = cluster(servers, 1, speed, clients).striped("-c -1 -S 256K");
            let named = params([
                ("servers", u32::from(servers).into()),
                ("clients", u32::from(clients).into()),
            ]);
            points.push(point(
                size,
                "scaling",
                named,
                &spread,
                clients.into(),
                256 * u32::from(servers),
            ));
        }
    }
    for clients in size.pick(vec![1, 8], vec![1, 4, 8, 16, 32]) {
        let spread = cluster(16, 1, speed / 4, clients).striped("-c -1 -S 256K");
        let named = params([("clients", u32::from(clients).into())]);
        points.push(point(size, "sixteen", named, &spread, clients.into(), 4096));
    }
    points
}

fn point(
    size: Size,
    part: &str,
    params: Params,
    cluster: &Cluster,
    ranks: u32,
    record_kib: u32,
) -> Point {
    let repeats = repeats(size);
    let transfer_mib = u64::from(record_kib).div_ceil(1024);
    let mib = mib_per_rank(size, cluster, ranks, transfer_mib);
    let command = format!(
        "ior -i {repeats} -a POSIX -F -e -t {record_kib}k -b {mib}m -w -r -o {{each/file}} -N {ranks}"
    );
    Point { part: part.into(), params, cluster: cluster.clone(), work: Work::bench(&command) }
}

fn charts() -> Vec<Chart> {
    let chart = |part, title, over, series, ideal| Chart {
        part,
        title,
        over,
        figures: &["write", "read"],
        series,
        ideal,
        beside: Vec::new(),
    };
    vec![
        chart("one", "One target", Over::Doubling("processes", "processes"), &[], false),
        chart(
            "scaling",
            "By clients",
            Over::Doubling("clients", "clients (mounts)"),
            &["servers"],
            true,
        ),
        chart("scaling", "By servers", Over::Doubling("servers", "servers"), &["clients"], true),
        chart("sixteen", "16 servers", Over::Doubling("clients", "clients (mounts)"), &[], true),
    ]
}
