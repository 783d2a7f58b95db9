//! The real tools, where they are installed (`--with`).

use super::common::Common;
use crate::cli::Global;
use crate::outcome::Usage;
use std::ffi::OsString;
use std::io;
use weft_eval::driver::{self, Setup};
use weft_eval::ior::Config;
use weft_eval::real;
use weft_eval::record::{Record, Sample};

/// Options of ours that a real tool does not know, and whether a value follows.
const OURS: [(&str, bool); 17] = [
    ("--with", true),
    ("--np", true),
    ("--threads", false),
    ("--hosts", true),
    ("--bench-key", true),
    ("--rendezvous", true),
    ("--cold", false),
    ("--json", true),
    ("--server-pid", true),
    ("--noise", true),
    ("--repeats", true),
    ("--patience", true),
    ("--manager", true),
    ("--key", true),
    ("--dev", true),
    ("--output", true),
    ("--log", true),
];

/// What of a command line, after the name of the benchmark, is the real tool's own.
pub fn own_arguments(line: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let (mut own, mut skip) = (Vec::new(), false);
    for word in line {
        if std::mem::take(&mut skip) {
            continue;
        }
        let text = word.to_string_lossy();
        let (name, value) = text.split_once('=').map_or((&*text, None), |(n, v)| (n, Some(v)));
        match OURS.iter().find(|(ours, _)| *ours == name) {
            Some((_, takes)) => skip = *takes && value.is_none(),
            None => own.push(word),
        }
    }
    own
}

/// Runs the real tool with this process' own arguments, shows what it says, and takes it in.
///
/// # Errors
/// When it is not there, fails, or says nothing that is understood.
pub fn run(
    tool: &str,
    setup: &Setup,
    mut record: Record,
    global: Global,
) -> anyhow::Result<Record> {
    let arguments = own_arguments(std::env::args_os().skip(3));
    let ranks = (tool != "iozone").then_some(setup.launch.count);
    let text = real::run(tool, &arguments, ranks)?;
    Common::say(global, &text)?;
    let version = match tool {
        "ior" => real::ior::version(&text),
        "mdtest" => real::mdtest::version(&text),
        _ => None,
    };
    match tool {
        "ior" => record.add(real::ior::parse(&text)?),
        "iozone" => record.add(real::iozone::parse(&text)?),
        "mdtest" => record.phases = real::mdtest::parse(&text)?,
        other => {
            return Err(Usage(format!("--with {other}: there are ior, mdtest, iozone, fio")).into());
        }
    }
    finish(&mut record, tool, version);
    Ok(record)
}

/// What an ior command line asks for, done by fio.
///
/// # Errors
/// As [`run`]; and where fio cannot be told to do it.
pub fn fio(
    config: &Config,
    setup: &Setup,
    told: &mut dyn FnMut(&Sample),
) -> anyhow::Result<Record> {
    let ranks = setup.launch.count;
    let mut record = driver::begin(setup, "fio", serde_json::to_value(config)?, &[&config.file]);
    let mut version = None;
    for iteration in 0..config.iterations {
        for write in [true, false] {
            if !(if write { config.write } else { config.read }) {
                continue;
            }
            let text = real::run("fio", &real::fio::arguments(config, ranks, write)?, None)?;
            version = real::fio::version(&text);
            let sample = real::fio::parse(&text, write, iteration)?;
            told(&sample);
            record.add([sample]);
        }
        if !config.keep {
            remove(config, ranks)?;
        }
    }
    finish(&mut record, "fio", version);
    Ok(record)
}

fn finish(record: &mut Record, tool: &str, version: Option<String>) {
    record.commit = None;
    record.program = version.unwrap_or_else(|| tool.to_string());
    record.caches.note = format!("as {tool} was told; nothing else was done about caches");
    record.notes.push(format!("done by the real {tool}; its processor time was not measured"));
}

fn remove(config: &Config, ranks: u32) -> io::Result<()> {
    let files: Vec<String> = match config.file_per_rank {
        true => (0..ranks).map(|rank| format!("{}.{rank}", config.file)).collect(),
        false => vec![config.file.clone()],
    };
    files.iter().try_for_each(std::fs::remove_file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_tool_gets_its_own_options_only() {
        let line =
            ["-w", "--np", "4", "-t", "1m", "--json=f", "--cold", "--with", "ior", "-o", "f"];
        let own = own_arguments(line.map(OsString::from));
        assert_eq!(own, ["-w", "-t", "1m", "-o", "f"].map(OsString::from));
    }
}
