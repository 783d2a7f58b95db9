//! Structured logs to standard error; results of commands go to standard output.

use clap::ValueEnum;
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// Form of log lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum LogForm {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

impl LogForm {
    /// As on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            LogForm::Text => "text",
            LogForm::Json => "json",
        }
    }
}

/// Starts logging. `WEFT_LOG` (as `info`, `weft_mds=debug`) overrides `level`.
pub fn start(form: LogForm, level: &str) {
    let filter = EnvFilter::try_from_env("WEFT_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    match form {
        LogForm::Text => builder.init(),
        LogForm::Json => builder.json().init(),
    }
}
