//! A bound on the bytes of file data under way, so that a crowd waits in line instead of taking all
//! memory and making the disk thrash.

use parking_lot::{Condvar, Mutex};
use std::time::{Duration, Instant};
use weft_model::{ErrorKind, FsError, Result};

/// The door.
pub struct Admission {
    in_flight: Mutex<u64>,
    left: Condvar,
    limit: u64,
    patience: Duration,
}

/// Leave to handle some bytes; given back when dropped.
pub struct Admitted<'a> {
    door: &'a Admission,
    bytes: u64,
}

impl Admission {
    /// Lets `limit` bytes in at a time and makes others wait up to `patience`.
    pub const fn new(limit: u64, patience: Duration) -> Admission {
        Admission { in_flight: Mutex::new(0), left: Condvar::new(), limit, patience }
    }

    /// Waits for room for `bytes`. What is larger than the bound goes in alone.
    ///
    /// # Errors
    /// `Overloaded` when the wait ends without.
    pub fn enter(&self, bytes: usize) -> Result<Admitted<'_>> {
        let bytes = bytes as u64;
        let mut in_flight = self.in_flight.lock();
        let fits = |in_flight: u64| in_flight == 0 || in_flight + bytes <= self.limit;
        if !fits(*in_flight) {
            let deadline = Instant::now() + self.patience;
            while !fits(*in_flight) {
                if self.left.wait_until(&mut in_flight, deadline).timed_out() {
                    return Err(FsError::new(ErrorKind::Overloaded, "wait for admission")
                        .because(format_args!("in_flight_bytes={in_flight}")));
                }
            }
        }
        *in_flight += bytes;
        Ok(Admitted { door: self, bytes })
    }

    /// Bytes under way.
    pub fn in_flight(&self) -> u64 {
        *self.in_flight.lock()
    }
}

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        *self.door.in_flight.lock() -= self.bytes;
        // All, not one: who is woken may need more room than there is, and another less.
        self.door.left.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_finds_no_room_is_told_to_come_again() {
        let door = Admission::new(10, Duration::from_millis(5));
        let first = door.enter(6).unwrap();
        assert_eq!(door.enter(6).err().unwrap().kind, ErrorKind::Overloaded);
        let second = door.enter(4).unwrap();
        assert_eq!(door.in_flight(), 10);
        drop((first, second));
        let large = door.enter(1000).unwrap();
        assert!(door.enter(1).is_err());
        drop(large);
        assert_eq!(door.in_flight(), 0);
    }

    #[test]
    fn who_waits_gets_in_when_others_leave() {
        let door = Admission::new(10, Duration::from_secs(20));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        let _in = door.enter(7).unwrap();
                        assert!(door.in_flight() <= 10);
                    }
                });
            }
        });
    }
}
