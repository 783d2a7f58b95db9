//! Command lines of the tools, as they stand in lists of jobs, in messages to ranks and in tests.

use clap::{Args, Command};
use std::ffi::OsString;
use std::io::{self, ErrorKind};

/// The options of the tool `name` on a line without the program's name; of an option given twice the
/// last one counts.
///
/// # Errors
/// `InvalidInput` with the usage.
pub fn parse<C: Args>(
    name: &'static str,
    line: impl IntoIterator<Item = impl Into<OsString> + Clone>,
) -> io::Result<C> {
    let tool = Command::new(name).no_binary_name(true).disable_version_flag(true);
    let found = C::augment_args(tool.args_override_self(true)).try_get_matches_from(line);
    found
        .and_then(|found| C::from_arg_matches(&found))
        .map_err(|error| io::Error::new(ErrorKind::InvalidInput, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Args)]
    struct Options {
        #[arg(short)]
        number: u32,
    }

    #[test]
    fn the_last_one_counts_and_errors_name_the_tool() {
        assert_eq!(parse::<Options>("tool", ["-n", "1", "-n", "2"]).unwrap().number, 2);
        let error = parse::<Options>("tool", ["-q"]).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains("-q") && error.to_string().contains("Usage: tool"));
    }
}
