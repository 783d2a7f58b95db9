//! Verifies stored data against its checksums, slowly enough for others to get at the disk.

use crate::Oss;
use std::ops::ControlFlow;
use std::time::Duration;
use weft_model::{ErrorKind, FsError, ObjectId, Result};
use weft_rpc::pb::oss::{BadBlock, Scrub, ScrubReply};

/// Most objects looked at in one request.
const MAX_OBJECTS: u32 = 1000;
/// After this long no further object is begun, and the one at hand goes on without pauses.
const HURRY_AFTER: Duration = Duration::from_secs(5);
/// After this long a request ends. Askers wait for 20 s.
const GIVE_UP_AFTER: Duration = Duration::from_secs(15);

/// Verifies up to `max_objects` objects (0: as many as there is time for) behind the cursor. Damage
/// is in the answer and in the log, not an error. The answer's cursor is empty at the end.
///
/// # Errors
/// `Invalid` for a cursor that no answer had, `Io`.
pub fn scrub(oss: &Oss, request: &Scrub) -> Result<ScrubReply> {
    let after = super::cursor(&request.cursor, "scrub")?;
    let limit = match request.max_objects {
        0 => MAX_OBJECTS,
        wanted => wanted.min(MAX_OBJECTS),
    };
    let mut pace = Pace::new(oss);
    let mut reply = ScrubReply::default();
    for id in oss.objects.list(after, limit as usize)? {
        scrub_object(oss, id, &mut pace, &mut reply)?;
        reply.cursor = id.to_string();
        if pace.elapsed() >= HURRY_AFTER {
            break;
        }
    }
    Ok(reply)
}

fn scrub_object(oss: &Oss, id: ObjectId, pace: &mut Pace, reply: &mut ScrubReply) -> Result<()> {
    let report = match oss.objects.scrub(id, &mut |bytes| pace.step(bytes)) {
        Ok(report) => report,
        // Removed since it was listed.
        Err(error) if error.kind == ErrorKind::NotFound => return Ok(()),
        Err(error) if error.subject.is_empty() => return Err(error.on(format_args!("object={id}"))),
        Err(error) => return Err(error),
    };
    reply.objects += 1;
    reply.bytes += report.bytes;
    let mut bad = |offset, what: &str| {
        reply.bad.push(BadBlock { object: Some(id.into()), offset, what: what.to_string() });
    };
    for &offset in &report.damaged {
        let error = FsError::new(ErrorKind::Checksum, "scrub");
        bad(offset, error.kind.text());
        oss.damage.note(&format!("target={} object={id} offset={offset}", oss.target), "");
    }
    if pace.given_up {
        // Said, not passed over: the rest of the object is neither good nor bad.
        bad(report.bytes, "not verified from here on: too large for one scrub request");
        tracing::warn!(target_id = %oss.target, object = %id, verified_bytes = report.bytes,
            "object too large for one scrub request; read the file instead");
        pace.given_up = false;
    }
    Ok(())
}

/// Keeps to the rate, and to the time a request may take.
struct Pace<'a> {
    oss: &'a Oss,
    start: Duration,
    bytes: u64,
    given_up: bool,
}

impl<'a> Pace<'a> {
    fn new(oss: &'a Oss) -> Pace<'a> {
        Pace { oss, start: oss.env.monotonic(), bytes: 0, given_up: false }
    }

    fn elapsed(&self) -> Duration {
        self.oss.env.monotonic().saturating_sub(self.start)
    }

    /// After `bytes` more: waits until the rate allows for them.
    fn step(&mut self, bytes: u64) -> ControlFlow<()> {
        self.bytes += bytes;
        let elapsed = self.elapsed();
        if elapsed >= GIVE_UP_AFTER {
            self.given_up = true;
            return ControlFlow::Break(());
        }
        let rate = self.oss.settings.scrub_bytes_per_second;
        if rate > 0 && elapsed < HURRY_AFTER {
            let due = Duration::from_secs_f64(self.bytes as f64 / rate as f64).min(HURRY_AFTER);
            self.oss.env.sleep(due.saturating_sub(elapsed));
        }
        ControlFlow::Continue(())
    }
}
