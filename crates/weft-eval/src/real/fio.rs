//! fio: the work of an ior command line in its words, and its output.

use super::strange;
use crate::ior::Config;
use crate::record::Sample;
use serde_json::Value;
use std::ffi::OsString;
use std::io::{self, ErrorKind};

/// The arguments for writing or reading what an ior command line would.
///
/// # Errors
/// `Unsupported` for what fio cannot be told.
pub fn arguments(config: &Config, ranks: u32, write: bool) -> io::Result<Vec<OsString>> {
    let shared_segments = !config.file_per_rank && config.segments > 1;
    let unlike = config.reorder || config.reorder_random || config.check_read || config.check_write;
    if shared_segments || unlike || config.api != "POSIX" || config.file.contains('@') {
        let why = "--with fio: neither segments of a shared file, -C, -Z, -R, -W, -a nor @";
        return Err(io::Error::new(ErrorKind::Unsupported, why));
    }
    let kind = match (write, config.random) {
        (true, false) => "write",
        (true, true) => "randwrite",
        (false, false) => "read",
        (false, true) => "randread",
    };
    let size = config.block * config.segments;
    let mut words = vec![
        format!("--name={kind}"),
        format!("--rw={kind}"),
        format!("--bs={}", config.transfer),
        format!("--size={size}"),
        format!("--numjobs={ranks}"),
        "--ioengine=psync".into(),
        "--invalidate=0".into(),
        "--fallocate=none".into(),
        "--group_reporting".into(),
        "--output-format=json".into(),
        format!("--direct={}", u8::from(config.direct)),
        format!("--fsync={}", u8::from(config.fsync_each && write)),
        format!("--end_fsync={}", u8::from(config.fsync && write)),
    ];
    if config.stonewall > 0 {
        words.push(format!("--runtime={}", config.stonewall));
    }
    match config.file_per_rank {
        true => {
            words.push(format!("--filename_format={}.$jobnum", config.file));
        }
        false => {
            words.push(format!("--filename={}", config.file));
            words.push(format!("--offset_increment={size}"));
        }
    }
    Ok(words.into_iter().map(OsString::from).collect())
}

/// Name and version, as it says itself.
pub fn version(text: &str) -> Option<String> {
    Some(json(text).ok()?["fio version"].as_str()?.to_string())
}

/// The figures of one direction.
///
/// # Errors
/// `InvalidData` where there are none.
pub fn parse(text: &str, write: bool, iteration: u32) -> io::Result<Sample> {
    let phase = if write { "write" } else { "read" };
    let found = &json(text)?["jobs"][0][phase];
    let figure = |name: &str| found[name].as_f64().ok_or_else(|| strange("fio"));
    let (bytes, rate) = (figure("io_bytes")? as u64, figure("bw_bytes")? / f64::from(1 << 20));
    Ok(Sample {
        phase: phase.into(),
        iteration,
        rate,
        unit: "MiB/s".into(),
        operations: figure("total_ios")? as u64,
        bytes,
        seconds: figure("runtime")? / 1000.0,
        detail: [("iops".to_string(), figure("iops")?)].into(),
        ..Sample::default()
    })
}

/// Warnings may stand before it.
fn json(text: &str) -> io::Result<Value> {
    let start = text.find('{').ok_or_else(|| strange("fio"))?;
    Ok(serde_json::from_str(&text[start..])?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_its_json() {
        let text = "note: something\n{\"fio version\": \"fio-3.33\", \"jobs\": [{\"write\": \
            {\"io_bytes\": 1048576, \"bw_bytes\": 2097152, \"runtime\": 500, \"total_ios\": 4, \"iops\": 8.0}}]}";
        let sample = parse(text, true, 2).unwrap();
        assert_eq!((sample.rate, sample.bytes, sample.seconds), (2.0, 1 << 20, 0.5));
        assert_eq!((sample.operations, sample.iteration), (4, 2));
        assert_eq!(version(text).as_deref(), Some("fio-3.33"));
        assert!(parse(text, false, 0).is_err());
    }

    #[test]
    fn speaks_its_words() {
        let config = Config::parse("-t 1m -b 4m -s 2 -F -B -o /d/f".split(' ')).unwrap();
        let words = arguments(&config, 3, true).unwrap();
        for word in
            ["--size=8388608", "--numjobs=3", "--direct=1", "--filename_format=/d/f.$jobnum"]
        {
            assert!(words.contains(&word.into()), "{word}");
        }
        assert!(arguments(&Config::parse(["-s", "2"]).unwrap(), 1, true).is_err());
    }
}
