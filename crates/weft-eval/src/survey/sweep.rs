//! Objects x threads x record size.

use super::objects::Objects;
use crate::ranks::job::Server;
use crate::record::{Cpu, Sample};
use crate::usage;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Barrier};
use std::time::Instant;

/// What is surveyed.
#[derive(Clone)]
pub struct Target {
    /// Its name: `OST0000`, a directory.
    pub name: String,
    /// What stores its objects.
    pub objects: Arc<dyn Objects>,
}

/// One point of a survey.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sweep {
    /// Bytes of each target.
    pub size: u64,
    /// Bytes per record.
    pub record: u64,
    /// Objects of each target.
    pub objects: u32,
    /// Threads on each target, at least as many as objects.
    pub threads: u32,
    /// An fsync of every object is inside the time of writing.
    pub sync: bool,
}

/// What a thread has done: its end, seconds after the start, and its processor time.
type Part = io::Result<(f64, f64)>;

impl Sweep {
    /// The points of a survey: each number doubles from its lowest to its highest.
    pub fn points(
        size: u64,
        records: [u64; 2],
        objects: [u32; 2],
        threads: [u32; 2],
        sync: bool,
    ) -> Vec<Sweep> {
        let doubled = |[low, high]: [u64; 2]| {
            std::iter::successors(Some(low.max(1)), |n| n.checked_mul(2))
                .take_while(move |n| *n <= high)
        };
        let wide = |[low, high]: [u32; 2]| doubled([low.into(), high.into()]);
        let mut points = Vec::new();
        for record in doubled(records) {
            for objects in wide(objects) {
                for threads in wide(threads).filter(|threads| *threads >= objects) {
                    let (objects, threads) = (objects as u32, threads as u32);
                    points.push(Sweep { size, record, objects, threads, sync });
                }
            }
        }
        points
    }

    /// Records that each thread moves.
    fn records(&self) -> u64 {
        (self.size / u64::from(self.threads) / self.record).max(1)
    }

    /// The object of a thread and where its part begins.
    fn part(&self, thread: u32) -> (u32, u64) {
        let (object, place) = (thread % self.objects, u64::from(thread / self.objects));
        (object, place * self.records() * self.record)
    }
}

/// Writes, writes again and reads the objects of all targets at once, and removes them. One sample for
/// each; its name tells the point.
///
/// # Errors
/// The first of a target.
pub fn run(targets: &[Target], point: &Sweep, servers: &[Server]) -> io::Result<Vec<Sample>> {
    let phases = [("write", true), ("rewrite", true), ("read", false)];
    let done: io::Result<Vec<Sample>> = phases
        .into_iter()
        .map(|(name, write)| phase(targets, point, servers, name, write))
        .collect();
    let removed = targets.iter().try_for_each(|target| target.objects.remove());
    done.and_then(|samples| removed.map(|()| samples))
}

/// One pass over all objects.
///
/// # Errors
/// The first of a target.
pub(super) fn phase(
    targets: &[Target],
    point: &Sweep,
    servers: &[Server],
    name: &str,
    write: bool,
) -> io::Result<Sample> {
    let before = served(servers);
    let barrier = Barrier::new(targets.len() * point.threads as usize);
    let parts: Vec<(usize, Part)> = std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (number, target) in targets.iter().enumerate() {
            for thread in 0..point.threads {
                let barrier = &barrier;
                let body =
                    move || (number, go(target.objects.as_ref(), point, thread, write, barrier));
                threads.push(scope.spawn(body));
            }
        }
        let died = |_| (0, Err(io::Error::other("a thread has died")));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(died)).collect()
    });
    let (mut ends, mut load) = (vec![0f64; targets.len()], 0.0);
    for (number, part) in parts {
        let named =
            |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", targets[number].name));
        let (end, cpu) = part.map_err(named)?;
        ends[number] = ends[number].max(end);
        load += cpu;
    }
    let each = point.records() * u64::from(point.threads) * point.record;
    let bytes = each * targets.len() as u64;
    let seconds = ends.iter().copied().fold(0.0, f64::max);
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let rates: Vec<f64> = ends.iter().map(|end| mib(each) / end).collect();
    let mut used = served(servers);
    used.iter_mut().for_each(|(name, cpu)| *cpu -= before[name]);
    let detail = [
        ("min", rates.iter().copied().fold(f64::MAX, f64::min)),
        ("max", rates.iter().copied().fold(0.0, f64::max)),
        ("targets", targets.len() as f64),
        ("record", point.record as f64),
        ("objects", f64::from(point.objects)),
        ("threads", f64::from(point.threads)),
    ];
    Ok(Sample {
        phase: name.into(),
        rate: mib(bytes) / seconds,
        unit: "MiB/s".into(),
        operations: bytes / point.record,
        bytes,
        seconds,
        detail: detail.map(|(name, value)| (name.to_string(), value)).into(),
        cpu: Cpu { load, servers: used },
        ..Sample::default()
    })
}

/// Processor time of servers so far, by name.
pub(super) fn served(servers: &[Server]) -> BTreeMap<String, f64> {
    let mut used = BTreeMap::new();
    for server in servers {
        *used.entry(server.name.clone()).or_insert(0.0) += usage::cpu_seconds(server.pid);
    }
    used
}

fn go(objects: &dyn Objects, point: &Sweep, thread: u32, write: bool, barrier: &Barrier) -> Part {
    let (object, first) = point.part(thread);
    let mut buffer = vec![0x5au8; point.record as usize];
    barrier.wait();
    let (start, cpu) = (Instant::now(), usage::thread_seconds());
    for record in 0..point.records() {
        let offset = first + record * point.record;
        if write {
            buffer[..8.min(point.record as usize)].fill(record as u8);
            objects.write(object, &buffer, offset)?;
        } else {
            objects.read(object, &mut buffer, offset)?;
        }
    }
    if write && point.sync {
        objects.sync(object)?;
    }
    Ok((start.elapsed().as_secs_f64(), usage::thread_seconds() - cpu))
}

#[cfg(test)]
mod tests {
    use super::super::Files;
    use super::*;

    #[test]
    fn numbers_double_and_no_object_is_without_a_thread() {
        let points = Sweep::points(1 << 20, [1024, 2048], [1, 2], [1, 4], false);
        let short: Vec<(u64, u32, u32)> =
            points.iter().map(|p| (p.record, p.objects, p.threads)).collect();
        assert_eq!(
            short[..5],
            [(1024, 1, 1), (1024, 1, 2), (1024, 1, 4), (1024, 2, 2), (1024, 2, 4)]
        );
        assert_eq!(short.len(), 10);
    }

    #[test]
    fn parts_of_threads_do_not_overlap() {
        let point = Sweep { size: 1 << 20, record: 4096, objects: 2, threads: 4, sync: false };
        let parts: Vec<(u32, u64)> = (0..4).map(|thread| point.part(thread)).collect();
        assert_eq!(parts, [(0, 0), (1, 0), (0, 1 << 18), (1, 1 << 18)]);
    }

    #[test]
    fn surveys_directories() {
        let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let target = |dir: &tempfile::TempDir| Target {
            name: dir.path().display().to_string(),
            objects: Arc::new(Files::make(dir.path()).unwrap()),
        };
        let targets: Vec<Target> = dirs.iter().map(target).collect();
        let point = Sweep { size: 1 << 20, record: 64 << 10, objects: 2, threads: 4, sync: true };
        let samples = run(&targets, &point, &[]).unwrap();
        assert_eq!(
            samples.iter().map(|s| s.phase.as_str()).collect::<Vec<_>>(),
            ["write", "rewrite", "read"]
        );
        assert!(samples.iter().all(|sample| sample.bytes == 2 << 20 && sample.rate > 0.0));
        assert!(dirs.iter().all(|dir| std::fs::read_dir(dir.path()).unwrap().count() == 0));
    }
}
