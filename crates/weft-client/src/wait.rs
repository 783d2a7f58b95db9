//! Waiting for locks that others hold while they wait for servers.
//!
//! They are asked for again and again, not blocked on: whoever waits has a deadline, can be interrupted,
//! and in the simulation lets others run.

use crate::client::Client;
use std::time::Duration;
use weft_model::{Env, ErrorKind, FsError, Result};
use weft_rpc::router::Patience;

/// First and longest pause between two tries.
const PAUSES: (Duration, Duration) = (Duration::from_micros(20), Duration::from_millis(1));

/// Takes a lock within somebody's patience; `op` is what is told if it ends.
///
/// # Errors
/// `Interrupted`, `TimedOut`.
pub(crate) fn take<G>(
    env: &dyn Env,
    patience: &Patience<'_>,
    op: &'static str,
    mut attempt: impl FnMut() -> Option<G>,
) -> Result<G> {
    let (start, mut pause) = (env.monotonic(), PAUSES.0);
    loop {
        if let Some(guard) = attempt() {
            return Ok(guard);
        }
        if patience.interrupted.is_some_and(|interrupted| interrupted()) {
            return Err(FsError::new(ErrorKind::Interrupted, op));
        }
        if patience.limit.is_some_and(|limit| env.monotonic() - start >= limit) {
            return Err(FsError::new(ErrorKind::TimedOut, op));
        }
        env.sleep(pause);
        pause = (pause * 2).min(PAUSES.1);
    }
}

impl Client {
    /// Takes one of a file's locks.
    pub(crate) fn acquire<G>(
        &self,
        patience: &Patience<'_>,
        attempt: impl FnMut() -> Option<G>,
    ) -> Result<G> {
        take(self.env(), patience, "wait for earlier writes", attempt)
    }
}
