//! Tables as IOR prints them.

use super::Config;
use crate::record::{Record, Sample};
use crate::text::{clock, size};

/// Everything before the results.
pub fn heading(config: &Config, record: &Record) -> String {
    let ranks = config.ranks.unwrap_or(record.ranks.count).max(1);
    let access = if config.file_per_rank { "file-per-process" } else { "single-shared-file" };
    let order = if config.random { "random" } else { "sequential" };
    let between = match (config.reorder, config.reorder_random) {
        (true, _) => format!("constant task offset\ntask offset         : {}", config.node_offset),
        (_, true) => format!("random task offset\nreorder random seed : {}", config.random_seed),
        _ => "no tasks offsets".into(),
    };
    let place = record.places.first().cloned().unwrap_or_default();
    let percent =
        |part: u64, all: u64| if all == 0 { 0.0 } else { part as f64 / all as f64 * 100.0 };
    let mut text = format!(
        "IOR look-alike of {}\n\
         Began               : {}\n\
         Command line        : {}\n\
         Machine             : {} {}\n\
         Path                : {}\n\
         FS                  : {}   Used FS: {:.1}%   Inodes: {:.1} Mi   Used Inodes: {:.1}%\n\
         \nOptions: \n\
         api                 : {}\n\
         test filename       : {}\n\
         access              : {access}\n\
         type                : independent\n\
         segments            : {}\n\
         ordering in a file  : {order}\n\
         ordering inter file : {between}\n\
         tasks               : {ranks}\n\
         repetitions         : {}\n\
         xfersize            : {}\n\
         blocksize           : {}\n\
         aggregate filesize  : {}\n",
        record.program,
        clock(record.started),
        record.command.join(" "),
        record.machine.kernel,
        record.machine.host,
        place.path,
        size(place.size),
        percent(place.used, place.size),
        place.inodes as f64 / f64::from(1 << 20),
        percent(place.inodes_used, place.inodes),
        config.api,
        config.file,
        config.segments,
        config.iterations,
        size(config.transfer),
        size(config.block),
        size(config.total(ranks)),
    );
    if config.stonewall > 0 {
        text += &format!("stonewallingTime    : {}\n", config.stonewall);
        text += &format!("stoneWallingWearOut : {}\n", u8::from(config.wear_out));
    }
    text + "\nResults: \n\n\
        access    bw(MiB/s)  IOPS       Latency(s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter\n\
        ------    ---------  ----       ----------  ---------- ---------  --------   --------   --------   --------   ----\n"
}

/// A line of the results.
pub fn row(config: &Config, sample: &Sample) -> String {
    let detail = |name: &str| sample.detail.get(name).copied();
    let cells = if sample.phase == "remove" {
        [None, None, None, None, None, None, None, None, Some(sample.seconds)]
    } else {
        let kib = |bytes: u64| Some(bytes as f64 / 1024.0);
        let (open, moving, close) = (detail("open"), detail("transfer"), detail("close"));
        let (iops, latency) = (detail("iops"), detail("latency"));
        let (block, transfer) = (kib(config.block), kib(config.transfer));
        let seconds = Some(sample.seconds);
        [Some(sample.rate), iops, latency, block, transfer, open, moving, close, seconds]
    };
    // The column of latencies is one wider than the others.
    let cell = |(column, value): (usize, Option<f64>)| {
        format!("{:<width$} ", number(value), width = if column == 2 { 11 } else { 10 })
    };
    let line: String = cells.into_iter().enumerate().map(cell).collect();
    format!("{:<10}{line}{:<4}\n", sample.phase, sample.iteration)
}

/// As IOR writes numbers: the larger, the fewer digits behind the point.
fn number(value: Option<f64>) -> String {
    match value {
        None => "-".into(),
        Some(value) if value < 1.0 => format!("{value:.6}"),
        Some(value) if value < 3600.0 => format!("{value:.2}"),
        Some(value) => format!("{value:.0}"),
    }
}

/// Everything after the results.
pub fn render(config: &Config, record: &Record) -> String {
    let mut text = String::new();
    for (name, phase) in [("Write:", "write"), ("Read: ", "read")] {
        if let Some(found) = record.phase(phase) {
            let (mib, mb) = (found.rate.max, found.rate.max * 1.048_576);
            text += &format!("Max {name} {mib:.2} MiB/sec ({mb:.2} MB/sec)\n");
        }
    }
    text += "\nSummary of all tests:\n\
        Operation   Max(MiB)   Min(MiB)  Mean(MiB)     StdDev   Max(OPs)   Min(OPs)  Mean(OPs)     StdDev    Mean(s) \
        Stonewall(s) Stonewall(MiB) Test# #Tasks tPN reps fPP reord reordoff reordrand seed segcnt   blksiz    xsize \
        aggs(MiB)   API RefNum\n";
    for phase in ["write", "read"] {
        if record.phase(phase).is_some() {
            text += &summary(config, record, phase);
        }
    }
    text + &format!("Finished            : {}\n", clock(record.started + record.seconds as u64))
}

fn summary(config: &Config, record: &Record, phase: &str) -> String {
    use crate::record::Stats;
    let bw = Stats::of(record.of(phase).map(|s| s.rate));
    let ops = Stats::of(record.of(phase).map(|s| s.operations as f64 / s.seconds));
    let seconds = Stats::of(record.of(phase).map(|s| s.seconds)).mean;
    let wall = |name: &str| {
        let values: Vec<f64> =
            record.of(phase).filter_map(|sample| sample.detail.get(name).copied()).collect();
        if values.is_empty() { "NA".to_string() } else { format!("{:.2}", Stats::of(values).mean) }
    };
    let (time, moved) = (wall("stonewall"), wall("stonewall_mib"));
    let hosts = &record.ranks.hosts;
    let per_node = hosts.iter().filter(|host| Some(*host) == hosts.first()).count();
    let aggregate = record.of(phase).next().map_or(0, |sample| sample.bytes) as f64 / 1_048_576.0;
    let four =
        |s: Stats| format!("{:10.2} {:10.2} {:10.2} {:10.2}", s.max, s.min, s.mean, s.stddev);
    format!(
        "{phase:<9} {} {} {seconds:10.5} {time:>12} {moved:>14} {:5} {:6} {per_node:3} {:4} {:3} {:5} {:8} {:9} {:4} \
         {:6} {:8} {:8} {aggregate:9.1} {:>5} {:6}\n",
        four(bw),
        four(ops),
        0,
        record.ranks.count,
        bw.count,
        u8::from(config.file_per_rank),
        u8::from(config.reorder),
        config.node_offset,
        u8::from(config.reorder_random),
        config.random_seed,
        config.segments,
        config.block,
        config.transfer,
        config.api,
        config.reference,
    )
}
