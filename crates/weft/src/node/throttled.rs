//! A target that is made as slow as a device of fixed speed, for studies.

use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use weft_model::throttle::{Speed, Throttle};
use weft_model::{ClientId, Env, ErrorKind, FsError, Result};
use weft_rpc::{Bulk, CallInfo, Reply, Request, Service};

/// Longest queue before a device; whoever finds a longer one is told to come again.
const MAX_QUEUE: Duration = Duration::from_secs(5);

/// A service whose operations take the time that the device would.
pub struct Throttled {
    service: Arc<dyn Service>,
    device: Mutex<Throttle>,
    env: Arc<dyn Env>,
}

impl Throttled {
    /// Makes `service` that slow.
    pub fn new(service: Arc<dyn Service>, speed: Speed, env: Arc<dyn Env>) -> Throttled {
        Throttled { service, device: Mutex::new(Throttle::new(speed)), env }
    }
}

impl Service for Throttled {
    /// # Errors
    /// Also `Overloaded` when the queue is too long.
    fn serve(&self, info: &CallInfo, request: &Request, bulk: Bulk<'_>) -> Result<Reply> {
        let Some(sent) = bytes(request, &bulk) else {
            return self.service.serve(info, request, bulk);
        };
        let arrived = self.env.monotonic();
        let queue = self.device.lock().queue(arrived);
        if queue > MAX_QUEUE {
            return Err(FsError::new(ErrorKind::Overloaded, request.name())
                .because(format_args!("the throttle's queue is {} ms long", queue.as_millis())));
        }
        let reply = self.service.serve(info, request, bulk)?;
        let received = if let Reply::Read(read) = &reply { u64::from(read.len) } else { 0 };
        // What the work itself has taken is part of the device's time.
        let answer_at = self.device.lock().answer_at(arrived, sent + received);
        let rest = answer_at.saturating_sub(self.env.monotonic());
        if !rest.is_zero() {
            self.env.sleep(rest);
        }
        Ok(reply)
    }

    fn disconnected(&self, client: ClientId) {
        self.service.disconnected(client);
    }
}

/// Bytes that a request brings to the device; none when it does not get there: sessions, locks and
/// questions about the target itself.
fn bytes(request: &Request, bulk: &Bulk<'_>) -> Option<u64> {
    use Request::*;
    match (request, bulk) {
        (Write(_), Bulk::Send(data)) => Some(data.len() as u64),
        (OpenSession(_) | Reclaim(_) | CloseSession(_) | RenewSession(_), _) => None,
        (Read(_) | Sync(_) | Truncate(_) | Punch(_) | Allocate(_) | Destroy(_), _) => Some(0),
        (Lookup(_) | GetAttr(_) | Access(_) | Readlink(_) | Readdir(_), _) => Some(0),
        (GetXattr(_) | ListXattr(_) | GetLayout(_), _) => Some(0),
        _ => request.is_modifying().then_some(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_model::{Epoch, TargetId, Timespec, Xid};
    use weft_rpc::Role;
    use weft_rpc::pb::{Empty, mds, oss};

    /// Time passes only by sleeping.
    #[derive(Default)]
    struct Clock(Mutex<Duration>);

    impl Env for Clock {
        fn now(&self) -> Timespec {
            Timespec::default()
        }
        fn monotonic(&self) -> Duration {
            *self.0.lock()
        }
        fn sleep(&self, duration: Duration) {
            *self.0.lock() += duration;
        }
        fn random(&self) -> u64 {
            0
        }
    }

    /// Answers at once.
    struct Instantly;

    impl Service for Instantly {
        fn serve(&self, _: &CallInfo, request: &Request, _: Bulk<'_>) -> Result<Reply> {
            Ok(match request {
                Request::Read(read) => Reply::Read(oss::ReadReply { len: read.len, sums: vec![] }),
                Request::Write(_) => Reply::Write(oss::WriteReply::default()),
                _ => Reply::Close(Empty {}),
            })
        }
    }

    const INFO: CallInfo = CallInfo {
        role: Role::Client,
        client: ClientId(7),
        xid: Xid::NONE,
        epoch: Epoch(0),
        target: TargetId::ost(0),
        wire: false,
    };

    fn time_of(speed: &str, count: u32, request: Request, data: &[u8]) -> Duration {
        let clock = Arc::new(Clock::default());
        let slow = Throttled::new(Arc::new(Instantly), speed.parse().unwrap(), clock.clone());
        for _ in 0..count {
            slow.serve(&INFO, &request, Bulk::Send(data)).unwrap();
        }
        clock.monotonic()
    }

    #[test]
    fn data_and_metadata_take_the_time_of_the_device() {
        let close = |took: Duration, wanted: f64| (took.as_secs_f64() / wanted - 1.0).abs() < 0.03;
        let data = vec![0; 1 << 20];
        let took = time_of("100M", 200, Request::Write(oss::Write::default()), &data);
        assert!(close(took, 2.0), "{took:?}");
        let read = oss::Read { len: 1 << 20, ..oss::Read::default() };
        let took = time_of("100M", 200, Request::Read(read), &[]);
        assert!(close(took, 2.0), "{took:?}");
        let took = time_of("1000ops,1ms", 500, Request::Create(mds::Create::default()), &[]);
        assert!(close(took, 1.0), "{took:?}");
    }

    #[test]
    fn who_keeps_a_session_alive_does_not_wait() {
        let took = time_of("1ops", 50, Request::RenewSession(mds::RenewSession::default()), &[]);
        assert_eq!(took, Duration::ZERO);
    }
}
