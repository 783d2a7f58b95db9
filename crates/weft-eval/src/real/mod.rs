//! The real tools, where they are installed: runs them and takes their output into a record.

pub mod fio;
pub mod ior;
pub mod iozone;
pub mod mdtest;

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::process::{Command, Stdio};

/// Runs a real tool, under `mpirun` where there are several ranks and the tool is one of MPI's. What it
/// says is shown as it comes, if wanted, and handed back.
///
/// # Errors
/// When it is not on PATH or fails.
pub fn run(program: &str, arguments: &[OsString], ranks: Option<u32>) -> io::Result<String> {
    let mut words: Vec<OsString> = Vec::new();
    if let Some(ranks) = ranks.filter(|ranks| *ranks > 1) {
        words.extend(["mpirun".into(), "-n".into(), ranks.to_string().into()]);
    }
    words.push(program.into());
    words.extend(arguments.iter().cloned());
    let output = Command::new(&words[0]).args(&words[1..]).stderr(Stdio::inherit()).output();
    let missing = |error: io::Error| {
        io::Error::new(error.kind(), format!("cannot run {}: {error}", words[0].display()))
    };
    let output = output.map_err(missing)?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    match output.status.success() {
        true => Ok(text),
        false => Err(io::Error::other(format!("{program} failed ({}):\n{text}", output.status))),
    }
}

/// Where an output was not what was expected.
fn strange(tool: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("the output of {tool} has no results"))
}

/// The first number in a text that begins with one.
fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || ".eE+-".contains(c)));
    text[..end.unwrap_or(text.len())].parse().ok()
}
