//! How long a file system makes its users wait: small operations one after another, and the longest
//! time between two that were done.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Between two operations.
const PAUSE: Duration = Duration::from_millis(5);

/// What a probe does again and again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Task {
    /// Writes 4 KiB to a file that stays open, and fsyncs it.
    Write,
    /// Makes and removes a file.
    Create,
}

/// What a probe has seen.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Seen {
    /// Operations done.
    pub operations: u64,
    /// The longest time from one operation done to the next.
    pub longest: Duration,
    /// Operations that failed instead of waiting.
    pub errors: u64,
}

/// A probe at work on a thread of its own.
pub struct Probe {
    stop: Arc<AtomicBool>,
    done: Arc<AtomicU64>,
    thread: JoinHandle<io::Result<Seen>>,
}

impl Probe {
    /// Begins in `dir`, with a file of this name.
    ///
    /// # Errors
    /// Those of the file and of threads.
    pub fn start(dir: &Path, name: &str, task: Task) -> io::Result<Probe> {
        let path = dir.join(name);
        if task == Task::Write {
            fs::write(&path, [0; 4096])?;
        }
        let stop = Arc::new(AtomicBool::new(false));
        let done = Arc::new(AtomicU64::new(0));
        let (asked, count) = (stop.clone(), done.clone());
        let thread = std::thread::Builder::new()
            .name(format!("probe-{name}"))
            .spawn(move || work(&path, task, &asked, &count))?;
        Ok(Probe { stop, done, thread })
    }

    /// Operations done so far.
    pub fn operations(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Ends it, after the operation under way.
    ///
    /// # Errors
    /// Those of opening the file at the start.
    pub fn stop(self) -> io::Result<Seen> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_else(|_| Err(io::Error::other("the probe has panicked")))
    }
}

fn work(path: &Path, task: Task, stop: &AtomicBool, done: &AtomicU64) -> io::Result<Seen> {
    let file = match task {
        Task::Write => Some(OpenOptions::new().write(true).open(path)?),
        Task::Create => None,
    };
    let mut seen = Seen::default();
    let mut last = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        let outcome = match &file {
            Some(file) => file.write_all_at(&[1; 4096], 0).and_then(|()| file.sync_data()),
            None => fs::File::create(path).and_then(|_| fs::remove_file(path)),
        };
        match outcome {
            Ok(()) => {
                seen.longest = seen.longest.max(last.elapsed());
                last = Instant::now();
                seen.operations += 1;
                done.store(seen.operations, Ordering::Relaxed);
            }
            Err(_) => seen.errors += 1,
        }
        std::thread::sleep(PAUSE);
    }
    // A wait that has not ended counts as long as it has lasted.
    seen.longest = seen.longest.max(last.elapsed());
    Ok(seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_what_it_does_and_what_fails() {
        let dir = tempfile::tempdir().unwrap();
        let probes = [("a", Task::Write), ("b", Task::Create)]
            .map(|(name, task)| Probe::start(dir.path(), name, task).unwrap());
        std::thread::sleep(Duration::from_millis(300));
        for probe in probes {
            let seen = probe.stop().unwrap();
            assert!(seen.operations > 3 && seen.errors == 0, "{seen:?}");
        }
        let gone = Probe::start(&dir.path().join("gone"), "c", Task::Create).unwrap();
        std::thread::sleep(Duration::from_millis(100));
        let seen = gone.stop().unwrap();
        assert!(seen.errors > 0 && seen.operations == 0);
        assert!(seen.longest >= Duration::from_millis(90));
    }
}
