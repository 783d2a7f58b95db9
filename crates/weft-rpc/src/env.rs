//! The real clock and the kernel's randomness.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use weft_model::{Env, Timespec};

/// Time and randomness of this machine.
pub struct SystemEnv {
    start: Instant,
}

impl SystemEnv {
    /// Monotonic time starts now.
    pub fn new() -> SystemEnv {
        SystemEnv { start: Instant::now() }
    }
}

impl Default for SystemEnv {
    fn default() -> SystemEnv {
        SystemEnv::new()
    }
}

impl Env for SystemEnv {
    fn now(&self) -> Timespec {
        // A clock before 1970 is wrong anyway.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timespec { secs: since.as_secs() as i64, nanos: since.subsec_nanos() }
    }

    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }

    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }

    fn random(&self) -> u64 {
        // Not for keys: where the kernel has no randomness, the clock will do.
        getrandom::u64().unwrap_or_else(|_| self.start.elapsed().as_nanos() as u64)
    }
}
