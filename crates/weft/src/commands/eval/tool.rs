//! Programs that a study runs: this one, with other arguments.

use crate::process::own_program;
use std::fs::File;
use std::io::{Read, Seek};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Longest run of a benchmark; of other commands as well.
const PATIENCE: Duration = Duration::from_secs(1800);
/// Between two looks whether it has ended.
const POLL: Duration = Duration::from_millis(10);

/// Runs commands of this program until somebody wants to stop.
#[derive(Clone)]
pub struct Tool {
    /// Somebody wants to stop.
    pub stopping: Arc<AtomicBool>,
}

impl Tool {
    /// Runs a command. Its standard output.
    ///
    /// # Errors
    /// A sentence with what it says on standard error; when it takes too long or somebody wants to
    /// stop, it is killed.
    pub fn run(&self, args: &[String]) -> Result<String, String> {
        let failed = |why: String| format!("`{}`: {why}", line(args));
        self.start(args, || self.stopping.load(Ordering::Relaxed)).map_err(failed)
    }

    /// The same, whether or not somebody wants to stop: for cleaning up.
    ///
    /// # Errors
    /// As [`Tool::run`].
    pub fn run_to_the_end(&self, args: &[String]) -> Result<String, String> {
        self.start(args, || false).map_err(|why| format!("`{}`: {why}", line(args)))
    }

    fn start(&self, args: &[String], stop: impl Fn() -> bool) -> Result<String, String> {
        // Files, not pipes: nobody reads while it runs.
        let [out, errors] = [scratch()?, scratch()?];
        let [to_out, to_errors] = [copy(&out)?, copy(&errors)?];
        let mut command = Command::new(own_program());
        command.args(args).stdin(Stdio::null()).stdout(to_out).stderr(to_errors);
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let deadline = Instant::now() + PATIENCE;
        let status: ExitStatus = loop {
            match child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) if Instant::now() < deadline && !stop() => std::thread::sleep(POLL),
                other => {
                    // Nothing more can be done about one that cannot be killed.
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(match other {
                        Err(error) => error.to_string(),
                        _ if stop() => "stopped".into(),
                        _ => format!("no end after {} s", PATIENCE.as_secs()),
                    });
                }
            }
        };
        match status.success() {
            true => text(out),
            // The first line says what is wrong; usage follows it.
            false => Err(text(errors)?.lines().next().map_or(status.to_string(), String::from)),
        }
    }
}

/// A command as a shell has it.
pub fn line(args: &[String]) -> String {
    let quoted = args.iter().map(|arg| match arg.contains([' ', '\'', '"', '*']) {
        true => format!("'{arg}'"),
        false => arg.clone(),
    });
    std::iter::once("weft".to_string()).chain(quoted).collect::<Vec<_>>().join(" ")
}

/// Words of a command.
pub fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(String::from).collect()
}

fn scratch() -> Result<File, String> {
    tempfile::tempfile().map_err(|error| format!("no temporary file: {error}"))
}

fn copy(file: &File) -> Result<File, String> {
    file.try_clone().map_err(|error| error.to_string())
}

fn text(mut file: File) -> Result<String, String> {
    let mut text = String::new();
    let read = file.rewind().and_then(|()| file.read_to_string(&mut text));
    read.map(|_| text).map_err(|error| error.to_string())
}
