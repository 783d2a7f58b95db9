//! How far a study is: a bar on a terminal, lines elsewhere.

use crate::plot::number;
use crate::results::Outcome;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Characters of a full bar.
const BAR: usize = 24;

/// Tells on standard error how far a study is.
pub struct Progress {
    terminal: bool,
    total: usize,
    done: usize,
    /// Points done in this run, and since when.
    run: (usize, Instant),
    what: String,
}

impl Progress {
    /// Nothing told yet.
    pub fn new() -> Progress {
        let terminal = std::io::stderr().is_terminal();
        Progress { terminal, total: 0, done: 0, run: (0, Instant::now()), what: String::new() }
    }

    /// A study begins, of which some points may be there already.
    pub fn begin(&mut self, study: &str, total: usize, left: usize) {
        (self.total, self.done, self.run) = (total, total - left, (0, Instant::now()));
        let there =
            if left < total { format!(", {} are there", total - left) } else { String::new() };
        self.say(&format!("{study}: {total} points{there}\n"));
    }

    /// A point begins.
    pub fn start(&mut self, what: &str) {
        self.what = what.to_string();
        if self.terminal {
            self.say(&format!("\r\x1b[K{} {what}", self.bar()));
        }
    }

    /// The point has been measured.
    pub fn done(&mut self, outcome: &Outcome) {
        self.done += 1;
        self.run.0 += 1;
        let figures = outcome.measured.figures.iter();
        let told = figures.map(|f| format!("{} {} {}", f.name, number(f.median), f.unit));
        let said = match &outcome.failed {
            Some(why) => format!("FAILED: {why}"),
            None => told.collect::<Vec<_>>().join(", "),
        };
        let clear = if self.terminal { "\r\x1b[K" } else { "" };
        let (done, total, took) = (self.done, self.total, outcome.seconds);
        self.say(&format!("{clear}[{done}/{total}] {}: {said} ({took:.1} s)\n", self.what));
    }

    /// The study has ended.
    pub fn end(&self) {
        if self.terminal {
            self.say("\r\x1b[K");
        }
    }

    fn bar(&self) -> String {
        let full = (self.done * BAR).checked_div(self.total).unwrap_or(0);
        let rest =
            self.remaining().map_or(String::new(), |rest| format!(" {} s left", rest.as_secs()));
        format!(
            "[{}{}] {}/{}{rest}",
            "#".repeat(full),
            ".".repeat(BAR - full),
            self.done,
            self.total
        )
    }

    /// The time left, if points take as long as those of this run have.
    fn remaining(&self) -> Option<Duration> {
        let (count, since) = self.run;
        (count > 0).then(|| since.elapsed() / count as u32 * (self.total - self.done) as u32)
    }

    fn say(&self, text: &str) {
        // Nobody may be there to read it, which does not concern the study.
        let _ = write!(std::io::stderr().lock(), "{text}");
    }
}

impl Default for Progress {
    fn default() -> Progress {
        Progress::new()
    }
}
