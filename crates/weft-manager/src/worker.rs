//! A thread that does something again and again.

use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use weft_model::{FsError, Result};

/// A running thread. Dropping it ends the thread, after the round at hand.
pub struct Worker {
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Stop {
    asked: Mutex<bool>,
    changed: Condvar,
}

impl Worker {
    /// Starts a thread that calls `round`, then waits for as long as it says, and so on.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn start(
        name: &str,
        mut round: impl FnMut() -> Duration + Send + 'static,
    ) -> Result<Worker> {
        let stop = Arc::new(Stop::default());
        let seen = stop.clone();
        let body = move || {
            loop {
                let pause = round();
                let mut asked = seen.asked.lock();
                if !*asked {
                    seen.changed.wait_for(&mut asked, pause);
                }
                if *asked {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name(name.into())
            .spawn(body)
            .map_err(|error| FsError::from_io("start thread", &error).on(name))?;
        Ok(Worker { stop, thread: Some(thread) })
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        *self.stop.asked.lock() = true;
        self.stop.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic in there has been reported by the panic hook.
            let _ = thread.join();
        }
    }
}
