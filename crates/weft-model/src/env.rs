//! The seam for time and randomness. The real one reads clocks; the simulation's obeys a seed.

use crate::attr::Timespec;
use std::time::Duration;

/// Time and randomness. Everything else in Weft that needs them asks here.
pub trait Env: Send + Sync {
    /// Wall clock, for time stamps only.
    fn now(&self) -> Timespec;

    /// Monotonic time since some start, for deadlines.
    fn monotonic(&self) -> Duration;

    /// Lets time pass. In the simulation other actors run meanwhile.
    fn sleep(&self, duration: Duration);

    /// Random bits, not for keys.
    fn random(&self) -> u64;
}
