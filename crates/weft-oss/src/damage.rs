//! Damaged places in stored data, each noted in the log once.

use parking_lot::Mutex;
use std::collections::HashSet;

/// Places remembered. When a disk has more, they are noted again, which then is the least worry.
const REMEMBERED: usize = 10_000;

/// What has been noted.
#[derive(Default)]
pub struct DamageLog(Mutex<Noted>);

#[derive(Default)]
struct Noted {
    places: HashSet<String>,
    found: u64,
}

impl DamageLog {
    /// Notes that the data at `place` (target, object, offset) is not what was written.
    pub fn note(&self, place: &str, detail: &str) {
        let mut noted = self.0.lock();
        if noted.places.len() >= REMEMBERED {
            noted.places.clear();
        }
        if noted.places.insert(place.to_string()) {
            noted.found += 1;
            tracing::error!(
                place,
                detail,
                "stored data is damaged; restore the file from a copy, and look at the disk"
            );
        }
    }

    /// Places noted since the start.
    pub fn found(&self) -> u64 {
        self.0.lock().found
    }
}
