//! Says in the log which targets are being waited for: once for all requests, not once for each.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weft_model::{FsError, TargetId};

/// A wait as long as this is worth a word.
const WORTH_A_WORD: Duration = Duration::from_secs(3);
/// Between two words about the same target.
const REPEAT: Duration = Duration::from_secs(60);

/// The targets that are waited for.
#[derive(Default)]
pub struct Waits {
    late: Mutex<HashMap<TargetId, Late>>,
    /// Whether there is any, so that an answer costs no lock where nothing is wrong.
    any: AtomicBool,
}

struct Late {
    since: Duration,
    said: Duration,
}

impl Waits {
    /// A request called `op` has waited for `target` since the time `since`. `why` is what the last try
    /// met, if one has ended. Whether that is long enough to be worth a word.
    pub fn note(
        &self,
        target: TargetId,
        op: &str,
        since: Duration,
        now: Duration,
        why: Option<&FsError>,
    ) -> bool {
        if now.saturating_sub(since) < WORTH_A_WORD {
            return false;
        }
        let mut late = self.late.lock();
        let known = late.contains_key(&target);
        let entry = late.entry(target).or_insert(Late { since, said: now });
        if known && now.saturating_sub(entry.said) < REPEAT {
            return true;
        }
        entry.said = now;
        self.any.store(true, Ordering::Relaxed);
        let waited = now.saturating_sub(entry.since).as_secs();
        let why = why.map_or_else(|| "no answer".to_string(), ToString::to_string);
        tracing::warn!(target_id = %target, op, waited_s = waited, why,
            "target does not answer; what needs it waits. See `weft status`");
        true
    }

    /// The target has answered.
    pub fn end(&self, target: TargetId, now: impl Fn() -> Duration) {
        if !self.any.load(Ordering::Relaxed) {
            return;
        }
        let mut late = self.late.lock();
        if let Some(entry) = late.remove(&target) {
            let waited = now().saturating_sub(entry.since).as_secs();
            tracing::info!(target_id = %target, waited_s = waited, "target answers again");
        }
        self.any.store(!late.is_empty(), Ordering::Relaxed);
    }
}
