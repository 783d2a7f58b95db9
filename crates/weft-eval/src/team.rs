//! Several processes that run phases together: a leader, and members that are the same binary.

use crate::phase::{Done, Phase, Sizes};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

/// Members waiting for the next phase.
pub struct Team {
    members: Vec<Member>,
}

struct Member {
    child: Child,
    orders: ChildStdin,
    reports: BufReader<ChildStdout>,
}

/// A phase done by all members.
#[derive(Clone, Copy, Debug)]
pub struct Result {
    /// Of all members.
    pub done: Done,
    /// From the common start to the last end.
    pub seconds: f64,
}

impl Team {
    /// Starts `count` members working below `dir`.
    ///
    /// # Errors
    /// When a process cannot be started.
    pub fn start(dir: &Path, count: usize, sizes: &Sizes) -> io::Result<Team> {
        let member = |number: usize| {
            let own = dir.join(format!("p{number}"));
            std::fs::create_dir_all(&own)?;
            let mut child = Command::new(std::env::current_exe()?)
                .arg("member")
                .arg(&own)
                .args(
                    [sizes.files, sizes.bytes, sizes.request, sizes.random].map(|n| n.to_string()),
                )
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()?;
            let missing = || io::Error::other("no pipe to the member");
            let orders = child.stdin.take().ok_or_else(missing)?;
            let reports = BufReader::new(child.stdout.take().ok_or_else(missing)?);
            Ok(Member { child, orders, reports })
        };
        Ok(Team { members: (0..count).map(member).collect::<io::Result<_>>()? })
    }

    /// Runs one phase on all members.
    ///
    /// # Errors
    /// A member's error.
    pub fn run(&mut self, phase: &str) -> io::Result<Result> {
        let start = Instant::now();
        for member in &mut self.members {
            writeln!(member.orders, "{phase}")?;
        }
        let mut done = Done::default();
        for member in &mut self.members {
            let mut line = String::new();
            member.reports.read_line(&mut line)?;
            let numbers: Vec<u64> = line.split_whitespace().map_while(|n| n.parse().ok()).collect();
            let [operations, bytes] = numbers[..] else {
                return Err(io::Error::other(format!("{phase}: {}", line.trim())));
            };
            done.operations += operations;
            done.bytes += bytes;
        }
        Ok(Result { done, seconds: start.elapsed().as_secs_f64() })
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        for member in &mut self.members {
            // Members end when their orders end; one that hangs in the file system is not waited for.
            let _ = member.child.kill();
            let _ = member.child.wait();
        }
    }
}

/// The life of a member: phases from standard input, reports to standard output.
///
/// # Errors
/// Those of the pipes.
pub fn member(dir: &Path, sizes: &Sizes) -> io::Result<()> {
    for order in io::stdin().lines() {
        let report = match order?.parse::<Phase>() {
            Ok(phase) => match crate::phase::run(phase, dir, sizes) {
                Ok(done) => format!("{} {}", done.operations, done.bytes),
                Err(error) => format!("error {error} in {}", dir.display()),
            },
            Err(error) => format!("error {error}"),
        };
        println!("{report}");
    }
    Ok(())
}
