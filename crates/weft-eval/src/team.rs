//! Several processes that run phases together: a leader, and members that are the same binary.

use crate::contest::{Outcome, Runner};
use crate::target::Posix;
use crate::workload::{self, Done, Phase, Sizes};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

/// Members waiting for the next phase.
pub struct Team {
    dir: PathBuf,
    members: Vec<Member>,
}

struct Member {
    child: Child,
    orders: ChildStdin,
    reports: BufReader<ChildStdout>,
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
                    [sizes.files, sizes.bytes, sizes.request, sizes.random, sizes.checked.into()]
                        .map(|n: u64| n.to_string()),
                )
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()?;
            let missing = || io::Error::other("no pipe to the member");
            let orders = child.stdin.take().ok_or_else(missing)?;
            let reports = BufReader::new(child.stdout.take().ok_or_else(missing)?);
            Ok(Member { child, orders, reports })
        };
        let members = (0..count).map(member).collect::<io::Result<_>>()?;
        Ok(Team { dir: dir.to_path_buf(), members })
    }
}

impl Runner for Team {
    fn run(&mut self, phase: Phase) -> io::Result<Outcome> {
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
        Ok(Outcome { done, seconds: start.elapsed().as_secs_f64() })
    }

    fn end(self: Box<Self>) -> io::Result<()> {
        let dir = self.dir.clone();
        drop(self);
        std::fs::remove_dir_all(dir)
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
    let target = Posix::make(dir)?;
    for order in io::stdin().lines() {
        let report = match order?.parse::<Phase>() {
            Ok(phase) => match workload::run(phase, &target, sizes) {
                Ok(done) => format!("{} {}", done.operations, done.bytes),
                Err(error) => format!("error {error} in {}", dir.display()),
            },
            Err(error) => format!("error {error}"),
        };
        println!("{report}");
    }
    Ok(())
}
